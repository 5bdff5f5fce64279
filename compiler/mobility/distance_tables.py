"""Rates and losses by distance: CSV with a header, a row of which holds from its distance on."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

from compiler.mobility.tracks import BadMotion
from tdl import values
from tdl.bounds import MAX_DISTANCE_MM
from tdl.values import ValueProblem

MOST_ROWS = 10_000
_RATES = (["distance", "rate"], ["distance", "rate", "loss"])
_LOSSES = (["distance", "loss"],)


def rates(data: bytes) -> tuple[tuple[int, int, int], ...]:
    """mm, b/s and ppb. Raises BadMotion, here and below."""
    rows = _rows(data, _RATES)
    if not any(row[1] for row in rows):
        raise BadMotion(0, 0, "has a rate of 0 in all rows: nothing passes", "", "TS0195")
    return tuple((row[0], row[1], row[2] if len(row) > 2 else 0) for row in rows)


def losses(data: bytes) -> tuple[tuple[int, int], ...]:
    """mm and ppb."""
    return tuple((row[0], row[1]) for row in _rows(data, _LOSSES))


def _rows(data: bytes, headers: Sequence[list[str]]) -> list[tuple[int, ...]]:
    hint = "a header is " + " or ".join(",".join(one) for one in headers)
    try:
        reader = csv.reader(data.decode("utf-8-sig").splitlines(), strict=True)
        head = [word.strip().lower() for word in next(reader, [])]
        if head not in headers:
            raise BadMotion(1, 1, "has another header", hint, "TS0195")
        found: list[tuple[int, ...]] = []
        for words in reader:
            if words:
                found.append(_row(words, head, found, reader.line_num))
    except UnicodeDecodeError:
        raise BadMotion(0, 0, "is not UTF-8", hint, "TS0195") from None
    except csv.Error:
        raise BadMotion(reader.line_num, 1, "is not CSV", hint, "TS0195") from None
    if not found:
        raise BadMotion(0, 0, "has a header and no rows", "", "TS0195")
    return found


def _metres(text: str) -> int:
    plain = text.replace(".", "", 1).isdigit()
    return values.distance(f"{text}m" if plain else text)


_READ: dict[str, Callable[[str], int]] = {
    "distance": _metres,
    "rate": lambda text: int(text) if text.isdigit() and len(text) < 20 else values.rate(text),
    "loss": lambda text: values.probability(text, what="loss"),
}
_MOST = {"distance": MAX_DISTANCE_MM, "rate": 10**13, "loss": 10**9}


def _row(words: list[str], head: list[str], before: list[Any], line: int) -> tuple[int, ...]:
    found: list[int] = []
    for number, column in enumerate(head):
        try:
            value = _READ[column](words[number].strip())
        except (ValueProblem, IndexError):
            value = -1
        if not 0 <= value <= _MOST[column]:
            where = sum(len(word) + 1 for word in words[:number]) + 1
            raise BadMotion(line, where, f"has no {column} here", "such as 5km,10Mb", "TS0195")
        found.append(value)
    if len(words) != len(head):
        raise BadMotion(line, 1, f"has {len(words)} columns, not {len(head)}", "", "TS0195")
    if found[0] <= before[-1][0] if before else found[0]:
        hint = "the first row is of distance 0, and rows ascend"
        raise BadMotion(line, 1, "is not in order of distance", hint, "TS0195")
    if len(before) == MOST_ROWS:
        raise BadMotion(line, 1, f"is more than {MOST_ROWS:,} rows", "", "TS0195")
    return tuple(found)
