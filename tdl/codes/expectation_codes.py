"""Codes TS04xx: expectations. TS0330 to TS0349: reactions (`when`) and hunts."""

from __future__ import annotations

from tdl.codes.code import Code

_NET = "service a exec=x\nservice b exec=y\nbridge s1\nlink a--s1\nlink b--s1\nat 9s quit\n"

EXPECTATIONS = (
    Code(
        "TS0401",
        "unknown expectation",
        "What can be expected: `rtt`, `throughput`, `loss`, `unreachable`, `log`, `no log`, "
        "`exit`, `run`, `valid`, `linearizable`, `serializable`, `always`, `sometimes`, "
        "`eventually`, `assertions` and `drivers`. A round trip may have a statistic before its "
        "ends: `median` (the default), `mean`, `p90`, `p99`, `max`, `min`.",
        "expect delay a b < 5ms",
    ),
    Code(
        "TS0402",
        "expectation that is not complete",
        "Each kind has one form: a measure has two ends and a bound, a log has names and a "
        "pattern in quotes, a program's end has names and a status, a command stands in quotes "
        "before `ok`.",
        "expect rtt a < 5ms",
    ),
    Code(
        "TS0403",
        "bound that compares nothing",
        "A bound is `<`, `<=`, `>` or `>=` and a value: a time for `rtt`, a rate for `throughput`, "
        "a share for `loss`. `90% of plan` compares a round trip or a rate with the planned one.",
        "expect rtt a b < 90%",
    ),
    Code(
        "TS0404",
        "time that does not fit",
        "The time of an expectation lies within the experiment, and is an interval: `from T1 to "
        "T2`, `within D after T`. A command of `expect run` may run `at T`, too.",
        _NET + "expect loss a b < 1% from 10s",
    ),
    Code(
        "TS0405",
        "pattern that cannot be read",
        "The pattern of a log is a regular expression as Python's `re` reads it, with at most 1000 "
        "characters. A backslash is written twice, as in every string.",
        'expect log a "leader ("',
    ),
    Code(
        "TS0406",
        "expectation of something unknown",
        "Expectations are of instances: `db` and `db.*` are those of a service, `db.0` is one, `*` "
        "is all. A bridge has no programs and no addresses.",
        _NET + "expect rtt a c < 5ms",
    ),
    Code(
        "TS0407",
        "expectation of what is never there",
        "None of the instances that are named is joined in that time, or no two of them are at "
        "once, so nothing could be measured.",
        _NET + "at 1s b leave\nexpect loss a b < 1% from 2s",
    ),
    Code(
        "TS0408",
        "expectation of a program that is not there",
        "`expect log` and `expect exit` are about the programs of services, which need `exec=` or "
        "an image.",
        "service a\nbridge s1\nlink a--s1\nexpect exit a 0",
    ),
    Code(
        "TS0409",
        "expectations of too many pairs",
        "All expectations of a file together are about at most 200,000 pairs of instances.",
        "",
    ),
    Code(
        "TS0413",
        "history that cannot be read",
        "Operations of clients stand in a file in the directory of each: `expect linearizable WHO "
        '"FILE" model=MODEL`, with the model `register`, `set`, `queue` or `map`, or `expect '
        'serializable WHO "FILE"`. docs/histories.md says what stands in the file.',
        'expect linearizable a "history.jsonl" model=stack',
    ),
    Code(
        "TS0414",
        "expectation of lines that says nothing",
        "`always`, `sometimes` and `eventually` are about lines with a pattern, of which a number "
        "is compared (`<`, `<=`, `>`, `>=`, `=`, `!=`), or in which another pattern is: `expect "
        'always log WHO "took ([0-9]+) ms" < 500`, `… "commit" has "term="`. The number is the one '
        'group of the pattern, or stands at a place of the JSON in the line: `"commit" json '
        '"latency.p99" < 50`. `always` needs one of these.',
        'expect always log a "took [0-9]+ ms" < 500',
    ),
    Code(
        "TS0415",
        "test template whose commands cannot be run",
        "`expect drivers WHO` runs the commands of a test template in these instances, `expect "
        'drivers WHO "FOLDER"` of one elsewhere than in /opt/antithesis/test/v1. Drivers are '
        "started `to` a moment from which on checks run: not before the last event of the "
        "timeline, since checks are about what holds when faults are over.",
        _NET + 'at 5s a--s1 set loss=1%\nexpect drivers a "test" to 4s',
    ),
    Code(
        "TS0350",
        "an interface that is none, or of which nothing can be expected",
        "An instance has several interfaces where its service says `interfaces`: eth0, eth1 and "
        "so on, in the order of its links. What is expected of round trips, losses, rates and "
        "reachability may name one of them; what is expected of programs is about instances.",
        "service phone interfaces\nservice server\nbridges s t\nlink phone--s\nlink phone--t\n"
        "link server--s\nlink s--t\nexpect rtt phone.0.eth2 server < 50ms\nat 5s quit",
    ),
    Code(
        "TS0410",
        "figure that is not complete",
        'A figure is a number that programs give: `figure NAME = log WHO "PATTERN"`, or `figure '
        'NAME = json WHO "FILE" "KEY"`. The file is one in the directory of the instance, the key '
        "says where in it: names and positions with dots between them.",
        'figure lost = client "lost ([0-9]+)"',
    ),
    Code(
        "TS0411",
        "figure without a number",
        "The pattern of a figure has one group, which is the number: `lost ([0-9]+)`. Other "
        "brackets are written `(?:…)`.",
        'figure lost = log client "lost [0-9]+"',
    ),
    Code(
        "TS0412",
        "two figures of one name",
        "Runs are compared by the names of their figures, so each has one of its own.",
        _NET + 'figure n = log a "n ([0-9]+)"\nfigure n = log b "n ([0-9]+)"',
    ),
    Code(
        "TS0950",
        "expectation that the plan does not meet",
        "A run that is exactly as planned must fail here: the planned round trip is too long, the "
        "planned rate too low or the planned loss too high, there is no path, or there is one "
        "where none is expected. Programs can only make it worse. `tstorm explain --expect` shows "
        "what the plan has. Of an expectation at most 200 pairs are looked at, evenly spread, and "
        "no more once their paths have changed 20,000 times, or where the network is in more than "
        "20,000 states.",
        "service a exec=x\nservice b exec=y\nlink a--b latency=46ms\nat 9s quit\n"
        "expect rtt a b < 60ms from 5s to 9s",
    ),
)


