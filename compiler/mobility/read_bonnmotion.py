"""BonnMotion's `.movements`: a line for each node, `t x y` again and again, or `t x y z` in three
dimensions. Which of them it is follows from the times, which ascend. Also gzipped, as it writes it.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

from compiler.mobility.tracks import UNITS, BadMotion, Tracks, check_records, length, seconds
from compiler.plan.parts.motion import Point

_GZIP = b"\x1f\x8b"
_HINT = "a line has `t x y` or `t x y z` for each corner of a node's way"


def unpacked(data: bytes, most: int) -> bytes:
    """What is in a gzipped file, of so many bytes at most; else the file itself."""
    if not data.startswith(_GZIP):
        return data
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(data, most + 1)
    except zlib.error:
        raise BadMotion(0, 0, "is not what gzip writes", "unpack it") from None
    if len(found) > most:
        raise BadMotion(0, 0, f"has more than {most >> 20} MiB unpacked", "cut it", "TS0192")
    if not reader.eof or reader.unused_data:
        raise BadMotion(0, 0, "is not one whole file of gzip", "unpack it")
    return found


def read(text: str, unit: str | None) -> Tracks:
    """Raises BadMotion."""
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, words) for number, words in lines if words and not words[0].startswith("#")]
    width = next((one for one in (3, 4) if all(_ascend(words, one) for _, words in lines)), 0)
    if not width:
        _blame(lines)
    check_records(sum(len(words) // width for _, words in lines))
    tracks = Tracks()
    for number, words in lines:
        node = tracks.node(f"node-{len(tracks.names)}")
        tracks.points[node] = _track(words, width, number, UNITS[unit or "m"])
        tracks.end_ns = max(tracks.end_ns, tracks.points[node][-1][0])
    return tracks


def _ascend(words: list[str], width: int) -> bool:
    try:
        times = [seconds(word) for word in words[::width]]
    except ValueError:
        return False
    return len(words) % width == 0 and all(a <= b for a, b in pairwise(times))


def _blame(lines: list[tuple[int, list[str]]]) -> None:
    """The first line that neither of both can be."""
    for number, words in lines:
        if not any(_ascend(words, width) for width in (3, 4)):
            why = f"has {len(words)} numbers, which are no ascending times with places"
            raise BadMotion(number, 1, why, _HINT)
    raise BadMotion(0, 0, "has lines of two dimensions and of three", _HINT)


def _track(words: list[str], width: int, number: int, scale: int) -> list[tuple[int, Point]]:
    found: list[tuple[int, Point]] = []
    for first in range(0, len(words), width):
        try:
            x, y, *z = (length(word, scale) for word in words[first + 1 : first + width])
        except ValueError:
            where = sum(len(word) + 1 for word in words[: first + 1]) + 1
            raise BadMotion(number, where, "has no place here", _HINT) from None
        found.append((seconds(words[first]), (x, y, z[0] if z else 0)))
    return found
