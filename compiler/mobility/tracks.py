"""What a file of movement says, whatever its format, and its samples at equal times.

Readers (compiler/mobility/read_*.py) make `Tracks`: for each node times and positions. Between them
a node goes in a straight line, or with `holds` it stands until the next; before its first position
it stands there, or with `holds` it is not there yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compiler.plan.parts.motion import MOST_NODES, MOST_RECORDS, Motion, Point
from compiler.trace_files import BadTrace
from tdl.bounds import MAX_DISTANCE_MM, MAX_TIME_NS

MOST_LOOKS = 50_000_000  # times that two nodes are looked at
EVERY_NS = 10**9
UNITS = {"m": 10**3, "km": 10**6}
_FEWER = "write a longer every=, or leave nodes out"


# Decimals of foreign files as integers of a smaller unit, rounded half up. No floats.

_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_MOST_DIGITS, _MOST_EXPONENT = 60, 40


def scaled(text: str, scale: int) -> int:
    """The number times `scale`. ValueError for what is none, and for far too many digits."""
    match = _DECIMAL.fullmatch(text.strip())
    if match is None or len(text) > _MOST_DIGITS:
        raise ValueError(text[:_MOST_DIGITS])
    sign, whole, fraction, power = match.groups(default="")
    exponent = int(power or 0)
    if not whole + fraction or abs(exponent) > _MOST_EXPONENT:
        raise ValueError(text)
    value = int(whole + fraction) * scale * (-1 if sign == "-" else 1)
    shift = exponent - len(fraction)
    if shift >= 0:
        return value * int(10**shift)
    divisor = int(10**-shift)
    return (2 * value + divisor) // (2 * divisor)


def divided(value: int, by: int) -> int:
    """Rounded half up; `by` is above 0."""
    return (2 * value + by) // (2 * by)


class BadMotion(BadTrace):
    """Of a file: line and column count from 1, 0 where the whole file is to blame."""

    def __init__(
        self, line: int, column: int, why: str, hint: str = "", code: str = "TS0191"
    ) -> None:
        super().__init__(line, why, hint, code)
        self.column = column


@dataclass
class Tracks:
    names: list[str] = field(default_factory=list)
    points: list[list[tuple[int, Point]]] = field(default_factory=list)  # by node, ascending
    holds: bool = False
    sights: list[tuple[int, frozenset[tuple[int, int]]]] | None = None  # who sees whom from then on
    end_ns: int = 0
    quits: bool = False
    warnings: list[tuple[str, str, str]] = field(default_factory=list)  # code, message, hint

    def node(self, name: str) -> int:
        """A new one."""
        if len(self.names) == MOST_NODES:
            message = f"has more than {MOST_NODES} nodes"
            raise BadMotion(0, 0, message, "leave some of them out", "TS0192")
        self.names.append(name)
        self.points.append([])
        return len(self.names) - 1


def length(text: str, scale: int) -> int:
    """In mm. ValueError for one that no place has."""
    value = scaled(text, scale)
    if abs(value) > MAX_DISTANCE_MM:
        raise ValueError(text)
    return value


def seconds(text: str) -> int:
    """In ns. ValueError for one that no experiment has."""
    value = scaled(text, 10**9)
    if not 0 <= value <= MAX_TIME_NS // 4:
        raise ValueError(text)
    return value


def check_records(count: int) -> None:
    if count > MOST_RECORDS:
        raise BadMotion(0, 0, f"has more than {MOST_RECORDS:,} positions", _FEWER, "TS0192")


def sample(tracks: Tracks, every_ns: int | None) -> Motion:
    """Raises BadMotion where there is nothing, or too much."""
    nodes = len(tracks.names)
    if not nodes or not any(tracks.points):
        raise BadMotion(0, 0, "has no node in it", "there is nothing that could move")
    times = _times(tracks, every_ns)
    check_records(len(times) * nodes)
    if len(times) * nodes * (nodes - 1) // 2 > MOST_LOOKS:
        why = f"has {nodes} nodes at {len(times):,} times: more than {MOST_LOOKS:,} looks at a pair"
        raise BadMotion(0, 0, why, _FEWER, "TS0192")
    looked = [min(at, tracks.end_ns) for at in times]  # the last one shows how it ends
    places = [list(_placed(track, looked, holds=tracks.holds)) for track in tracks.points]
    sights = None if tracks.sights is None else list(_seen(tracks.sights, looked, nodes))
    return Motion(times, places, sights, tracks.end_ns, tracks.quits)


def _times(tracks: Tracks, every_ns: int | None) -> Sequence[int]:
    """Steps go on to the first that is not before the end, so that nothing of the file is lost."""
    if tracks.holds and every_ns is None:
        found = {at for track in tracks.points for at, _ in track if at <= tracks.end_ns}
        return sorted(found)
    every = every_ns or EVERY_NS
    steps = -(-tracks.end_ns // every)
    check_records(steps + 1)
    return [step * every for step in range(steps + 1)]


def _placed(
    track: Sequence[tuple[int, Point]], times: Sequence[int], *, holds: bool
) -> Iterator[Point | None]:
    number = -1  # of the last position that is not later
    for at in times:
        while number + 1 < len(track) and track[number + 1][0] <= at:
            number += 1
        if number < 0:
            yield None if holds or not track else track[0][1]
        elif holds or number + 1 == len(track):
            yield track[number][1]
        else:
            yield between(track[number], track[number + 1], at)


def between(one: tuple[int, Point], two: tuple[int, Point], at: int) -> Point:
    """Where it is on the way from one to the other."""
    (begin, a), (end, b) = one, two
    if end == begin:
        return b
    share, whole = at - begin, end - begin
    x, y, z = (p + divided((q - p) * share, whole) for p, q in zip(a, b, strict=True))
    return x, y, z


def _seen(
    sights: Sequence[tuple[int, frozenset[tuple[int, int]]]], times: Sequence[int], nodes: int
) -> Iterator[frozenset[int]]:
    now, number = frozenset[int](), 0
    for at in times:
        while number < len(sights) and sights[number][0] <= at:
            now = frozenset(i * nodes + j for i, j in sights[number][1])
            number += 1
        yield now
