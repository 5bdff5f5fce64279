"""A matrix of measured delays as bridges, one for each place, and a link between each two.

CSV: the first row has the places that are reached, the first column those that are left. JSON: an
object of objects, `{"fra": {"iad": 88.2}}`. Numbers are milliseconds unless they have a unit; an
empty field, `-` or null is a pair that was not measured, and has no link. Of round trips a
direction has the half of what was measured from its beginning.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.attributes import Attribute
from tdl.formats.element_names import ElementNames
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation

MAX_BYTES = 16 << 20
MAX_PLACES = 1000
_PARTS = {"rtt": 2, "one-way": 1}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(ns|us|ms|s)?", re.ASCII)
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_MISSING = ("", "-", "nan", "NaN", "null")

Cells = Mapping[tuple[str, str], Attribute]  # from, to


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    """Of one file, whose path is followed by `rtt` or `one-way`. None after a report."""
    file, way = paths
    data = read(file)
    if len(data) > MAX_BYTES:
        sink.error(
            "TS0506", Span(1, 1, 1, 2, file), f"the file has more than {MAX_BYTES >> 20} MiB"
        )
        return None
    text = data.decode("utf-8-sig", "replace")
    cells = (_json if text.lstrip().startswith("{") else _csv)(text, file, sink)
    if cells is None:
        return None
    return Translation(tuple(_lines(cells, _PARTS[way], sink)))


def _csv(text: str, file: str, sink: Sink) -> Cells | None:
    first = text.split("\n", 1)[0]
    mark = next((one for one in ("\t", ";") if one in first), ",")
    found: dict[tuple[str, str], Attribute] = {}
    head: list[str] = []
    rows: set[str] = set()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
    lines = text.split("\n")
    try:
        for row in reader:
            line = reader.line_num
            span = Span(line, 1, line, max(2, len(lines[line - 1].rstrip("\r")) + 1), file)
            if not any(one.strip() for one in row) or row[0].startswith("#"):
                continue
            if not head:
                head = [one.strip() for one in row[1:]]
                continue
            origin = row[0].strip()
            if origin in rows or len(row) != len(head) + 1:
                wrong = f"{len(row) - 1} values, and the first row has {len(head)} places"
                message = (
                    f"the row of '{origin[:40]}' stands here twice" if origin in rows else wrong
                )
                sink.error("TS0501", span, message)
                return None
            rows.add(origin)
            for dest, value in zip(head, row[1:], strict=True):
                found[origin, dest] = Attribute(value.strip(), span)
    except csv.Error as error:
        span = Span(max(1, reader.line_num), 1, max(1, reader.line_num), 2, file)
        sink.error("TS0508", span, f"this is not CSV: {error}")
        return None
    return found


def _json(text: str, file: str, sink: Sink) -> Cells | None:
    whole = Span(1, 1, 1, 2, file)
    try:
        value: Any = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        col = getattr(error, "colno", 1)
        span = Span(line, col, line, col + 1, file)
        sink.error("TS0508", span, f"this is not JSON: {getattr(error, 'msg', 'too deep')}")
        return None
    found: dict[tuple[str, str], Attribute] = {}
    for origin, row in value.items():
        if not isinstance(row, dict) or any(isinstance(one, (dict, list)) for one in row.values()):
            message = f"the row of '{origin[:40]}' is no object of numbers"
            sink.error("TS0501", whole, message, '{"fra": {"iad": 88.2}}')
            return None
        for dest, one in row.items():
            found[origin, dest] = Attribute("" if one is None else str(one), whole)
    return found


def _lines(cells: Cells, parts: int, sink: Sink) -> Iterator[Line]:
    places = list(dict.fromkeys(one for pair in cells for one in pair))
    first = next(iter(cells.values()), Attribute("", Span(1, 1, 1, 2))).span
    if len(places) > MAX_PLACES:
        sink.error("TS0506", first, f"more than {MAX_PLACES} places")
        return
    names = ElementNames()
    for place in places:
        yield (Piece(f"bridge {names.take(place, place)}", first),)
    yield (Piece("routing direct", first),)
    missing = 0
    for number, a in enumerate(places):
        for b in places[number + 1 :]:
            there, back = cells.get((a, b)), cells.get((b, a))
            ways = [one for one in (there, back) if one is not None and one.text not in _MISSING]
            delays = [_delay(one, parts, sink) for one in ways]
            missing += not ways
            if len(ways) < 2 or delays[0] == delays[1]:
                for one, delay in zip(ways[:1], delays[:1], strict=True):
                    yield (Piece(f"link {names[a]}--{names[b]} latency={delay}", one.span),)
            else:
                for (x, y), one, delay in zip(((a, b), (b, a)), ways, delays, strict=True):
                    yield (Piece(f"link {names[x]}->{names[y]} latency={delay}", one.span),)
    if missing:
        message = f"{missing} pairs were not measured, and have no link"
        sink.warning("TS0973", first, message, "packets between them go by way of other places")


def _delay(said: Attribute, parts: int, sink: Sink) -> str:
    match = _TIME.fullmatch(said.text)
    if match is None:
        sink.error("TS0501", said.span, f"'{said.text[:40]}' is no time", "milliseconds, or 88.2ms")
        return "0"
    ns = Decimal(match[1]) * _NS[match[2] or "ms"] / parts
    return f"{int(ns.to_integral_value())}ns"
