"""Predicted rates of flows over time: a line for each, and the events of the links they take."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compiler.plan.reader import Plan
from compiler.plan.types import end_names
from tstorm.plotting import canvas, marks
from tstorm.plotting.pair_picture import Drawn
from tstorm.plotting.subject import SECOND
from tstorm.predicting.fluid_rates import PredictedRates

_STYLES = ("-", "--", ":", "-.")
_NAMED = 16  # flows in the legend


def draw(plan: Plan, found: PredictedRates, suffix: str) -> Drawn:
    """PlanError, CommandError."""
    rates = [one.rate_bps or 0 for some in found.stretches for one in some]
    size, unit = marks.rate_unit(max(rates, default=0))
    begin_s = min(one.start_ns for one in found.flows) / SECOND
    end_s = max(one.end_ns for one in found.flows) / SECOND
    notes = []
    with canvas.drawing() as figures:
        title = "Fluid rates by the plan, not a measurement"
        figure, axes = marks.panels(figures, title, 0, begin_s, end_s)
        for number, label in enumerate(_labels(plan, found)):
            _line(axes[0], found, number, size, label if number < _NAMED else None)
        axes[0].set_ylabel(f"rate, {unit}")
        axes[0].set_ylim(bottom=0)
        marks.legend(axes[0])
        missing = marks.mark(axes, marks.of(plan, _targets(plan, found), round(end_s * SECOND)))
        if missing:
            notes.append(f"{missing} events are marked without their text: there is no room")
        if len(found.flows) > _NAMED:
            notes.append(f"{len(found.flows) - _NAMED:,} flows are drawn without their names")
        return Drawn(canvas.encoded(figure, suffix), tuple(notes))


def _labels(plan: Plan, found: PredictedRates) -> list[str]:
    """With the line in the list where a pair has several flows."""
    nodes = plan.topology.nodes
    counts = Counter((one.src, one.dst) for one in found.flows)
    labels = []
    for one in found.flows:
        line = f" (line {one.line})" if counts[one.src, one.dst] > 1 else ""
        labels.append(canvas.label(f"{nodes[one.src].name}->{nodes[one.dst].name}{line}", 30))
    return labels


def _line(axes: Any, found: PredictedRates, number: int, size: float, label: str | None) -> None:
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


def _targets(plan: Plan, found: PredictedRates) -> set[str]:
    topology = plan.topology
    targets = {topology.nodes[node].name for one in found.flows for node in (one.src, one.dst)}
    for link in found.links:
        one = topology.links[link]
        targets |= {one.name, *end_names(topology.nodes, one)}
    return targets
