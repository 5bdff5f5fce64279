"""Predicted rates as a table and as JSON, with what they do not tell in front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compiler.plan.reader import Plan
from runtime.agent.share.solver import UNLIMITED
from tstorm import output, units
from tstorm.predicting.fluid_rates import DEMAND, LINK, SECOND, PredictedRates, RateStretch

ASSUMES = (
    "fluid rates, not a measurement: each flow has its max-min share of every link at once, in "
    "proportion to weight / RTT, at layer 3, rounded down to 1 b/s",
    "not in it: TCP's start, backing off and window limits, waiting in queues, losses, "
    "acknowledgements, senders that do not give way (UDP), what programs and machines can do",
)
_NAMED = 5  # links in a note


def notes(plan: Plan, found: PredictedRates) -> list[str]:
    """What of this plan is not in the rates."""
    said = []
    for links, what in (
        (found.lossy, "lose or refuse packets, which slows TCP down and is not in it"),
        (found.partly, "have a further class of packets (only=), which is not in it"),
        (found.traced, "follow a trace: it counts by its mean of each second"),
    ):
        if links:
            names = [plan.topology.links[link].name for link in sorted(links)]
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            said.append(f"{', '.join(names[:_NAMED])}{more} {what}")
    if found.shared:
        said.append(
            f"{found.shared:,} flows have several equal paths: without a value in column 'flow' "
            "of a list in CSV they take that of the run's probes"
        )
    if plan.topology.reactions:
        said.append("what a `when` does in a run is not in it")
    return said


def show(plan: Plan, found: PredictedRates) -> None:
    for text in ASSUMES:
        output.line(f"# {text}")
    for text in notes(plan, found):
        output.line(f"# {text}")
    head = ("LINE", "FROM", "TO", "SINCE", "UNTIL", "RATE", "LIMITED BY")
    output.emit_table(head, _rows(plan, found), right=(0, 5))


def _rows(plan: Plan, found: PredictedRates) -> Iterator[Sequence[str]]:
    nodes = plan.topology.nodes
    for flow, stretches in zip(found.flows, found.stretches, strict=True):
        ends = nodes[flow.src].name, nodes[flow.dst].name
        for one in stretches:
            times = units.duration(one.from_ns), units.duration(one.to_ns)
            yield (str(flow.line), *ends, *times, _rate(one), _limit(one))


def _rate(one: RateStretch) -> str:
    return (
        units.rate(one.rate_bps) if one.rate_bps else "unlimited" if one.rate_bps is None else "0b"
    )


def _limit(one: RateStretch) -> str:
    return one.at if one.limit == LINK else "its rate" if one.limit == DEMAND else one.limit


def record(plan: Plan, found: PredictedRates) -> dict[str, Any]:
    nodes, flows = plan.topology.nodes, []
    for flow, stretches in zip(found.flows, found.stretches, strict=True):
        bits = [(one.rate_bps, one.to_ns - one.from_ns) for one in stretches]
        whole = sum((rate or 0) * length for rate, length in bits) // (8 * SECOND)
        flows.append(
            {
                "line": flow.line,
                "from": nodes[flow.src].name,
                "to": nodes[flow.dst].name,
                "start_ns": flow.start_ns,
                "end_ns": flow.end_ns,
                "demand_bps": None if flow.demand_bps == UNLIMITED else flow.demand_bps,
                "weight": flow.weight,
                "bytes": None if any(rate is None for rate, _ in bits) else whole,
                "stretches": [one._asdict() for one in stretches],
            }
        )
    return {
        "assumes": [*ASSUMES, *notes(plan, found)],
        "end_ns": plan.end_ns,
        "flows": flows,
    }
