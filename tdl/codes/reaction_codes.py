"""Codes TS0330 to TS0339: reactions (`when`)."""

from __future__ import annotations

from tdl.codes.code import Code

_NET = "service a exec=x\nbridge s1\nlink a--s1\nat 9s quit\n"

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
