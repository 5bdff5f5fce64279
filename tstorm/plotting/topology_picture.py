"""The network at a moment: what is up, cut off or gone, and what the links carry.

Input: a plan's nodes and links at T, and of a run what its links carried then (loads). Each half of
a link is the direction that leaves the node at its end. Up to SMALL instances all have names; a
larger network has names of bridges, of a very large one those of the bridges with most links.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.plan.event_kinds import CUT, DOWN, UP
from compiler.plan.properties import LinkState
from runtime.errors import RunError
from runtime.rundir.sample_reader import LINKS
from tstorm import units
from tstorm.plotting import canvas
from tstorm.plotting.marks import BUCKETS
from tstorm.plotting.pair_picture import Drawn
from tstorm.plotting.subject import SECOND, Subject

if TYPE_CHECKING:
    from compiler.plan.types import Link
    from tstorm.plotting.node_placement import NodePlacement
    from tstorm.plotting.rings import Style

SMALL = 120  # instances, that have names
MEDIUM, LARGEST = 400, 60  # bridges, that all have names; of more, those that do
MOST_PIXELS = 12_000  # of a PNG, along its longer side
_FONT, _FINE = 9.0, 6.0
_BESIDE = 5.0  # points between links that join the same two nodes
_EDGE, _TITLE, _LEAST = 12.0, 16.0, 330.0  # points: around it all, the title's height, width
# How a direction is drawn that carries up to this share of its rate: colour, width.
_LOADS = (
    (0.1, canvas.SKY, 1.2),
    (0.5, canvas.BLUE, 1.8),
    (0.9, canvas.AMBER, 2.6),
    (float("inf"), canvas.ORANGE, 3.6),
)
_UNKNOWN = (canvas.GREY, 1.0)
_LOST = (canvas.GREY, 0.9)  # dashed
_DASHES = (0, (2.5, 2.5))
# Of an instance: colour of the face and of the edge.
_INSTANCES = {
    UP: (canvas.GREEN, "white"),
    CUT: (canvas.AMBER, canvas.BLACK),
    DOWN: ("white", canvas.GREY),
}
_SAID = {UP: "instance", CUT: "instance, cut off", DOWN: "instance that is not there"}


_Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Moment:
    what: Subject
    at_ns: int
    nodes: Sequence[str]
    links: Sequence[LinkState]
    loads: Loads | None

    def style(self, link: int) -> int:
        """Which of _LOADS it is, -1 unknown (no limit, or nothing measured), -2 down."""
        state = self.links[link]
        if not state.up:
            return -2
        if self.loads is None or not state.rate_bps:
            return -1
        share = self.loads.rates_bps.get(link, 0.0) / state.rate_bps
        return next(number for number, (most, _, _) in enumerate(_LOADS) if share <= most)

    def instances(self, word: str) -> list[int]:
        """Those in this state."""
        nodes = enumerate(self.what.plan.topology.nodes)
        return [n for n, one in nodes if one.service >= 0 and self.nodes[n] == word]

    def bridges(self, word: str) -> list[int]:
        nodes = enumerate(self.what.plan.topology.nodes)
        return [n for n, one in nodes if one.service < 0 and self.nodes[n] == word]


def draw(what: Subject, at_ns: int, suffix: str) -> Drawn:
    """RunError, PlanError, CommandError."""
    return TopologyPictures(what).at(at_ns, suffix)


class TopologyPictures:
    """Of one network at several moments: each node stands where it stands in all others.
    CommandError without matplotlib."""

    def __init__(self, what: Subject) -> None:
        self._what = what
        with canvas.drawing():
            self._names, self._notes = _names(what)
            self._place = _placed(what, self._names)

    def at(self, at_ns: int, suffix: str) -> Drawn:
        """RunError, PlanError."""
        what = self._what
        fold = what.plan.folded_at(at_ns)
        found = loads(what, at_ns) if what.run is not None else None
        measured = found if isinstance(found, Loads) else None
        moment = _Moment(what, at_ns, fold.nodes, fold.links, measured)
        missing = [f"links have no colours: {found}"] if isinstance(found, str) else []
        with canvas.drawing() as figures:
            data = self._drawn(figures, moment, suffix)
        return Drawn(data, (*self._notes, *missing))

    def _drawn(self, figures: Any, moment: _Moment, suffix: str) -> bytes:
        placed, style, font = self._place
        key = rows(_key(moment), max(placed.width, _LEAST), canvas.width)
        figure, axes, left = _page(figures, placed, len(key) * LEGEND_POINTS)
        fine = 1.0 if font == _FONT else 0.6
        _links(axes, moment, placed, fine)
        _nodes(axes, moment, placed, style, fine)
        _texts(axes, moment, placed, self._names, font)
        _draw_legend(axes, key, left, -_EDGE)
        title = f"{canvas.label(moment.what.name, 50)} at {units.duration(moment.at_ns)}"
        axes.text(left, placed.height + _EDGE, title, weight="bold")
        dpi = MOST_PIXELS / max(figure.get_size_inches())
        return canvas.encoded(figure, suffix, dpi)


def _names(what: Subject) -> tuple[list[str], list[str]]:
    """Of each node what is written at it, and what is left out."""
    topology = what.plan.topology
    instances = [node for node, one in enumerate(topology.nodes) if one.service >= 0]
    bridges = [node for node, one in enumerate(topology.nodes) if one.service < 0]
    notes = []
    if len(instances) > SMALL:
        notes.append(f"the {len(instances)} instances have no names: they are more than {SMALL}")
        instances = []
    if len(bridges) > MEDIUM:
        degree = [0] * len(topology.nodes)
        for link in topology.links:
            degree[link.src] += 1
        bridges = sorted(bridges, key=lambda node: (-degree[node], node))[:LARGEST]
        notes.append(f"only the {LARGEST} bridges with most links have names")
    named = {*instances, *bridges}
    nodes = enumerate(topology.nodes)
    return [canvas.label(one.name, 24) if n in named else "" for n, one in nodes], notes


def _placed(what: Subject, names: Sequence[str]) -> tuple[NodePlacement, Style, float]:
    """The layout, in which sizes, with texts in which size."""
    from tstorm.plotting import node_placement  # takes numpy, which is there where matplotlib is
    from tstorm.plotting.rings import Style

    topology = what.plan.topology
    bridges = [one.service < 0 for one in topology.nodes]
    font = _FONT if all(names) else _FINE
    style = (
        Style(line=11, dot=3.5, pitch=12.5, spoke=14, step=0, link=22, margin=12)
        if all(names)
        else Style(line=7, dot=1.8, pitch=5.5, spoke=5, step=6, link=8, margin=6)
    )
    widths = [canvas.width(name, font) if name else 0.0 for name in names]
    ends = {frozenset((one.src, one.dst)): (one.src, one.dst) for one in topology.links[::2]}
    links = list(ends.values())  # several between two nodes are as one
    graph = node_placement.Graph(bridges, links, widths)
    groups = len(node_placement.groups(graph))
    if groups > node_placement.MOST_GROUPS:
        raise RunError(
            f"the network has {groups:,} bridges and instances that have other than one link; "
            f"at most {node_placement.MOST_GROUPS:,} can be drawn"
        )
    return node_placement.arranged(graph, style), style, font


def _page(figures: Any, placed: NodePlacement, key: float) -> tuple[Any, Any, float]:
    """A figure, its axes in points, (0, 0) being the network's lower left corner, and where texts
    begin."""
    width = max(placed.width, _LEAST) + 2 * _EDGE
    height = placed.height + key + _TITLE + 3 * _EDGE
    figure = figures(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    left, low = (placed.width - width) / 2, -key - 2 * _EDGE
    axes.set_xlim(left, left + width)
    axes.set_ylim(low, low + height)
    axes.set_autoscale_on(False)
    return figure, axes, left + _EDGE


def _links(axes: Any, moment: _Moment, placed: NodePlacement, fine: float) -> None:
    """Little loaded ones first, so that the others lie on them."""
    from matplotlib.collections import LineCollection

    found: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = {}
    links = moment.what.plan.topology.links
    beside = _beside(links)
    for number in range(0, len(links), 2):
        src, dst = links[number].src, links[number].dst
        start, end = _aside(_seen(placed, src, dst), _seen(placed, dst, src), beside[number // 2])
        there, back = moment.style(number), moment.style(number + 1)
        if there == back:
            found.setdefault(there, []).append((start, end))
            continue
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        found.setdefault(there, []).append((start, middle))
        found.setdefault(back, []).append((middle, end))
    for kind, lines in sorted(found.items()):
        colour, width = _stroke(kind)
        dashes = _DASHES if kind == -2 else "solid"
        axes.add_collection(
            LineCollection(
                lines, colors=colour, linewidths=width * fine, linestyles=[dashes], zorder=2
            ),
            autolim=False,
        )


def _beside(links: Sequence[Link]) -> list[float]:
    """Of each link how far it lies from the straight line between its nodes, in points to the left
    of its first direction: several between the same two lie beside each other."""
    between: dict[frozenset[int], list[int]] = {}
    for number, one in enumerate(links[::2]):
        between.setdefault(frozenset((one.src, one.dst)), []).append(number)
    found = [0.0] * (len(links) // 2)
    for group in between.values():
        for place, number in enumerate(group):
            way = 1 if links[2 * number].src < links[2 * number].dst else -1
            found[number] = way * _BESIDE * (place - (len(group) - 1) / 2)
    return found


def _aside(start: _Point, end: _Point, far: float) -> tuple[_Point, _Point]:
    across, up = end[0] - start[0], end[1] - start[1]
    share = far / (math.hypot(across, up) or 1.0)
    x, y = -up * share, across * share
    return (start[0] + x, start[1] + y), (end[0] + x, end[1] + y)


def _seen(placed: NodePlacement, node: int, other: int) -> tuple[float, float]:
    """Where a link begins to be seen: at the edge of the box of a bridge with a name."""
    (x, y), (a, b) = placed.places[node], placed.places[other]
    text = placed.texts[node]
    if text is None or abs(text.x - x) + abs(text.y - y) > 0.1:  # or the name is beside it
        return x, y
    shares = [
        half / abs(far) for half, far in ((text.width / 2, a - x), (text.height / 2, b - y)) if far
    ]
    share = min([0.5, *shares])
    return x + (a - x) * share, y + (b - y) * share


def _stroke(kind: int) -> tuple[str, float]:
    if kind < 0:
        return _LOST if kind == -2 else _UNKNOWN
    return _LOADS[kind][1:]


def _nodes(axes: Any, moment: _Moment, placed: NodePlacement, style: Style, fine: float) -> None:
    """Instances, and bridges without a name; others are boxes."""
    for word in _INSTANCES:
        _dots(axes, placed, moment.instances(word), _mark(word, style.dot * 2, fine))
    for word in (UP, DOWN):
        unnamed = [node for node in moment.bridges(word) if placed.texts[node] is None]
        _dots(axes, placed, unnamed, _square(word, style.dot * 2 + 1, fine))


def _dots(axes: Any, placed: NodePlacement, nodes: Sequence[int], how: Mapping[str, Any]) -> None:
    if nodes:
        xs, ys = zip(*(placed.places[node] for node in nodes), strict=True)
        axes.plot(xs, ys, linestyle="", **how, zorder=4)


def _mark(word: str, size: float, fine: float) -> dict[str, Any]:
    face, edge = _INSTANCES[word]
    return {
        "marker": "X" if word == CUT else "o",
        "markersize": size + (2 if word == CUT else 1) * fine,
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": (1.2 if word == DOWN else 0.7) * fine,
    }


def _square(word: str, size: float, fine: float) -> dict[str, Any]:
    return {
        "marker": "s",
        "markersize": size,
        "markerfacecolor": canvas.BLACK if word == UP else "white",
        "markeredgecolor": canvas.BLACK if word == UP else canvas.GREY,
        "markeredgewidth": fine,
    }


def _texts(
    axes: Any, moment: _Moment, placed: NodePlacement, names: Sequence[str], font: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    for node, text in enumerate(placed.texts):
        if text is None:
            continue
        up = moment.nodes[node] == UP
        shown = {"ha": "center", "va": "center_baseline", "rotation_mode": "anchor", "zorder": 6}
        box = None
        if moment.what.plan.topology.nodes[node].service < 0:
            corner = (text.x - text.width / 2, text.y - text.height / 2)
            axes.add_patch(
                FancyBboxPatch(
                    corner,
                    text.width,
                    text.height,
                    boxstyle="round,pad=0,rounding_size=2",
                    facecolor=canvas.BLACK if up else "white",
                    edgecolor=canvas.BLACK if up else canvas.GREY,
                    linestyle="solid" if up else _DASHES,
                    linewidth=0.8,
                    zorder=5,
                )
            )
            colour = "white" if up else canvas.GREY
        else:
            colour = canvas.GREY if moment.nodes[node] == DOWN else canvas.BLACK
            box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
        axes.text(
            text.x,
            text.y,
            names[node],
            rotation=text.angle,
            color=colour,
            fontsize=font,
            bbox=box,
            **shown,
        )


def _key(moment: _Moment) -> list[Item]:
    """What the marks that there are mean."""
    found = [
        Item(_SAID[word], mark=tuple(_mark(word, 7, 1).items()))
        for word in _INSTANCES
        if moment.instances(word)
    ]
    for word, said in ((UP, "bridge"), (DOWN, "bridge that is not there")):
        if moment.bridges(word):
            found.append(Item(said, mark=tuple(_square(word, 7, 1).items())))
    kinds = {moment.style(link) for link in range(len(moment.links))}
    return found + [_line(moment, kind) for kind in sorted(kinds, reverse=True)]


def _line(moment: _Moment, kind: int) -> Item:
    colour, width = _stroke(kind)
    dashes = _DASHES if kind == -2 else "solid"
    how = (("color", colour), ("linewidth", width), ("linestyle", dashes))
    if kind < 0:
        up = "link" if moment.loads is None else "link without a limit"
        return Item("link that is down" if kind == -2 else up, line=how)
    low = _LOADS[kind - 1][0] if kind else 0.0
    most = min(_LOADS[kind][0], 1.0)
    return Item(f"{low:.0%} to {most:.0%} of its rate", line=how)


# What the marks of a picture mean, as rows of samples with a text, below it.
#
# Input: samples with their texts, the width that there is. Output: the same in rows, which are
# drawn on axes whose unit is the point.

LEGEND_POINTS = 15.0
FONT = 8.0
_LINE, _MARK, _BETWEEN = 22.0, 12.0, 14.0  # a sample with the space after it; between two

Width = Callable[[str, float], float]  # of a text in a size


@dataclass(frozen=True, slots=True)
class Item:
    """A line, or a mark: how matplotlib draws it."""

    text: str
    line: tuple[tuple[str, Any], ...] = ()
    mark: tuple[tuple[str, Any], ...] = ()

    @property
    def sample(self) -> float:
        return _LINE if self.line else _MARK


Rows = list[list[tuple[float, Item]]]  # from the top; in each where an item begins


def rows(items: Sequence[Item], points: float, width: Width) -> Rows:
    found: Rows = [[]]
    x = 0.0
    for item in items:
        taken = item.sample + width(item.text, FONT)
        if x and x + taken > points:
            found.append([])
            x = 0.0
        found[-1].append((x, item))
        x += taken + _BETWEEN
    return found


def _draw_legend(axes: Any, found: Rows, left: float, top: float) -> None:
    for number, row in enumerate(found):
        y = top - (number + 0.5) * LEGEND_POINTS
        for x, item in row:
            begin = left + x
            if item.line:
                axes.plot([begin, begin + _LINE - 6], [y, y], **dict(item.line))
            if item.mark:
                axes.plot([begin + 4], [y], linestyle="", **dict(item.mark))
            axes.text(begin + item.sample, y, item.text, fontsize=FONT, va="center_baseline")


# What each direction of a link carried around a moment of a run.
#
# Input: a run's samples and a moment T. Output: mean rates between the last sample at T or before
# and the first one a fiftieth of the run later, or why there are none. Where the run ends sooner,
# it is its last fiftieth.

LEAST_NS = 500_000_000  # of real time: samples come every 100 ms


@dataclass(frozen=True, slots=True)
class Loads:
    rates_bps: Mapping[int, float]  # by link; what is not there carried nothing
    begin_ns: int
    end_ns: int


def loads(what: Subject, at_ns: int) -> Loads | str:
    """In words why there are none. RunError."""
    schedule = what.schedule()
    start_ns, end_ns = schedule.options.start_at_ns, schedule.end_ns
    pace = schedule.options.pace
    width_ns = max((end_ns - start_ns) // BUCKETS, LEAST_NS * pace)
    from_ns = max(min(at_ns, end_ns - width_ns), start_ns)
    if not start_ns <= at_ns <= end_ns:
        return "the run did not go on then"
    before, last = _counters(what, start_ns, from_ns, from_ns + width_ns)
    if not last.counted:
        return "the run has no counters of links: nothing moved, or no process saw links"
    if last.at_ns <= max(before.at_ns, at_ns - width_ns):
        return "the run has recorded nothing then"
    real_s = (last.at_ns - before.at_ns) / pace / SECOND
    rates = {
        link: 8 * max(count - before.counted.get(link, 0), 0) / real_s
        for link, count in sorted(last.counted.items())
    }
    return Loads(rates, before.at_ns, last.at_ns)


@dataclass(frozen=True, slots=True)
class _Counted:
    at_ns: int
    counted: Mapping[int, int]  # bytes that have left each link


def _counters(
    what: Subject, start_ns: int, from_ns: int, until_ns: int
) -> tuple[_Counted, _Counted]:
    """At the last sample up to `from_ns`, and at the first from `until_ns` on, else the last."""
    counted: dict[int, int] = {}
    before = _Counted(start_ns, {})
    last_ns = start_ns
    for sample in what.samples():
        if sample.at_ns > from_ns >= last_ns:
            before = _Counted(last_ns, dict(counted))
        for _, row in sample.rows(LINKS):
            if "out_bytes" in row:
                counted[row["link"]] = row["out_bytes"]
        last_ns = sample.at_ns
        if last_ns >= until_ns:
            break
    else:
        if last_ns <= from_ns:
            before = _Counted(last_ns, dict(counted))
    return before, _Counted(last_ns, counted)
