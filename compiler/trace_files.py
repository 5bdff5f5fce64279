"""A recording of a link, as others write it, as the content of a plan's trace.

Input: the bytes of a file. Output: a `Trace`, or `BadTrace` with the line that is wrong. What kind
it is, its first line tells. A line that is a number: deliveries as mahimahi records them, in each
line the ms of one opportunity to deliver a packet (mm-link(1)). Anything else: CSV with a header
(RFC 4180), `time` and some of `rate`, `delay`, `jitter` and `loss`, from the row's time on; the
last row lasts as long as the one before it. Messages never have words of the file in them: who can
name a file in an experiment is not always somebody who may read it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import le

from compiler.plan.encoding import TRACED
from compiler.plan.parts.traces import MOST_STEPS, Opportunities, Rows, Trace, TraceRow
from compiler.plan.properties import BY_FIELD
from tdl import values
from tdl.values import ValueProblem

MOST_BYTES = 256 << 20
_MOST_MS = (1 << 32) - 1
_DIGITS = b"0123456789"
_COLUMNS = {BY_FIELD[field].word: field for field in TRACED} | {"latency": "delay_ns"}


class BadTrace(Exception):  # noqa: N818 - data for a diagnostic
    """`line` counts from 1; 0: the whole file is to blame. `code`: '' where it cannot be read."""

    def __init__(self, line: int, why: str, hint: str = "", code: str = "TS0172") -> None:
        super().__init__(why)
        self.line, self.why, self.hint, self.code = line, why, hint, code


def parse(data: bytes) -> Trace:
    """Raises BadTrace."""
    first = data.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    if not data.strip():
        raise BadTrace(0, "is empty", "a trace has a line for each delivery, or rows of CSV")
    number = first.lstrip(b"+-").replace(b".", b"", 1).isdigit()
    return _deliveries(data) if number else _table(data)


# --- deliveries ---------------------------------------------------------------------------------


def _deliveries(data: bytes) -> Opportunities:
    lines = data.rstrip().split(b"\n")
    if data.translate(None, _DIGITS + b"\r\n"):
        _blame(lines)
    try:
        times = list(map(int, lines))
    except ValueError:
        _blame(lines)
        raise
    if not all(map(le, times, times[1:])):
        number = next(i for i, (one, two) in enumerate(pairwise(times), 2) if two < one)
        raise BadTrace(number, "is earlier than the line before it", "sort it: sort -n")
    if times[-1] > _MOST_MS:
        raise BadTrace(len(times), f"is beyond {_MOST_MS:,} ms")
    if times[-1] == 0:
        why = "has deliveries at 0 ms only: its last line is how long it lasts"
        raise BadTrace(0, why, "a link that lets nothing through is one that leaves", "TS0173")
    at, totals, total = [], [], 0
    for time, same in groupby(times):
        total += sum(1 for _ in same)
        at.append(time)
        totals.append(total)
    _bound(len(at))
    return Opportunities(at, totals)


def _blame(lines: Sequence[bytes]) -> None:
    for number, line in enumerate(lines, 1):
        text = line.strip(b"\r")
        if not text.isdigit() or len(text) > 18:
            why = "is negative" if text[:1] == b"-" and text[1:].isdigit() else ""
            why = why or ("is empty" if not text.strip() else "is not a whole number of ms")
            raise BadTrace(number, why, "each line is the time of one delivery, in ms")


def _bound(steps: int) -> None:
    if steps > MOST_STEPS:
        raise BadTrace(0, f"has more than {MOST_STEPS:,} instants", "cut it", "TS0176")


# --- CSV ----------------------------------------------------------------------------------------


def _bits(text: str) -> int:
    return int(text) if text.isdigit() else values.rate(text)


def _seconds(text: str) -> int:
    plain = text.replace(".", "", 1).isdigit()
    return values.time(f"{text}s" if plain and text != "0" else text)


_READ: Mapping[str, Callable[[str], int]] = {  # by the unit at the end of a field
    "bps": _bits,
    "ns": values.latency,
    "ppb": lambda text: values.probability(text, what="loss"),
}


def _table(data: bytes) -> Rows:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadTrace(0, "is neither lines of numbers nor CSV") from None
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        fields = _header([word.strip().lower() for word in next(reader, [])])
        readers = [lru_cache(4096)(_READ[field.rpartition("_")[2]]) for field in fields[1:]]
        rows: list[TraceRow] = []
        for words in reader:
            if words:
                rows.append(_row(words, fields, readers, rows, reader.line_num))
    except csv.Error:
        raise BadTrace(reader.line_num, "is not CSV") from None
    if not rows:
        raise BadTrace(0, "has a header and no rows")
    _bound(len(rows))
    last = rows[-1].at_ns - rows[-2].at_ns if len(rows) > 1 else 10**9
    kept = tuple(field for field in TRACED if field in fields)
    order = [fields[1:].index(field) for field in kept]
    ordered = [TraceRow(row.at_ns, tuple(row.values[i] for i in order)) for row in rows]
    found = Rows(kept, rows[-1].at_ns + last, ordered)
    if "rate_bps" in kept and not any(row.values[0] for row in ordered):
        hint = "a link that lets nothing through is one that leaves"
        raise BadTrace(0, "has a rate of 0 in all rows: it never delivers", hint, "TS0173")
    return found


def _header(words: Sequence[str]) -> list[str]:
    hint = "a header is such as time,rate,delay: time first, then some of rate delay jitter loss"
    if not words or words[0] != "time":
        raise BadTrace(1, "has no column 'time' at first", hint)
    unknown = [i for i, word in enumerate(words[1:], 2) if word not in _COLUMNS]
    fields = ["time", *(_COLUMNS.get(word, "") for word in words[1:])]
    if unknown or len(words) < 2 or len(set(fields)) < len(fields):
        where = f"column {unknown[0]}" if unknown else "its columns"
        raise BadTrace(1, f"has no properties of a link in {where}", hint)
    if "jitter_ns" in fields and "delay_ns" not in fields:
        raise BadTrace(1, "has a jitter and no delay", "add the column delay")
    return fields


def _row(
    words: Sequence[str],
    fields: Sequence[str],
    readers: Sequence[Callable[[str], int]],
    before: Sequence[TraceRow],
    line: int,
) -> TraceRow:
    if len(words) != len(fields):
        raise BadTrace(line, f"has {len(words)} columns instead of {len(fields)}")
    found: list[int] = []
    at = None
    try:
        at = _seconds(words[0].strip())
        for read, word in zip(readers, words[1:], strict=True):
            found.append(read(word.strip()))
    except (ValueProblem, ValueError):
        place = 0 if at is None else len(found) + 1
        what = BY_FIELD[fields[place]].word if place else "time, in seconds or with a unit"
        raise BadTrace(line, f"has no value in column {place + 1}, which is a {what}") from None
    if not before and at:
        raise BadTrace(line, "does not begin at 0", "the first row's time is 0")
    if before and at <= before[-1].at_ns:
        raise BadTrace(line, "is not later than the row before it", "sort the rows by time")
    row = dict(zip(fields[1:], found, strict=True))
    for field, value in row.items():
        if value > BY_FIELD[field].most:
            raise BadTrace(line, f"has a {BY_FIELD[field].word} that no link has")
    if row.get("jitter_ns", 0) > row.get("delay_ns", 0):
        raise BadTrace(line, "has a jitter above its delay")
    return TraceRow(at, tuple(found))
