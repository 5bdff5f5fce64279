"""Codes TS0124 and up: how instances run, how the experiment begins and ends."""

from __future__ import annotations

from tdl.codes.code import Code

RUNNING = (
    Code(
        "TS0124",
        "not a user",
        "user= is a user's name or number, and after a colon that of a group if it is another: "
        "`postgres`, `1000`, `www-data:adm`.",
        "service a user=a/b",
    ),
    Code(
        "TS0125",
        "no place for a file",
        "cwd= is an absolute path. A place in files= is a path without `.` and `..`: relative ones "
        "begin in the instance's own folder. Absolute ones, and all with cwd=, need a file system "
        "of its own, from `fs=private` or an image: nothing is put among the machine's files.",
        "service a cwd=data",
    ),
    Code(
        "TS0126",
        "not a setting of an instance",
        "sysctl= is a list of `NAME:value` separated by `;`, with names of what an instance has of "
        "its own: `net.*`, `kernel.shm*`, `kernel.msg*`, `kernel.sem` and `fs.mqueue.*`. Any other "
        "would change the whole machine.",
        "service a sysctl=vm.swappiness:10",
    ),
    Code(
        "TS0127",
        "not a mount",
        "mount= is a list of `HOST:PATH` or `HOST:PATH:ro` separated by `;`. HOST is on the "
        "machine, relative names beside the TDL file; PATH is where the instance sees it, absolute "
        "and not `/`.",
        "service a mount=/srv/data",
    ),
    Code(
        "TS0128",
        "not a readiness check",
        "ready= is `tcp:PORT` (something listens there), a command line that ends with 0 when the "
        "instance is ready, or `none`.",
        "service a exec=b ready=http://localhost",
    ),
    Code(
        "TS0129",
        "unknown signal",
        "stop= is the signal that a program is asked to end with, by its name: `SIGTERM` (the "
        "default), `SIGINT`, `SIGQUIT` and others.",
        "service a exec=b stop=SIGSTOP",
    ),
    Code(
        "TS0130",
        "unknown word",
        "expect= is success, run or any; keep= is yes or no; fs= is private.",
        "service a exec=b expect=failure",
    ),
    Code(
        "TS0131",
        "unknown network",
        "`network dual` (the default) gives instances both an IPv4 and an IPv6 address, "
        "`network ipv4` and `network ipv6` only the one.",
        "network ip4",
    ),
    Code(
        "TS0177",
        "unknown word after hops",
        "`hops answer` lets bridges take one from the TTL of each packet and answer where nothing "
        "is left, so that traceroute shows them; with `hops silent` nobody sees them.",
        "hops answers",
    ),
    Code(
        "TS0132",
        "unknown condition",
        "The conditions are `start when ready`, `quit when NAME exits` (several names are "
        "separated by `;`) and `quit when all exit`.",
        "start when connected",
    ),
    Code(
        "TS0133",
        "file that cannot be read",
        "files= names files and folders on the machine that compiles, absolute or relative to the "
        "folder of the TDL file. They are read when the text is compiled and are part of the plan. "
        "Links to folders, devices and pipes cannot be copied.",
        "service a exec=b files=missing.conf\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0134",
        "too much to copy",
        "The files of all services together have at most 64 MiB. Use mount= for more.",
        "",
    ),
    Code(
        "TS0135",
        "two files in one place",
        "Each file of an instance has a place of its own. Say where with `files=NAME:PATH`.",
        "",
    ),
    Code(
        "TS0136",
        "program that never ends",
        "`quit when` waits for the programs of services, which need `exec=` or an image.",
        "service a\nbridge s1\nlink a--s1\nquit when a exits",
    ),
    Code(
        "TS0137",
        "no program to say this of",
        "ready=, expect=, stop= and grace= are about the program that each instance runs: the "
        "service needs `exec=` or an image.",
        "service a expect=success\nbridge s1\nlink a--s1",
    ),
)
