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
from tdl.formats.attributes import Attribute, each_once
from tdl.formats.element_names import ElementNames
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.suggest import did_you_mean

MAX_BYTES = 16 << 20
MAX_PLACES = 1000
_PARTS = {"rtt": 2, "one-way": 1}
_TIME = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *(ns|us|ms|s)?", re.ASCII)
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_HEAD = "the first row has the places that are reached: ,fra,iad"
_MISSING = ("", "-", "nan", "NaN", "null")

Cells = Mapping[tuple[str, str], Attribute]  # from, to


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    """Of one file, whose path is followed by `rtt` or `one-way`. None after a report."""
    if len(paths) == 1:
        span = Span(1, 1, 1, 2, paths[0])
        hint = f'write matrix "{paths[0]}" rtt, or … one-way'
        sink.error("TS0501", span, "a matrix does not say what its numbers are", hint)
        return None
    file, way = paths
    data = read(file)
    if len(data) > MAX_BYTES:
        message = f"the file has more than {MAX_BYTES >> 20} MiB"
        sink.error("TS0506", Span(1, 1, 1, 2, file), message)
        return None
    text = data.decode("utf-8-sig", "replace")
    cells = (_json if text.lstrip().startswith(("{", "[")) else _csv)(text, file, sink)
    if cells is None:
        return None
    if not cells:
        message = "the matrix has no place"
        sink.error("TS0501", Span(1, 1, 1, 2, file), message, _HEAD)
        return None
    return Translation(tuple(_Matrix(cells, way, sink).lines()))


def _csv(text: str, file: str, sink: Sink) -> Cells | None:
    first = text.split("\n", 1)[0]
    mark = next((one for one in ("\t", ";") if one in first), ",")
    table = _Table(sink)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
    lines = text.split("\n")
    try:
        for row in reader:
            line = reader.line_num
            span = Span(line, 1, line, max(2, len(lines[line - 1].rstrip("\r")) + 1), file)
            if any(one.strip() for one in row) and not row[0].startswith("#"):
                table.row([one.strip() for one in row], span)
            if sink.failed:
                return None
    except csv.Error as error:
        span = Span(max(1, reader.line_num), 1, max(1, reader.line_num), 2, file)
        sink.error("TS0508", span, f"this is not CSV: {error}")
        return None
    table.end()
    return table.cells


class _Table:
    """Rows of a CSV."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head: list[str] = []
        self._head_span = Span(1, 1, 1, 2)
        self._rows: dict[str, Span] = {}
        self.cells: dict[tuple[str, str], Attribute] = {}

    def row(self, row: list[str], span: Span) -> None:
        if not self._head:
            self._head, self._head_span = row[1:], span
            twice = next((one for one in self._head if self._head.count(one) > 1), None)
            if twice is not None:
                self._sink.error("TS0501", span, f"the column '{twice[:40]}' stands here twice")
            elif all(_TIME.fullmatch(one) or one in _MISSING for one in self._head):
                self._sink.error("TS0501", span, "the first row has no names of places", _HEAD)
            return
        origin = row[0]
        if origin in self._rows:
            self._sink.error("TS0501", span, f"the row of '{origin[:40]}' stands here twice")
        elif len(row) != len(self._head) + 1:
            wrong = f"{len(row) - 1} values, and the first row has {len(self._head)} places"
            self._sink.error("TS0501", span, wrong)
        self._rows[origin] = span
        for dest, value in zip(self._head, row[1:], strict=False):
            self.cells[origin, dest] = Attribute(value, span)

    def end(self) -> None:
        """Whether the places of rows are those of columns: else one may be a slip."""
        for origin, span in self._rows.items():
            if origin not in self._head:
                self._strange(origin, span, "row", "column")
        for dest in self._head:
            if self._rows and dest not in self._rows:
                self._strange(dest, self._head_span, "column", "row")

    def _strange(self, place: str, span: Span, has: str, lacks: str) -> None:
        hint = did_you_mean(place, [one for one in (*self._head, *self._rows) if one != place])
        message = f"'{place[:40]}' has a {has} and no {lacks}"
        self._sink.warning("TS0973", span, message, hint or "what is missing was not measured")


def _json(text: str, file: str, sink: Sink) -> Cells | None:
    whole = Span(1, 1, 1, 2, file)
    try:
        value: Any = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        col = getattr(error, "colno", 1)
        span = Span(line, col, line, col + 1, file)
        said = getattr(error, "msg", None) or str(error)
        sink.error(
            "TS0508", span, f"this is not JSON of a matrix: {said}", '{"fra": {"iad": 88.2}}'
        )
        return None
    found: dict[tuple[str, str], Attribute] = {}
    rows = value.items() if isinstance(value, dict) else (("", value),)
    for origin, row in rows:
        if not isinstance(row, dict) or any(isinstance(one, (dict, list)) for one in row.values()):
            message = f"the row of '{origin[:40]}' is no object of numbers"
            sink.error("TS0501", whole, message, '{"fra": {"iad": 88.2}}')
            return None
        for dest, one in row.items():
            found[origin, dest] = Attribute("" if one is None else str(one), whole)
    return found


class _Matrix:
    def __init__(self, cells: Cells, way: str, sink: Sink) -> None:
        self._cells, self._way, self._sink = cells, way, sink
        self._places = list(dict.fromkeys(one for pair in cells for one in pair))
        self._first = next(iter(cells.values())).span

    def lines(self) -> Iterator[Line]:
        if len(self._places) > MAX_PLACES:
            self._sink.error("TS0506", self._first, f"more than {MAX_PLACES} places")
            return
        names = ElementNames(self._places)
        for place in self._places:
            yield (Piece(f"bridge {names.take(place, place)}", self._first),)
        yield (Piece("routing direct", self._first),)
        missing = halves = 0
        for number, a in enumerate(self._places):
            for b in self._places[number + 1 :]:
                found = self._measured(a, b)
                missing += not found
                halves += len(found) == 1
                yield from self._links(names, found)
        if missing:
            message = f"{missing} pairs were not measured, and have no link"
            why = "packets between them go by way of other places"
            self._sink.warning("TS0973", self._first, message, why)
        if halves and self._way == "one-way":
            message = f"{halves} pairs were measured in one direction, which both get"
            self._sink.warning("TS0973", self._first, message, "measure the other one, too")

    def _measured(self, a: str, b: str) -> list[tuple[str, str, Attribute, str]]:
        """From, to, the cell and its delay, of each direction that has one."""
        cells = [(x, y, self._cells.get((x, y))) for x, y in ((a, b), (b, a))]
        return [
            (x, y, one, self._delay(one))
            for x, y, one in cells
            if one is not None and one.text not in _MISSING
        ]

    def _links(
        self, names: ElementNames, found: Sequence[tuple[str, str, Attribute, str]]
    ) -> Iterator[Line]:
        alike = len({delay for _, _, _, delay in found}) == 1
        for x, y, one, delay in found[:1] if alike else found:
            mark = "--" if alike else "->"
            yield (Piece(f"link {names[x]}{mark}{names[y]} latency={delay}", one.span),)

    def _delay(self, said: Attribute) -> str:
        match = _TIME.fullmatch(said.text)
        if match is None:
            hint = "milliseconds, or 88.2ms"
            self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is no time", hint)
            return "0"
        ns = Decimal(match[1]) * _NS[match[2] or "ms"] / _PARTS[self._way]
        return f"{int(ns.to_integral_value())}ns"
