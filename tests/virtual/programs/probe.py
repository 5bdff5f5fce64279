"""What a program can see of the machine that it runs on. `probe.py CYCLES`: the program cycles."""

import ctypes
import os
import resource
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

MOST_BYTES = 20000
ENDLESS = {"kmsg", "kcore"}
# Of a kernel thread: what the kernel, as a process of the host, had in registers when it made it.
REGISTERS = "syscall"
LIMITS = sorted(name for name in dir(resource) if name.startswith("RLIMIT"))
COMMANDS = [
    "ip -d link",
    "ip link add one type veth peer name two",
    "ip -o link",
    "dmesg",
    "ps -ef",
]


def say(name: object, value: object) -> None:
    sys.stdout.write(f"{name}: {value}\n")


def contents(root: Path) -> None:
    """Every file that can be read at once."""
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.name in ENDLESS or path.name == REGISTERS:
            continue
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            say(path, error.strerror)
            continue
        try:
            found: object = os.read(descriptor, MOST_BYTES)
        except OSError as error:
            found = error.strerror
        os.close(descriptor)
        say(path, found)


say("clocks", [time.time_ns(), time.monotonic_ns(), time.process_time_ns(), time.thread_time_ns()])
say("ids", [os.getpid(), os.getppid(), os.getsid(0), os.getpgrp(), os.getuid(), os.getgroups()])
say("random", [os.urandom(16), uuid.uuid1(), uuid.uuid4(), hash("text"), id(say)])
say("addresses", Path("/proc/self/maps").read_text())
say("auxiliary", [ctypes.CDLL(None).getauxval(25), Path("/proc/self/auxv").read_bytes()])
say("cycles", subprocess.run([sys.argv[1]], capture_output=True, check=True).stdout)
say("environment", sorted(os.environ.items()))
say("umask", os.umask(0o22))
say("limits", {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS})
say("usage", [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)])
say("machine", [os.uname(), os.cpu_count(), os.sched_getaffinity(0), os.getloadavg()])
say("name", [socket.gethostname(), socket.getfqdn()])
say("descriptors", [(path.name, path.exists()) for path in sorted(Path("/proc/self/fd").iterdir())])
say("terminal", [os.isatty(number) for number in range(3)])
say("root", [(entry.name, entry.inode()) for entry in os.scandir("/")])
say("space", [os.statvfs(path) for path in ("/", "/run", "/dev")])
for command in COMMANDS:
    say(command, subprocess.run(command.split(), capture_output=True, check=False).stdout)
contents(Path("/proc"))
contents(Path("/sys"))
