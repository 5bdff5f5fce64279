"""A link over time: what went through in both directions, its queues and its losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.plan.types import end_names
from runtime.rundir.sample_reader import LINKS
from tstorm.plotting import canvas, marks
from tstorm.plotting.pair_picture import Drawn
from tstorm.plotting.subject import SECOND, Subject, TimedRow, bucketed

_DROPS = ("drop_queue", "drop_loss", "drop_down")
_COLOURS = (canvas.BLUE, canvas.ORANGE)
_HEADROOM = 2.5  # a limit is shown if traffic comes so near to it

Rows = list[TimedRow]


def draw(what: Subject, link: int, suffix: str) -> Drawn:
    """Both directions of the link, of which `link` is one. RunError, PlanError, CommandError."""
    links = what.plan.topology.links
    first = link - link % 2
    ways = (link, first + 1 - link % 2)
    names = [links[way].name for way in ways]
    schedule = what.schedule()
    begin_ns, end_ns = schedule.options.start_at_ns, schedule.end_ns
    rows = [what.rows(LINKS, way) for way in ways]
    notes = []
    if what.run is not None and not any(rows):
        notes.append("the run has no counters of this link: nothing moved, or no process saw links")
    with canvas.drawing() as figures:
        figure, axes = marks.panels(
            figures,
            f"{names[0]} and back",
            2 if any(rows) else 0,
            begin_ns / SECOND,
            end_ns / SECOND,
        )
        _rates(axes[0], what, ways, rows, (begin_ns, end_ns))
        if any(rows):
            _queues(axes[1], names, rows, [links[way].state.neck for way in ways])
            _drops(axes[2], names, rows, (begin_ns, end_ns))
        one = links[link]
        ends = set(end_names(what.plan.topology.nodes, one))
        missing = marks.mark(axes, marks.of(what.plan, ends | set(names), end_ns))
        if missing:
            notes.append(f"{missing} events are marked without their text: there is no room")
        return Drawn(canvas.encoded(figure, suffix), tuple(notes))


def _planned(what: Subject, way: int, end_ns: int) -> list[tuple[float, float, float | None]]:
    """(from s, to s, rate in b/s or None: down or unlimited)."""
    found: list[tuple[float, float, float | None]] = []
    state = what.plan.folded_at(0).links[way]
    since = 0
    for epoch in what.plan.epochs:
        changed = dict(epoch.links).get(way)
        if changed is None or epoch.at_ns > end_ns:
            continue
        found.append((since / SECOND, epoch.at_ns / SECOND, state.rate_bps if state.up else None))
        since, state = epoch.at_ns, changed
    found.append((since / SECOND, end_ns / SECOND, state.rate_bps if state.up else None))
    return [(a, b, value or None) for a, b, value in found if b > a]


def _rates(
    axes: Any, what: Subject, ways: Sequence[int], rows: Sequence[Rows], times: tuple[int, int]
) -> None:
    begin_s, end_s = (at_ns / SECOND for at_ns in times)
    width_s = max(end_s - begin_s, 1e-9) / marks.BUCKETS / what.options.pace
    series = [
        [8 * count / width_s for count in bucketed(one, "out_bytes", *times, marks.BUCKETS)]
        for one in rows
    ]
    plans = [_planned(what, way, times[1]) for way in ways]
    limits = [value for plan in plans for _, _, value in plan if value is not None]
    most = max(map(max, series)) or max(limits, default=1.0)
    size, unit = marks.rate_unit(most)
    edges = marks.edges(begin_s, end_s, marks.BUCKETS)
    for way, values, plan, colour in zip(ways, series, plans, _COLOURS, strict=True):
        name = what.plan.topology.links[way].name
        if any(rows):
            scaled = [value / size for value in values]
            axes.stairs(scaled, edges, color=colour, linewidth=1.4, label=canvas.label(name, 30))
        shown = [
            (a, b, value / size if value and value <= most * _HEADROOM else None)
            for a, b, value in plan
        ]
        if any(value is not None for _, _, value in shown):
            xs, ys = marks.jumps(shown)
            said = f"planned, {canvas.label(name, 30)}"
            axes.plot(xs, ys, color=colour, linewidth=1.2, linestyle="--", label=said)
    for begin, end in _down(what, ways[0], times[1]):
        axes.axvspan(begin, end, color=canvas.PALE, linewidth=0, zorder=0)
    axes.set_ylabel(f"throughput, {unit}")
    axes.set_ylim(bottom=0)
    marks.legend(axes)


def _down(what: Subject, way: int, end_ns: int) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    since: int | None = None
    for epoch in what.plan.epochs:
        state = dict(epoch.links).get(way)
        if state is None or epoch.at_ns > end_ns:
            continue
        if not state.up and since is None:
            since = epoch.at_ns
        elif state.up and since is not None:
            found.append((since / SECOND, epoch.at_ns / SECOND))
            since = None
    return found if since is None else [*found, (since / SECOND, end_ns / SECOND)]


def _queues(axes: Any, names: Sequence[str], rows: Sequence[Rows], necks: Sequence[str]) -> None:
    """Of one in a bottleneck the counters are of the queue of all its paths."""
    labels = [
        canvas.label(f"{name}, all of {neck}" if neck else name, 30)
        for name, neck in zip(names, necks, strict=True)
    ]
    for label, one, colour in zip(labels, rows, _COLOURS, strict=True):
        xs = [at_ns / SECOND for _, at_ns, _ in one]
        ys = [row.get("backlog_bytes", 0) / 1000 for _, _, row in one]
        axes.step(xs, ys, where="post", color=colour, linewidth=1.2, label=label)
    most = max((row.get("backlog_bytes", 0) for one in rows for _, _, row in one), default=0)
    axes.set_ylabel("queue, kB")
    axes.set_ylim(0, max(most / 1000 * 1.1, 1))


def _drops(axes: Any, names: Sequence[str], rows: Sequence[Rows], times: tuple[int, int]) -> None:
    begin_s, end_s = (at_ns / SECOND for at_ns in times)
    edges = marks.edges(begin_s, end_s, marks.BUCKETS)
    for name, one, colour in zip(names, rows, _COLOURS, strict=True):
        for column, style in zip(_DROPS, ("-", "--", ":"), strict=True):
            counts = bucketed(one, column, *times, marks.BUCKETS)
            if any(counts):
                said = f"{canvas.label(name, 24)}, {column.removeprefix('drop_')}"
                axes.stairs(counts, edges, color=colour, linestyle=style, linewidth=1.2, label=said)
    axes.set_ylabel("lost packets")
    axes.set_ylim(bottom=0)
    marks.legend(axes)
