"""The bytes of a file of movement to samples of it: which format, text or not, names of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from compiler.mobility import (
    read_bonnmotion,
    read_csv,
    read_gpx,
    read_setdest,
    read_visibility,
)
from compiler.mobility.tracks import BadMotion, Tracks
from tdl import ast
from tdl.tokens.words import MAX_NAME, MOTION_FORMATS, RESERVED

MOST_BYTES = 1 << 30
_ENDS = {
    ".json": "visibility",
    ".tcl": "setdest",
    ".setdest": "setdest",
    ".ns_movements": "setdest",
    ".movements": "bonnmotion",
    ".movements.gz": "bonnmotion",
    ".csv": "csv",
    ".gpx": "gpx",
}
_TEXTS: Mapping[str, Callable[[str, str | None], Tracks]] = {
    "visibility": read_visibility.read,
    "setdest": read_setdest.read,
    "bonnmotion": read_bonnmotion.read,
    "csv": read_csv.read,
}
_ODD = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)


def tracks_of(data: bytes, wanted: ast.Mobility) -> Tracks:
    """Raises BadMotion. Its names are such as bridges have."""
    kind = wanted.format or next(
        (kind for end, kind in _ENDS.items() if wanted.source.lower().endswith(end)), ""
    )
    if not kind:
        hint = f"write format={'|'.join(MOTION_FORMATS)}"
        raise BadMotion(0, 0, "has a name that does not tell its format", hint, "TS0194")
    if kind == "gpx" and wanted.unit is not None:
        hint = "GPX has degrees and metres: leave it out"
        raise BadMotion(0, 0, f"needs no unit={wanted.unit}", hint, "TS0194")
    if kind == "bonnmotion":
        data = read_bonnmotion.unpacked(data, MOST_BYTES)
    found = read_gpx.read(data, None) if kind == "gpx" else _TEXTS[kind](_text(data), wanted.unit)
    found.names = _names(found.names)
    return found


def _text(data: bytes) -> str:
    data = data.removeprefix(b"\xef\xbb\xbf")  # a byte order mark, as spreadsheets write it
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise BadMotion(line, column, "is not UTF-8") from None


def _names(said: list[str]) -> list[str]:
    """As bridges are called: `-` for what no name has, and `node-` before a digit."""
    found: dict[str, str] = {}
    for one in said:
        name = _ODD.sub("-", one).strip("-")
        if not name or not (name[0].isalpha() or name[0] == "_") or name in RESERVED:
            name = f"node-{name}".rstrip("-")
        if len(name) > MAX_NAME:
            raise BadMotion(0, 0, f"has a node {one!r:.80}, which is too long a name")
        if name in found:
            why = f"has nodes {found[name]!r:.60} and {one!r:.60}, both of which would be {name}"
            raise BadMotion(0, 0, why, "give one of them another name", "TS0193")
        found[name] = one
    return list(found)
