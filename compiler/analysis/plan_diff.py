"""Two plans compared in every respect that matters to who runs them.

Input: two plans. Output: a `PlanDiff`. Two plans whose sources differ in their text only (comments,
spaces, the numbers of lines) do not differ here, though their digests do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compiler.analysis.network_diff import NetworkDifference, compare
from compiler.analysis.timeline_diff import TimelineEntry, compare_timelines
from compiler.analysis.topology_diff import TopologyDifference, compare_topologies
from compiler.plan.parts.traces import described

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.types import Event


@dataclass(frozen=True, slots=True)
class PlanDiff:
    topology: tuple[TopologyDifference, ...]
    timeline: tuple[TimelineEntry, ...]
    network: NetworkDifference | None  # None: not asked for

    @property
    def equal(self) -> bool:
        """Nothing differs, as far as it was asked for."""
        groups = () if self.network is None else self.network.groups
        return not (self.topology or self.timeline or groups)


def _named(plan: Plan) -> Sequence[Event]:
    """Its events, with what traces are in place of their numbers."""
    planned = plan.topology.traces
    if not planned:
        return plan.events
    return [
        replace(one, args={**one.args, "trace": described(planned, int(one.args["trace"]))})
        if "trace" in one.args
        else one
        for one in plan.events
    ]


def compare_plans(a: Plan, b: Plan, *, network: bool = True) -> PlanDiff:
    """Raises PlanError. Without `network` paths are not compared, which takes longest."""
    if a.digest == b.digest:
        instances = a.core.endpoints
        same = NetworkDifference(instances, instances, a.end_ns, ())
        return PlanDiff((), (), same if network else None)
    topology = compare_topologies(a, b)
    timeline = compare_timelines(_named(a), _named(b))
    return PlanDiff(topology, timeline, compare(a, b) if network else None)
