"""A pair over time: its delay as planned (a line) and as measured (dots), and its throughput; and
the predicted rates of flows.

Planned is what the plan's paths say (runtime.certify.planned_paths), measured what became of the
run's probes. They say which delay that is, one-way or round-trip; without any it is one-way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compiler.plan.reader import Plan
from compiler.plan.types import end_names
from runtime.certify.planned_paths import Planned, PlannedStretch
from runtime.errors import RunError
from runtime.probing import probe_record
from runtime.probing.probe_record import ROUND_TRIP, Probe
from runtime.rundir.sample_reader import PAIRS
from tstorm.plotting import canvas, marks
from tstorm.plotting.subject import SECOND, Subject, bucketed
from tstorm.predicting.fluid_rates import PredictedRates

MS = 1e6
_MANY = 4000  # dots; more become a picture within the SVG
_HEADROOM = 2.5  # a limit is shown if traffic comes so near to it


@dataclass(frozen=True, slots=True)
class Drawn:
    data: bytes
    notes: tuple[str, ...]  # what is missing in the picture, and why


def draw(what: Subject, src: int, dst: int, suffix: str) -> Drawn:
    """From node to node. RunError, PlanError, CommandError."""
    schedule = what.schedule()
    names = [what.plan.topology.nodes[node].name for node in (src, dst)]
    measure, probes, notes = _probes(what, names)
    found = Planned(what.plan, schedule, [(src, dst)], {}).stretches[src, dst]
    clock = schedule.clock
    stretches = [(clock.plan_time(one.begin_ns), clock.plan_time(one.end_ns), one) for one in found]
    both = measure == ROUND_TRIP
    begin_s, end_s = schedule.options.start_at_ns / SECOND, schedule.end_ns / SECOND
    kind = "round-trip time" if both else "one-way delay"
    with canvas.drawing() as figures:
        lower = 1 if what.run is not None else 0
        title = f"{names[0]} to {names[1]}: {kind}"
        figure, axes = marks.panels(figures, title, lower, begin_s, end_s)
        _delays(axes[0], stretches, probes, both=both)
        if lower:
            _throughput(axes[1], what, (src, dst), stretches, (begin_s, end_s))
        targets = _targets(what, found, names)
        missing = marks.mark(axes, marks.of(what.plan, targets, schedule.end_ns))
        if missing:
            notes.append(f"{missing} events are marked without their text: there is no room")
        return Drawn(canvas.encoded(figure, suffix), tuple(notes))


Stretches = Sequence[tuple[int, int, PlannedStretch]]


def _probes(what: Subject, names: Sequence[str]) -> tuple[str, list[Probe], list[str]]:
    """How they measure, those of this pair, and why there are none."""
    recorded = probe_record.read(what.run) if what.run is not None else None
    if what.run is None:
        return probe_record.ONE_WAY, [], []
    if recorded is None:
        why = probe_record.why_not(what.options) or "it ended before there were any"
        return probe_record.ONE_WAY, [], [f"the run has no probes: {why}"]
    pairs = recorded.header.pairs
    if tuple(names) not in pairs:
        known = ", ".join(" ".join(pair) for pair in pairs[:3])
        why = (
            f"this pair was not probed ({len(pairs)} of {recorded.header.of} were, such as {known})"
        )
        return recorded.header.measure, [], [why]
    number = pairs.index((names[0], names[1]))
    return recorded.header.measure, [one for one in recorded.probes if one.pair == number], []


def _planned_ms(stretch: PlannedStretch, both: bool) -> float | None:
    there, back = stretch.there, stretch.back
    if there is None or (both and back is None):
        return None
    return (there.totals.delay_ns + (back.totals.delay_ns if both and back else 0)) / MS


def _delays(axes: Any, found: Stretches, probes: Sequence[Probe], *, both: bool) -> None:
    planned = [(a / SECOND, b / SECOND, _planned_ms(one, both)) for a, b, one in found]
    for begin, end, value in planned:
        if value is None:
            axes.axvspan(begin, end, color=canvas.PALE, linewidth=0, zorder=0)
    axes.plot(*marks.jumps(planned), color=canvas.BLUE, linewidth=2.5, zorder=2, label="planned")
    arrived = [
        (one.sent_at_ns / SECOND, one.delay_ns / MS) for one in probes if one.delay_ns is not None
    ]
    lost = [one.sent_at_ns / SECOND for one in probes if one.delay_ns is None]
    if arrived:
        axes.plot(
            *zip(*arrived, strict=True),
            color=canvas.ORANGE,
            marker=".",
            markersize=3,
            linestyle="",
            zorder=3,
            rasterized=len(arrived) > _MANY,
            label=f"measured ({len(arrived)} probes)",
        )
    if lost:
        low = axes.get_xaxis_transform()
        shown = {"color": canvas.BLACK, "marker": "x", "markersize": 3.5, "linestyle": ""}
        heights = [0.03] * len(lost)
        axes.plot(lost, heights, **shown, transform=low, zorder=3, label=f"lost ({len(lost)})")
    axes.set_ylabel("delay, ms")
    axes.set_ylim(bottom=0)
    axes.margins(y=0.15)
    axes.autoscale(axis="y")
    axes.set_ylim(bottom=0)
    marks.legend(axes)


def _throughput(
    axes: Any,
    what: Subject,
    ends: tuple[int, int],
    stretches: Stretches,
    seconds: tuple[float, float],
) -> None:
    begin_s, end_s = seconds
    rows = what.rows(PAIRS, ends)
    edges = marks.edges(begin_s, end_s, marks.BUCKETS)
    width_s = max(end_s - begin_s, 1e-9) / marks.BUCKETS / what.options.pace
    times = round(begin_s * SECOND), round(end_s * SECOND), marks.BUCKETS
    rates = {
        column: [8 * count / width_s for count in bucketed(rows, f"{column}_bytes", *times)]
        for column in ("offered", "delivered")
    }
    most = max(map(max, rates.values()))
    size, unit = marks.rate_unit(most)
    for (name, values), colour, width in zip(
        rates.items(), (canvas.SKY, canvas.GREEN), (2.4, 1.2), strict=True
    ):
        axes.stairs(
            [value / size for value in values], edges, color=colour, linewidth=width, label=name
        )
    limits = [(a / SECOND, b / SECOND, _limit(one, most, size)) for a, b, one in stretches]
    if any(value is not None for _, _, value in limits):
        xs, ys = marks.jumps(limits)
        axes.plot(xs, ys, color=canvas.BLUE, linewidth=1, linestyle="--", label="planned rate")
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    marks.legend(axes)


def _limit(stretch: PlannedStretch, most: float, size: float) -> float | None:
    rate = stretch.there.totals.rate_bps if stretch.there else 0
    return rate / size if rate and rate <= most * _HEADROOM else None


def _targets(what: Subject, found: Sequence[PlannedStretch], names: Sequence[str]) -> set[str]:
    """Whose events concern the pair: its ends, and every link and bridge that it ever used, both
    ways."""
    topology = what.plan.topology
    targets = set(names)
    for stretch in found:
        for way in (stretch.there, stretch.back):
            for link in way.links if way else ():
                one = topology.links[link]
                targets |= {one.name, *end_names(topology.nodes, one)}
    bridges = {node.name for node in topology.nodes if node.service < 0}
    targets &= bridges | set(names) | {link.name for link in topology.links}
    if not targets:
        raise RunError("nothing is known of this pair")
    return targets


# Predicted rates of flows over time: a line for each, and the events of the links they take.

_STYLES = ("-", "--", ":", "-.")
_NAMED = 16  # flows in the legend


def draw_rates(plan: Plan, found: PredictedRates, suffix: str) -> Drawn:
    """PlanError, CommandError."""
    rates = [one.rate_bps or 0 for some in found.stretches for one in some]
    size, unit = marks.rate_unit(max(rates, default=0))
    begin_s = min(one.start_ns for one in found.flows) / SECOND
    end_s = max(one.end_ns for one in found.flows) / SECOND
    notes = []
    with canvas.drawing() as figures:
        title = "Fluid rates by the plan, not a measurement"
        figure, axes = marks.panels(figures, title, 0, begin_s, end_s)
        for number, label in enumerate(_flow_labels(plan, found)):
            _rate_line(axes[0], found, number, size, label if number < _NAMED else None)
        axes[0].set_ylabel(f"rate, {unit}")
        axes[0].set_ylim(bottom=0)
        marks.legend(axes[0])
        missing = marks.mark(
            axes, marks.of(plan, _rate_targets(plan, found), round(end_s * SECOND))
        )
        if missing:
            notes.append(f"{missing} events are marked without their text: there is no room")
        if len(found.flows) > _NAMED:
            notes.append(f"{len(found.flows) - _NAMED:,} flows are drawn without their names")
        return Drawn(canvas.encoded(figure, suffix), tuple(notes))


def _flow_labels(plan: Plan, found: PredictedRates) -> list[str]:
    """With the line in the list where a pair has several flows."""
    nodes = plan.topology.nodes
    counts = Counter((one.src, one.dst) for one in found.flows)
    labels = []
    for one in found.flows:
        line = f" (line {one.line})" if counts[one.src, one.dst] > 1 else ""
        labels.append(canvas.label(f"{nodes[one.src].name}->{nodes[one.dst].name}{line}", 30))
    return labels


def _rate_line(
    axes: Any, found: PredictedRates, number: int, size: float, label: str | None
) -> None:
    """What nothing limits is a gap."""
    shown = [
        (a / SECOND, b / SECOND, None if rate is None else rate / size)
        for a, b, rate, *_ in found.stretches[number]
    ]
    axes.plot(
        *marks.jumps(shown),
        color=canvas.SERVICES[number % len(canvas.SERVICES)],
        linestyle=_STYLES[number // len(canvas.SERVICES) % len(_STYLES)],
        linewidth=1.6,
        label=label,
    )


def _rate_targets(plan: Plan, found: PredictedRates) -> set[str]:
    topology = plan.topology
    targets = {topology.nodes[node].name for one in found.flows for node in (one.src, one.dst)}
    for link in found.links:
        one = topology.links[link]
        targets |= {one.name, *end_names(topology.nodes, one)}
    return targets
