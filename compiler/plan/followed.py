"""What a link that follows a trace has in a stretch of time: on average, at least and at most.

Input: a plan's traces and their contents. Output: `Followed` of one link state; and what a trace is
called where two plans are compared, whose numbers may be others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from compiler.plan import traces
from compiler.plan.properties import LinkState
from compiler.plan.traces import Opportunities, Trace, TraceRange
from compiler.plan.types import PlannedTrace

if TYPE_CHECKING:
    from compiler.plan.reader import Plan


@dataclass(frozen=True, slots=True)
class Followed:
    name: str
    begin_ns: int
    seconds: bool  # the least and the greatest rate are those of whole seconds
    ranges: Mapping[str, TraceRange]  # by field of LinkState


class FollowedTraces:
    """Contents are decoded when they are first asked for. PlanError."""

    def __init__(self, planned: Sequence[PlannedTrace], contents: Mapping[str, bytes]) -> None:
        self._planned = planned
        self._content = cache(lambda digest: traces.decode(contents[digest]))

    def content(self, number: int) -> tuple[PlannedTrace, Trace]:
        planned = self._planned[number - 1]
        return planned, self._content(planned.digest)

    def between(self, state: LinkState, from_ns: int, to_ns: int) -> Followed | None:
        """From one time of the plan to a later one; None for a link that follows none."""
        if not state.trace:
            return None
        planned, trace = self.content(state.trace)
        begin = max(from_ns - planned.begin_ns, 0)
        end = max(to_ns - planned.begin_ns, begin + 1)
        ranges = trace.ranges(begin, end, holds=planned.holds)
        by_field = dict(zip(trace.fields, ranges, strict=True))
        return Followed(planned.name, planned.begin_ns, isinstance(trace, Opportunities), by_field)

    def means(self, state: LinkState, from_ns: int, to_ns: int) -> LinkState:
        """The state with what its trace has on average there, in place of the whole trace's."""
        found = self.between(state, from_ns, to_ns)
        if found is None:
            return state
        values: dict[str, Any] = {name: one.mean for name, one in found.ranges.items()}
        if "rate_bps" in values:
            values["rate_bps"] = max(values["rate_bps"], 1)  # 0 is no limit
        return state._replace(**values)


def of_plan(plan: Plan) -> FollowedTraces:
    return FollowedTraces(plan.topology.traces, plan.attached.traces)


def described(planned: Sequence[PlannedTrace], number: int) -> str:
    """What it is, whatever its number: its name and content."""
    if not number:
        return "none"
    trace = planned[number - 1]
    return f"{trace.name} ({trace.digest[:12]}{', held' if trace.holds else ''})"
