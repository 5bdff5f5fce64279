"""CSV of positions: a header with `time`, `node`, `x`, `y` and perhaps `z`, in any order."""

from __future__ import annotations

import csv

from compiler.mobility.tracks import UNITS, BadMotion, Tracks, check_records, length
from tdl import values
from tdl.bounds import MAX_TIME_NS
from tdl.values import ValueProblem

_COLUMNS = ("time", "node", "x", "y", "z")
_HINT = "a header is time,node,x,y or time,node,x,y,z"


def read(text: str, unit: str | None) -> Tracks:
    """Raises BadMotion."""
    reader = csv.reader(text.splitlines(), strict=True)
    tracks, known = Tracks(), dict[str, int]()
    taken: set[tuple[int, int]] = set()
    unsorted = rows = 0
    try:
        columns = _header([word.strip().lower() for word in next(reader, [])])
        for words in reader:
            if not words:
                continue
            rows += 1
            check_records(rows)
            at, name, place = _row(words, columns, reader.line_num, UNITS[unit or "m"])
            if name not in known:
                known[name] = tracks.node(name)
            track = tracks.points[known[name]]
            if (known[name], at) in taken:
                why = "has a second place of its node for one time"
                raise BadMotion(reader.line_num, 1, why)
            taken.add((known[name], at))
            if track and at < track[-1][0]:
                unsorted = unsorted or reader.line_num
            x, y, *z = place
            track.append((at, (x, y, z[0] if z else 0)))
    except csv.Error:
        raise BadMotion(reader.line_num, 1, "is not CSV", _HINT) from None
    if unsorted:
        what = f"line {unsorted} is earlier than the one before of its node"
        tracks.warnings.append(("TS0980", what, "sort the rows by time"))
    for track in tracks.points:
        track.sort(key=lambda one: one[0])
        tracks.end_ns = max(tracks.end_ns, track[-1][0])
    return tracks


def _header(words: list[str]) -> list[int]:
    """Where the columns stand, by `_COLUMNS`."""
    wanted = _COLUMNS if "z" in words else _COLUMNS[:-1]
    if sorted(words) != sorted(wanted):
        raise BadMotion(1, 1, "has another header", _HINT)
    return [words.index(word) for word in wanted]


def _row(words: list[str], columns: list[int], line: int, scale: int) -> tuple[int, str, list[int]]:
    if len(words) != len(columns):
        raise BadMotion(line, 1, f"has {len(words)} columns instead of {len(columns)}", _HINT)
    time, name, *places = (words[column].strip() for column in columns)
    if not name:
        raise BadMotion(line, 1, "names no node", _HINT)
    plain = time.replace(".", "", 1).isdigit()
    try:
        at = values.time(f"{time}s" if plain else time)
    except ValueProblem:
        at = MAX_TIME_NS
    if at > MAX_TIME_NS // 4:
        raise BadMotion(line, 1, "has no time in seconds or with a unit", _HINT)
    found = []
    for text, column in zip(places, _COLUMNS[2:], strict=False):
        try:
            found.append(length(text, scale))
        except ValueError:
            where = sum(len(word) + 1 for word in words[: columns[_COLUMNS.index(column)]]) + 1
            raise BadMotion(line, where, f"has no number in column {column}", _HINT) from None
    return at, name, found
