"""Where the nodes of a network and their labels are drawn.

Input: nodes and links, the width of each label, sizes in points. Output: places and labels, in
points from the lower left corner. The figure is as large as the network needs.

An instance with one link stands on a ring around its other end (rings). All others, bridges and
instances between several, are the middles of such groups; the groups are discs whose places come
from stress majorization (stress). Parts that are not connected stand in rows, the large ones first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atan2, sqrt

from tstorm.plotting import rings, stress
from tstorm.plotting.rings import RingLabel, Style

MOST_GROUPS = 4000  # each has a distance to each other
_WIDE = 1.5  # of a picture with several parts, width to height
_PADDING = 4.0  # between a bridge's name and its box

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Graph:
    bridges: Sequence[bool]  # of each node, whether it is one
    links: Sequence[tuple[int, int]]
    widths: Sequence[float]  # of labels; 0: the node has none


@dataclass(frozen=True, slots=True)
class NodePlacement:
    width: float
    height: float
    places: tuple[Place, ...]  # by node
    texts: tuple[RingLabel | None, ...]  # by node; of a bridge it is the box around its name


@dataclass(frozen=True, slots=True)
class _Part:
    """What is connected, with its lower left corner at (0, 0)."""

    width: float
    height: float
    places: Mapping[int, Place]
    texts: Mapping[int, RingLabel]


@dataclass(frozen=True, slots=True)
class _Group:
    middle: int
    leaves: tuple[int, ...]
    around: tuple[int, ...]  # middles that it is linked to
    core: float  # its own radius, without the leaves
    radii: list[float]
    reach: float


def groups(graph: Graph) -> dict[int, list[int]]:
    """The middles with their leaves, by node."""
    near = _neighbours(graph)
    found: dict[int, list[int]] = {}
    leaves: list[tuple[int, int]] = []
    for node, others in enumerate(near):
        only = others[0] if len(others) == 1 else -1
        if graph.bridges[node] or only < 0 or (_alone(graph, near, only) and node < only):
            found[node] = []
        else:
            leaves.append((only, node))
    for middle, leaf in leaves:
        found[middle].append(leaf)
    return found


def arranged(graph: Graph, style: Style) -> NodePlacement:
    """Nodes and labels of the whole network."""
    near = _neighbours(graph)
    middles = groups(graph)
    made = {
        middle: _group(
            graph, style, middle, leaves, [one for one in near[middle] if one in middles]
        )
        for middle, leaves in middles.items()
    }
    parts = [_part(graph, style, made, members) for members in _connected(made)]
    return _packed(len(graph.bridges), parts, style.margin)


def _neighbours(graph: Graph) -> list[list[int]]:
    found: list[dict[int, None]] = [{} for _ in graph.bridges]
    for a, b in graph.links:
        found[a][b] = found[b][a] = None
    return [sorted(one) for one in found]


def _alone(graph: Graph, near: Sequence[Sequence[int]], node: int) -> bool:
    return not graph.bridges[node] and len(near[node]) == 1


def _group(
    graph: Graph, style: Style, middle: int, leaves: Sequence[int], around: Sequence[int]
) -> _Group:
    width = graph.widths[middle]
    core = style.dot + (style.line + width if width else 0.0)
    if graph.bridges[middle] and width:
        core = sqrt(width**2 + style.line**2) / 2 + _PADDING
    radii = rings.rings(style, core, len(leaves), len(around))
    reach = rings.reach(style, core, radii, [graph.widths[leaf] for leaf in leaves])
    return _Group(middle, tuple(leaves), tuple(around), core, radii, reach)


def _connected(made: Mapping[int, _Group]) -> list[list[int]]:
    found: list[list[int]] = []
    seen: set[int] = set()
    for first in made:
        if first in seen:
            continue
        seen.add(first)
        members = [first]
        for node in members:
            fresh = [other for other in made[node].around if other not in seen]
            seen.update(fresh)
            members += fresh
        found.append(sorted(members))
    return found


def _part(graph: Graph, style: Style, made: Mapping[int, _Group], members: Sequence[int]) -> _Part:
    number = {middle: index for index, middle in enumerate(members)}
    links = {
        (number[one], number[other]): made[one].reach + made[other].reach + style.link
        for one in members
        for other in made[one].around
        if one < other
    }
    found = stress.places([made[one].reach for one in members], links, style.margin)
    middles = dict(zip(members, found, strict=True))
    places: dict[int, Place] = {}
    texts: dict[int, RingLabel] = {}
    for one in members:
        _put(graph, style, made[one], middles, places, texts)
    return _cornered(style, places, texts)


def _put(
    graph: Graph,
    style: Style,
    group: _Group,
    middles: Mapping[int, Place],
    places: dict[int, Place],
    texts: dict[int, RingLabel],
) -> None:
    """A group's nodes and labels at its place."""
    x, y = places[group.middle] = middles[group.middle]
    rays = [atan2(middles[other][1] - y, middles[other][0] - x) for other in group.around]
    widths = [graph.widths[leaf] for leaf in group.leaves]
    leaves = rings.around(style, group.radii, rays, widths)
    for leaf, (a, b, text) in zip(group.leaves, leaves, strict=True):
        places[leaf] = (x + a, y + b)
        if text is not None:
            texts[leaf] = text.moved(x, y)
    width = graph.widths[group.middle]
    if not width:
        return
    if graph.bridges[group.middle]:
        texts[group.middle] = RingLabel(x, y, 0.0, width + 2 * _PADDING, style.line + _PADDING)
    else:
        rays += [atan2(b, a) for a, b, _ in leaves]
        texts[group.middle] = rings.beside(style, style.dot, width, rays).moved(x, y)


def _cornered(style: Style, places: Mapping[int, Place], texts: Mapping[int, RingLabel]) -> _Part:
    dot = style.dot + 1
    spots = [(x + a, y + b) for x, y in places.values() for a, b in ((-dot, -dot), (dot, dot))]
    spots += [corner for text in texts.values() for corner in text.corners()]
    low = min(x for x, _ in spots), min(y for _, y in spots)
    high = max(x for x, _ in spots), max(y for _, y in spots)
    return _Part(
        high[0] - low[0],
        high[1] - low[1],
        {node: (x - low[0], y - low[1]) for node, (x, y) in places.items()},
        {node: text.moved(-low[0], -low[1]) for node, text in texts.items()},
    )


def _packed(count: int, parts: Sequence[_Part], margin: float) -> NodePlacement:
    """In rows from the top; each part's lower left corner is at (0, 0)."""
    ordered = sorted(parts, key=lambda part: (-part.height, -part.width, min(part.places)))
    ground = sum((part.width + margin) * (part.height + margin) for part in parts)
    widest = max(*(part.width for part in parts), sqrt(ground * _WIDE))
    corners: list[Place] = []
    x = top = row = wide = 0.0
    for part in ordered:
        if x and x + part.width > widest:
            x, top, row = 0.0, top + row + margin, 0.0
        corners.append((x, top))
        wide, row = max(wide, x + part.width), max(row, part.height)
        x += part.width + margin
    high = top + row
    places: list[Place] = [(0.0, 0.0)] * count
    texts: list[RingLabel | None] = [None] * count
    for part, (left, above) in zip(ordered, corners, strict=True):
        low = high - above - part.height
        for node, (a, b) in part.places.items():
            places[node] = (round(left + a, 2), round(low + b, 2))
        for node, text in part.texts.items():
            texts[node] = text.moved(left, low)
    return NodePlacement(wide, high, tuple(places), tuple(texts))
