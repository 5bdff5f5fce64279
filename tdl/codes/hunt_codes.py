"""Codes TS0340 to TS0349: hunts."""

from __future__ import annotations

from tdl.codes.code import Code

_NET = "service a exec=x replicas=3\nbridge s1\nlink a--s1 latency=1ms\nat 9s quit\n"

HUNTS = (
    Code(
        "TS0340",
        "bound of a hunt that is none",
        "A bound is `partition`, `crash`, `kill`, `pause`, `disconnect` or `disk` with names and "
        "how many at a time; `latency`, `loss`, `duplicate`, `corrupt`, `clock` or `drift` with a "
        "range and names; `at most N`; `lasting A..B`; or `quiet T at the end` (or `start`). "
        "Several on a line are divided by `;`.",
        _NET + "hunt {\n    crsh a.*\n}",
    ),
    Code(
        "TS0341",
        "bounds that contradict",
        "With these bounds there is no storm: a range is empty, more instances are to fail than "
        "there are, nobody is left on the other side of a partition, or the quiet times leave no "
        "time for a fault. A file has one `hunt`, and each of its limits once.",
        _NET + "hunt {\n    crash a.*\n    quiet 9s at the end\n}",
    ),
)
