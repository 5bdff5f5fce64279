"""Jitters with measured distributions: TS0178 to TS0181."""

from __future__ import annotations

from tdl.codes.code import Code

DELAY_CODES = (
    Code(
        "TS0178",
        "delays that cannot be read",
        "`dist=` names a file of measured delays on the machine that compiles, relative to the "
        "folder of the TDL file. It is read when the text is compiled and is part of the plan.",
        "service a\nbridge s1\nlink a--s1 dist=missing.txt",
    ),
    Code(
        "TS0179",
        "file that has no delays",
        "A file has one delay in each line, in ms or with its unit, never negative; or CSV with a "
        "header and a column `delay`; or it is a table of netem, whole numbers from -32768 to "
        "32767. Lines with `#` at first are passed over. Two delays at least differ. The message "
        "names the line of the file.",
        "",
    ),
    Code(
        "TS0180",
        "too many delays",
        "A file has at most 256 MiB and 4,194,304 delays, a plan the tables of 1,000 files.",
        "",
    ),
    Code(
        "TS0181",
        "delays for no jitter",
        "A link draws from measured delays what its `jitter=` scales. A table of netem has a shape "
        "alone, so the link has to say its latency and its jitter; and `set dist=FILE` changes the "
        "shape of a jitter that is there, or is set with it.",
        "",
    ),
)
