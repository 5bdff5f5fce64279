"""Links that follow traces (TS0171 to TS0176, TS0237 and TS0238), and jitters with measured
distributions (TS0178 to TS0181)."""

from __future__ import annotations

from tdl.codes.code import Code

TRACE_CODES = (
    Code(
        "TS0171",
        "trace that cannot be read",
        "`trace=` names a file on the machine that compiles, relative to the folder of the TDL "
        "file. It is read when the text is compiled and is part of the plan. A folder, a device "
        "and a file that somebody writes meanwhile are no traces.",
        "service a\nbridge s1\nlink a--s1 trace=missing.trace",
    ),
    Code(
        "TS0172",
        "file that is no trace",
        "A trace is lines of ms, each the time of one delivery, never earlier than the one before; "
        "or CSV with a header, `time` first, then some of `rate`, `delay`, `jitter` and `loss`. "
        "The message names the line of the file.",
        "",
    ),
    Code(
        "TS0173",
        "trace that never delivers",
        "A trace whose only deliveries are at 0 ms has no length, and with a rate of 0 in all rows "
        "nothing ever passes. A link that is down is one that leaves.",
        "",
    ),
    Code(
        "TS0174",
        "two sources for one property",
        "What a trace has is not stated beside it: a rate for deliveries, the columns of CSV.",
        "",
    ),
    Code(
        "TS0175",
        "a trace does not end like this",
        "`trace-end=loop`, which is the default, begins a trace again at its end; `hold` keeps the "
        "values of the last row of CSV. Deliveries have no last value, and a last rate of 0 would "
        "let nothing pass any more.",
        "service a\nbridge s1\nlink a--s1 trace-end=hold",
    ),
    Code(
        "TS0176",
        "too large a trace",
        "A file has at most 256 MiB, a trace 33,554,432 instants, and all traces of a plan, which "
        "keeps each content once and in short, 64 MiB together.",
        "",
    ),
    Code(
        "TS0237",
        "a property that a trace has",
        "The link follows a trace, which says what this property is. `set trace=none` ends that, "
        "and may stand in the same statement.",
        "",
    ),
    Code(
        "TS0238",
        "background beside a trace",
        "A trace says what a link lets through; background traffic takes nothing of that.",
        "",
    ),
)


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
