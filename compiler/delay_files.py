"""Delays that somebody measured, as others write them, as the table of a plan.

Input: the bytes of a file. Output: a `DelayTable`, or `BadTrace` with the line that is wrong. Three
kinds, which the first line that is no comment (`#`) tells apart. Several whole numbers: a table of
netem (iproute2, *.dist), deviations in 1/8192 of a jitter, with a shape and no delays. A number, or
a time with its unit: one delay in each line, ms where no unit is. Anything else: CSV with a header
(RFC 4180), whose column `delay` or `latency` counts.

The distribution function of n delays has n steps. A packet's delay falls no faster than time goes
on, so it takes a while to fall through a gap between delays, and delays in a gap have to have a
share: each point of the table is the mean of the delays within 1/256 of it, of all delays, but of a
fourth or an eighth of those beyond it at most. So no share of delays is off by more than that, if a
place may be off by 1 % of their deviation.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

from compiler.plan.parts.delay_tables import ONE, PARTS, DelayTable, is_sound
from compiler.trace_files import BadTrace
from tdl.bounds import MAX_LATENCY_NS

MOST_DELAYS = 1 << 22
NETEM_LIMIT = 1 << 15
_WINDOW = 2 * PARTS // 256  # half of it, in half intervals
_EARLY, _LATE = 4, 8  # of what lies beyond a point, the part that half a window has at most
_BAD, _LARGE = "TS0179", "TS0180"
_COLUMNS = ("delay", "latency")
_UNITS = {"": 1e6, "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_DELAY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\s*([a-zµ]*)")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_HINT = "a file has one delay in each line, such as 12.5 or 800us"


def parse(data: bytes) -> DelayTable:
    """Raises BadTrace."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BadTrace(0, "is no text", _HINT, _BAD)
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise BadTrace(0, "has no delays", _HINT, _BAD)
    first = lines[0][1]
    if len(first.split()) > 1 and all(map(_WHOLE.fullmatch, first.split())):
        return _table(_netem(lines), shape=True)
    measured = first[0] in "0123456789.+-"
    return _table(_delays(lines) if measured else _column(text), shape=False)


def _bound(count: int) -> None:
    if count > MOST_DELAYS:
        raise BadTrace(0, f"has more than {MOST_DELAYS:,} delays", "keep each tenth", _LARGE)


def _netem(lines: Sequence[tuple[int, str]]) -> list[int]:
    found: list[int] = []
    for number, line in lines:
        for word in line.split():
            whole = _WHOLE.fullmatch(word)
            if not whole or len(word) > 6 or not -NETEM_LIMIT <= int(word) < NETEM_LIMIT:
                why = "has something else than numbers from -32768 to 32767"
                raise BadTrace(number, why, "netem's tables have those only", _BAD)
            found.append(int(word))
    _bound(len(found))
    return found


def _delays(lines: Sequence[tuple[int, str]]) -> list[int]:
    _bound(len(lines))
    return [_delay(text, number) for number, text in lines]


def _delay(text: str, line: int) -> int:
    """In ns, rounded."""
    found = _DELAY.fullmatch(text)
    scale = _UNITS.get(found[2]) if found else None
    if found is None or scale is None:
        why = "is negative" if re.match(r"-[0-9.]", text) else "is no delay"
        raise BadTrace(line, why, _HINT, _BAD)
    delay = round(float(found[1]) * scale)
    if delay > MAX_LATENCY_NS:
        raise BadTrace(line, "is more than one day", _HINT, _BAD)
    return delay


def _column(text: str) -> list[int]:
    reader = csv.reader(text.splitlines(), strict=True)
    found: list[int] = []
    column = -1
    try:
        for words in reader:
            if not words or words[0].startswith("#"):
                continue
            if column < 0:
                column = _place([word.strip().lower() for word in words], reader.line_num)
                continue
            if len(words) <= column:
                raise BadTrace(reader.line_num, f"has no column {column + 1}", "", _BAD)
            found.append(_delay(words[column].strip(), reader.line_num))
    except csv.Error:
        raise BadTrace(reader.line_num, "is not CSV", _HINT, _BAD) from None
    _bound(len(found))
    if not found:
        raise BadTrace(0, "has a header and no delays", _HINT, _BAD)
    return found


def _place(words: Sequence[str], line: int) -> int:
    known = [i for i, word in enumerate(words) if word in _COLUMNS]
    if len(known) != 1:
        raise BadTrace(line, "is no delay, and no header with one column delay", _HINT, _BAD)
    return known[0]


# --- the table ----------------------------------------------------------------------------------


def _table(found: list[int], *, shape: bool) -> DelayTable:
    """`shape`: the numbers have neither delay nor jitter."""
    found.sort()
    if found[0] == found[-1]:
        hint = "write it as latency=, without jitter"
        raise BadTrace(0, "has one delay alone, which is no distribution", hint, _BAD)
    mean = sum(found) / len(found)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in found) / len(found))
    own = (0, 0) if shape else (round(mean), max(round(deviation), 1))
    table = DelayTable(*own, _points(found))
    if not is_sound(table):
        why = "has single delays that are too far from the others"
        raise BadTrace(0, why, "leave them out", _BAD)
    return table


def _points(ordered: Sequence[int]) -> tuple[int, ...]:
    """Of 8,192 half intervals, point i lies at 2 i; exact until the division."""
    count, whole = len(ordered), 2 * PARTS
    sums = [0, *accumulate(ordered)]

    def until(place: int) -> int:
        """The sum of what lies below, times `whole`."""
        full, rest = divmod(place * count, whole)
        return whole * sums[full] + (rest * ordered[full] if rest else 0)

    raw = []
    for i in range(PARTS + 1):
        place = min(max(2 * i, 1), whole - 1)
        half = max(min(_WINDOW, place // _EARLY, (whole - place) // _LATE), 1)
        raw.append((until(place + half) - until(place - half)) / (2 * half * count))
    mean = math.fsum((a + b) / 2 for a, b in pairwise(raw)) / PARTS
    moved = [one - mean for one in raw]
    square = math.fsum((a * a + a * b + b * b) / 3 for a, b in pairwise(moved)) / PARTS
    deviation = math.sqrt(square)
    return tuple(round(one / deviation * ONE) for one in moved)