_RUN = "service a exec=x\nbridge s1\nlink a--s1\nat 9s quit\n"
_HUNTED = "service a exec=x replicas=3\nbridge s1\nlink a--s1 latency=1ms\nat 9s quit\n"

REACTIONS = (
    Code(
        "TS0330",
        "reaction that is not complete",
        'A reaction is `when log NAMES "PATTERN" {`, `when exit NAMES [with STATUS] {`, `when '
        'ready NAMES {` or `when file NAMES "PATH" {`, then lines of what happens, and `}`. Before '
        "the `{` there may be `once` or `every`, `after TIME` and, with `every`, `at most N`, in "
        "this order. In the block there are actions only.",
        _RUN + "when exit a {\n}",
    ),
    Code(
        "TS0331",
        "time in a reaction",
        "Nobody knows when a reaction happens, so times in its block count from then: `now`, "
        "`+5s`, or none for at once.",
        _RUN + "when exit a {\nat 5s it join\n}",
    ),
    Code(
        "TS0333",
        "reaction that cannot be",
        "In a block `it` is the instance that the reaction is about, so no service or bridge has "
        "that name in an experiment with one, and outside of a block it is nobody. What links "
        "follow or draw from (`trace=`, `dist=FILE`) is read when the text is compiled, and is not "
        "set in a reaction. A `when file` names a file from the directory of the instance on.",
        _RUN + "at 5s it crash",
    ),
)

HUNTS = (
    Code(
        "TS0340",
        "bound of a hunt that is none",
        "A bound is `partition`, `crash`, `kill`, `pause`, `disconnect` or `disk` with names and "
        "how many at a time; `latency`, `loss`, `duplicate`, `corrupt`, `clock` or `drift` with a "
        "range and names; `at most N`; `lasting A..B`; or `quiet T at the end` (or `start`). "
        "Several on a line are divided by `;`.",
        _HUNTED + "hunt {\n    crsh a.*\n}",
    ),
    Code(
        "TS0341",
        "bounds that contradict",
        "With these bounds there is no storm: a range is empty, more instances are to fail than "
        "there are, nobody is left on the other side of a partition, or the quiet times leave no "
        "time for a fault. A file has one `hunt`, and each of its limits once.",
        _HUNTED + "hunt {\n    crash a.*\n    quiet 9s at the end\n}",
    ),
)
