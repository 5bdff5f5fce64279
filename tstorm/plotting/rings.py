"""Instances on rings around what they are linked to, in the angles that its other links leave free.

Input: how many, how wide their labels are, the directions of the other links, sizes in points.
Output: places and labels as if the middle were at (0, 0). No label lies on another or on an
instance: the ring is wide enough for labels that stand on it like spokes, and where all can lie
level without touching anything, they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, ceil, cos, degrees, hypot, pi, radians, sin, sqrt

FULL = 2 * pi
_LEVEL = 12  # instances around one middle whose labels may lie level: more look untidy
_UPRIGHT = 0.35  # cosine below which an instance is above or below the middle
_DEEP = 4.0  # rings of n dots are sqrt(n) by this: more make it hard to see the links in them
_BESIDE = 3.0  # points between an instance and its label


@dataclass(frozen=True, slots=True)
class Style:
    """Sizes in points."""

    line: float  # height of text
    dot: float  # radius of an instance
    pitch: float  # between two instances on a ring, and to a link between them
    spoke: float  # a link to an instance is so long at least
    step: float  # between rings; 0: there is one, as wide as it has to be
    link: float  # between the outermost of two groups that are linked
    margin: float  # between any two groups


@dataclass(frozen=True, slots=True)
class RingLabel:
    """A label, by its middle; `angle` is how it is turned, in degrees."""

    x: float
    y: float
    angle: float
    width: float
    height: float

    def corners(self) -> list[tuple[float, float]]:
        turn = radians(self.angle)
        along = (cos(turn) * self.width / 2, sin(turn) * self.width / 2)
        up = (-sin(turn) * self.height / 2, cos(turn) * self.height / 2)
        return [
            (self.x + a * along[0] + b * up[0], self.y + a * along[1] + b * up[1])
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]

    def moved(self, x: float, y: float) -> RingLabel:
        return RingLabel(self.x + x, self.y + y, self.angle, self.width, self.height)


def rings(style: Style, core: float, count: int, links: int) -> list[float]:
    """Radii of the rings that `count` instances take around a core with so many other links."""
    first = core + style.spoke + style.dot
    if not count:
        return []
    if not style.step:
        return [max(first, (count + links) * style.pitch / FULL)]
    many = ceil(sqrt(count) / _DEEP)
    first = max(first, count * style.pitch / FULL / many - style.step * many / 2)
    found: list[float] = []
    while count > 0:
        found.append(first + len(found) * style.step)
        count -= _room(style, found[-1], links)
    return found


def reach(style: Style, core: float, radii: Sequence[float], widths: Sequence[float]) -> float:
    """The radius of all of it."""
    if not radii:
        return core
    longest = max(widths)
    label = _BESIDE + longest + style.line if longest else 0.0
    return radii[-1] + style.dot + label


def around(
    style: Style, radii: Sequence[float], rays: Sequence[float], widths: Sequence[float]
) -> list[tuple[float, float, RingLabel | None]]:
    """Of each instance its place and its label."""
    found: list[tuple[float, float]] = []
    for number, radius in enumerate(radii):
        left = len(widths) - len(found)
        last = number == len(radii) - 1
        taken = left if last else min(left, _room(style, radius, len(rays)))
        found += [(radius * cos(a), radius * sin(a)) for a in spread(taken, rays)]
    labels = _level(style, found, rays, widths) or _spokes(style, found, widths)
    return [(x, y, text) for (x, y), text in zip(found, labels, strict=True)]


def spread(count: int, rays: Sequence[float]) -> list[float]:
    """Angles, as far from each other and from the rays as can be."""
    edges = sorted(angle % FULL for angle in rays) or [pi if count == 1 else pi / 2]
    gaps = [
        (begin, end - begin)
        for begin, end in zip(edges, [*edges[1:], edges[0] + FULL], strict=True)
    ]
    taken = [0] * len(gaps)
    for _ in range(count):
        widest = max(range(len(gaps)), key=lambda gap: (gaps[gap][1] / (taken[gap] + 1), -gap))
        taken[widest] += 1
    return [
        begin + width * (number + 0.5) / many
        for (begin, width), many in zip(gaps, taken, strict=True)
        for number in range(many)
    ]


def beside(style: Style, dot: float, width: float, rays: Sequence[float]) -> RingLabel:
    """The label of an instance in the middle: where it hides no link, else where few are."""
    tried = [_flat(style, 0.0, 0.0, dot, angle, width) for angle in (0.0, pi, -pi / 2, pi / 2)]
    far = dot + _BESIDE + width
    hidden = [sum(_crosses(text, _end(ray, far)) for ray in rays) for text in tried]
    return tried[hidden.index(min(hidden))]


def _room(style: Style, radius: float, links: int) -> int:
    return max(int(FULL * radius / style.pitch) - links, 1)


def _end(angle: float, far: float) -> tuple[float, float]:
    return far * cos(angle), far * sin(angle)


def _spokes(
    style: Style, places: Sequence[tuple[float, float]], widths: Sequence[float]
) -> list[RingLabel | None]:
    found: list[RingLabel | None] = []
    for (x, y), width in zip(places, widths, strict=True):
        if not width:
            found.append(None)
            continue
        radius, angle = hypot(x, y), atan2(y, x)
        middle = radius + style.dot + _BESIDE + width / 2
        turned = degrees(angle) + (180 if cos(angle) < 0 else 0)
        found.append(RingLabel(*_end(angle, middle), turned, width, style.line))
    return found


def _level(
    style: Style,
    places: Sequence[tuple[float, float]],
    rays: Sequence[float],
    widths: Sequence[float],
) -> list[RingLabel | None]:
    """Empty if they would touch each other, an instance or a link."""
    if len(places) > _LEVEL or not all(widths):
        return []
    found = [
        _flat(style, x, y, style.dot, atan2(y, x), width)
        for (x, y), width in zip(places, widths, strict=True)
    ]
    far = max((hypot(*place) for place in places), default=0.0) + max(widths, default=0.0)
    ends = [*places, *(_end(ray, far) for ray in rays)]
    for number, text in enumerate(found):
        if any(_touch(text, other) for other in found[:number]):
            return []
        if any(_crosses(text, end) for end in ends):
            return []
    return list(found)


def _flat(style: Style, x: float, y: float, dot: float, angle: float, width: float) -> RingLabel:
    """A level label on the side of an instance that looks away from the middle."""
    if abs(cos(angle)) < _UPRIGHT:
        aside = dot + style.line / 2 + 1
        return RingLabel(x, y + (aside if sin(angle) > 0 else -aside), 0.0, width, style.line)
    aside = dot + _BESIDE + width / 2
    return RingLabel(x + (aside if cos(angle) > 0 else -aside), y, 0.0, width, style.line)


def _touch(one: RingLabel, two: RingLabel) -> bool:
    """Of level ones."""
    return (
        abs(one.x - two.x) < (one.width + two.width) / 2
        and abs(one.y - two.y) < (one.height + two.height) / 2
    )


def _crosses(text: RingLabel, end: tuple[float, float]) -> bool:
    """Whether a line from the middle to `end` runs over a level label: looked at every 2 points."""
    steps = max(ceil(hypot(*end) / 2), 1)
    return any(
        abs(end[0] * step / steps - text.x) < text.width / 2
        and abs(end[1] * step / steps - text.y) < text.height / 2
        for step in range(steps + 1)
    )
