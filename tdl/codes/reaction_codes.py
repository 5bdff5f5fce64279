"""Codes TS0330 to TS0349: reactions (`when`) and hunts."""

from __future__ import annotations

from tdl.codes.code import Code

_NET = "service a exec=x\nbridge s1\nlink a--s1\nat 9s quit\n"
_HUNTED = "service a exec=x replicas=3\nbridge s1\nlink a--s1 latency=1ms\nat 9s quit\n"

REACTIONS = (
    Code(
        "TS0330",
        "reaction that is not complete",
        'A reaction is `when log NAMES "PATTERN" {`, `when exit NAMES [with STATUS] {`, `when '
        'ready NAMES {` or `when file NAMES "PATH" {`, then lines of what happens, and `}`. Before '
        "the `{` there may be `once` or `every`, `after TIME` and, with `every`, `at most N`, in "
        "this order. In the block there are actions only.",
        _NET + "when exit a {\n}",
    ),
    Code(
        "TS0331",
        "time in a reaction",
        "Nobody knows when a reaction happens, so times in its block count from then: `now`, "
        "`+5s`, or none for at once.",
        _NET + "when exit a {\nat 5s it join\n}",
    ),
    Code(
        "TS0333",
        "reaction that cannot be",
        "In a block `it` is the instance that the reaction is about, so no service or bridge has "
        "that name in an experiment with one, and outside of a block it is nobody. What links "
        "follow or draw from (`trace=`, `dist=FILE`) is read when the text is compiled, and is not "
        "set in a reaction. A `when file` names a file from the directory of the instance on.",
        _NET + "at 5s it crash",
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
