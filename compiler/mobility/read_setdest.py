"""Scripts of ns-2 as `setdest` writes them: where each node is at first, and where it goes then.

    $node_(0) set X_ 150.0
    $ns_ at 10.0 "$node_(0) setdest 250.0 100.0 5.0"      # to x y, with so many units a second
    $ns_ at 20.0 "$node_(0) set Y_ 3.0"

`$god_`, comments and empty lines tell of no movement. Nodes are called `node-0`, in the order in
which the file first names them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from math import isqrt
from typing import NamedTuple, NoReturn

from compiler.mobility.tracks import UNITS, BadMotion, Tracks, between, length, seconds
from compiler.plan.parts.motion import Point
from tdl.bounds import MAX_TIME_NS

_NUMBER = r"([-+.0-9eE]+)"
_NODE = r"\$node_\(([0-9]{1,9})\)"
_PLACE = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+{_NUMBER}", re.ASCII)
_GO = re.compile(rf"{_NODE}\s+setdest\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}", re.ASCII)
_AT = re.compile(rf'\$ns_\s+at\s+{_NUMBER}\s+"([^"]*)"', re.ASCII)
_GOD = re.compile(r"(\$ns_\s+at\s+\S+\s+\"\s*)?\$god_|set\s+god_", re.ASCII)
_HINT = 'lines are `$node_(0) set X_ 1.5` or `$ns_ at 2.0 "$node_(0) setdest X Y SPEED"`'


class _Order(NamedTuple):
    at_ns: int
    line: int
    axis: int  # of `set`; -1: it goes to x, y with so many mm a second
    x: int
    y: int = 0
    speed: int = 0


def read(text: str, unit: str | None) -> Tracks:
    """Raises BadMotion."""
    scale = UNITS[unit or "m"]
    orders: dict[int, list[_Order]] = defaultdict(list)
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if not said or said.startswith("#") or _GOD.match(said):
            continue
        node, order = _order(said, number, line, scale)
        orders[node].append(order)
    tracks = Tracks()
    for number, given in orders.items():
        node = tracks.node(f"node-{number}")
        tracks.points[node] = _track(sorted(given, key=lambda one: one.at_ns))
        tracks.end_ns = max(tracks.end_ns, tracks.points[node][-1][0])
    return tracks


def _fail(number: int, line: str, part: str, why: str) -> NoReturn:
    raise BadMotion(number, max(line.find(part), 0) + 1, why, _HINT)


def _order(said: str, number: int, line: str, scale: int) -> tuple[int, _Order]:
    timed = _AT.fullmatch(said.rstrip(";").rstrip())
    inner, at = (timed[2].strip(), timed[1]) if timed else (said, "0")
    place, goes = _PLACE.fullmatch(inner), _GO.fullmatch(inner)
    found = place or (goes if timed else None)
    if found is None:
        _fail(number, line, inner, "is no movement of a node")
    try:
        at_ns = seconds(at)
        if place is not None:
            axis = "XYZ".index(place[2])
            return int(place[1]), _Order(at_ns, number, axis, length(place[3], scale))
        x, y, speed = (length(word, scale) for word in found.groups()[1:])
    except ValueError as problem:
        word = str(problem)
        _fail(number, line, word, "has a number that is none here")
    if speed < 0:
        _fail(number, line, found[4], "has a speed below 0")
    return int(found[1]), _Order(at_ns, number, -1, x, y, speed)


def _track(orders: list[_Order]) -> list[tuple[int, Point]]:
    """Its corners. It stands between the end of one way and the next order."""
    found: list[tuple[int, Point]] = [(0, (0, 0, 0))]
    for order in orders:
        while len(found) > 1 and found[-2][0] >= order.at_ns:
            found.pop()  # it never got there
        at, here = found[-1]
        if at > order.at_ns:
            here = between(found[-2], found[-1], order.at_ns)
            found.pop()
        if not found or found[-1] != (order.at_ns, here):
            found.append((order.at_ns, here))
        if order.axis >= 0:
            there = tuple(order.x if i == order.axis else old for i, old in enumerate(here))
            found.append((order.at_ns, (there[0], there[1], there[2])))
            if not order.at_ns:
                found = found[-1:]
        elif order.speed:
            way = isqrt((order.x - here[0]) ** 2 + (order.y - here[1]) ** 2)
            arrives = order.at_ns + way * 10**9 // order.speed
            if way and arrives <= MAX_TIME_NS // 4:
                found.append((arrives, (order.x, order.y, here[2])))
    return found
