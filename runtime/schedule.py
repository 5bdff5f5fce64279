"""The part of a plan that a run carries out, as steps on the run's own clock.

A step is one epoch: what changes in the network and the events that made it. Plan time becomes real
time by `pace` and by where the run starts; nothing here reads a clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass

from compiler.plan.event_kinds import DOWN, ENDINGS
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from compiler.plan.types import Epoch, Event
from runtime import say
from runtime.errors import RunError
from runtime.options import VIRTUAL, RunOptions


@dataclass(frozen=True, slots=True)
class Step:
    """`due_ns` is real time since the run's start."""

    epoch: Epoch
    due_ns: int
    events: tuple[Event, ...]

    @property
    def joins(self) -> tuple[str, ...]:
        """Instances that need a fresh incarnation for this step, in order of their events."""
        names = [event.target for event in self.events if event.kind == "join"]
        return tuple(dict.fromkeys(names))


def held(events: Iterable[Event]) -> Mapping[str, str]:
    """The instances that these events, from the first on, leave paused or killed: by name, the kind
    of the event."""
    found: dict[str, str] = {}
    for event in events:
        if event.kind in ("pause", "kill"):
            found[event.target] = event.kind
        elif event.kind in ("resume", *ENDINGS):
            found.pop(event.target, None)
    return found


def last_of(kind: str, events: Iterable[Event]) -> Mapping[str, Event]:
    """Of each instance to whose clock or disk something has happened, the last such event."""
    return {event.target: event for event in events if event.kind == kind}


START_GRID_NS = 10_000_000_000
READY_GRID_NS = 100_000_000  # where programs run before T0: they would be idle until a later one


def first_moment(options: RunOptions, earliest_ns: int, grid_ns: int = START_GRID_NS) -> int:
    """T0, or when programs start before it; not before `earliest_ns`. In virtual time it is a round
    number, which costs nothing there: that getting ready took a little longer leaves no trace in
    the run."""
    if options.time != VIRTUAL:
        return earliest_ns
    return -(-earliest_ns // grid_ns) * grid_ns


@dataclass(frozen=True, slots=True)
class PlanClock:
    """Plan time to real time since the start, both in ns."""

    start_at_ns: int
    pace: int

    def due(self, at_ns: int) -> int:
        return (at_ns - self.start_at_ns) // self.pace

    def plan_time(self, elapsed_ns: int) -> int:
        return self.start_at_ns + elapsed_ns * self.pace


class Schedule:
    """What a run with these options does.

    start    nodes and links as they are when the run begins
    first    the epoch the run begins in (all before it is folded into it)
    present  instances that are there at the start without a join event
    held     those of them that are paused or killed then
    clocks   of instances, set before then
    disks    the same of disks
    folded   how many events are part of that state instead of happening; 0 for a start at 0
    steps    what happens; the first is due at 0
    end_ns   plan time of the end
    """

    def __init__(self, plan: Plan, options: RunOptions) -> None:
        if options.start_at_ns > plan.end_ns:
            raise RunError(
                "the start (--start-at) is after the experiment's end at "
                f"{say.seconds(plan.end_ns)}"
            )
        self.options = options
        self.clock = PlanClock(options.start_at_ns, options.pace)
        end = plan.end_ns if options.until_ns is None else min(options.until_ns, plan.end_ns)
        self.end_ns = max(end, options.start_at_ns)
        for at_ns, _ in options.reseeded:
            if at_ns >= self.end_ns:
                raise RunError(
                    f"nothing can be drawn anew from {say.seconds(at_ns)} on (--reseed): the run "
                    f"ends at {say.seconds(self.end_ns)}",
                    "name an earlier moment",
                )
        epochs = plan.epochs
        self.start = plan.folded_at(options.start_at_ns)
        self.first = self.start.epoch
        whole = options.start_at_ns == 0
        self.folded = 0 if whole else epochs[self.first].last_seq
        nodes = zip(plan.topology.nodes, self.start.nodes, strict=True)
        there = (node.name for node, state in nodes if node.is_instance and state != DOWN)
        self.present = frozenset(there if self.folded else ())
        self.held = held(plan.events[: self.folded])
        self.clocks = last_of("clock", plan.events[: self.folded])
        self.disks = last_of("disk", plan.events[: self.folded])
        self.steps = tuple(self._steps(plan, whole))
        self.total = sum(len(step.events) for step in self.steps)

    def _steps(self, plan: Plan, whole: bool) -> Iterator[Step]:
        first = plan.epochs[self.first]
        events = plan.events[first.first_seq : first.last_seq] if whole else ()
        yield Step(first, 0, tuple(events))
        for epoch in plan.epochs[self.first + 1 :]:
            if epoch.at_ns > self.end_ns:
                return
            found = tuple(plan.events[epoch.first_seq : epoch.last_seq])
            yield Step(epoch, self.clock.due(epoch.at_ns), found)

    def grown(self, plan: Plan, at_ns: int) -> Schedule:
        """That of a plan to which an epoch at `at_ns` was added, later than the start; all others
        happen when they did."""
        found = copy(self)
        number = bisect_left(self.steps, at_ns, key=lambda step: step.epoch.at_ns)
        first = self.first + number  # of the plan's epochs
        later = [
            Step(epoch, step.due_ns, plan.events[epoch.first_seq : epoch.last_seq])
            for step, epoch in zip(self.steps[number:], plan.epochs[first + 1 :], strict=False)
        ]
        epoch = plan.epochs[first]
        new = Step(epoch, self.clock.due(at_ns), plan.events[epoch.first_seq : epoch.last_seq])
        found.steps = (*self.steps[:number], new, *later)
        found.total = self.total + len(new.events)
        if self.options.until_ns is None:
            found.end_ns = max(plan.end_ns, self.options.start_at_ns)
        return found

    @property
    def end_due_ns(self) -> int:
        return self.clock.due(self.end_ns)

    def link_states(self) -> Iterator[LinkState]:
        """All that links ever are in it."""
        yield from self.start.links
        for step in self.steps[1:]:
            for _, state in step.epoch.links:
                yield state


# In virtual time getting ready takes next to none, and a run that is another one from a moment on
# has to be the same until then (compiler.draws.UNDER_WAY_NS).
VIRTUAL_LEAD_NS = 5_000_000
PREPARE_LEAD_NS = 3_000_000_000
PREPARE_COST_NS = 30_000_000


@dataclass(frozen=True, slots=True)
class Preparation:
    """A later incarnation and when to begin making it, real ns since the start."""

    step: int  # position in Schedule.steps
    name: str
    begin_ns: int


def preparations(schedule: Schedule) -> list[Preparation]:
    """Incarnations to be made while the run goes on, in the order in which to begin them.

    The first incarnation of every instance is made before the start, so only rejoins remain.
    Begins are chosen from the last to the first so that many at one time are spread over the time
    before it.
    """
    seen = set(schedule.present)
    rejoins: list[tuple[int, str]] = []
    for number, step in enumerate(schedule.steps):
        for name in step.joins:
            if name in seen:
                rejoins.append((number, name))
            seen.add(name)
    begin = 2**63
    if schedule.options.can_branch:
        return [
            Preparation(number, name, schedule.steps[number].due_ns - VIRTUAL_LEAD_NS)
            for number, name in rejoins
        ]
    found: list[Preparation] = []
    for number, name in reversed(rejoins):
        due = schedule.steps[number].due_ns
        begin = min(due - PREPARE_LEAD_NS, begin - PREPARE_COST_NS)
        found.append(Preparation(number, name, begin))
    return found[::-1]


def first_incarnations(schedule: Schedule) -> list[str]:
    """Instances that are ever there, those at the start first; in virtual time the others by name,
    so that their order says nothing of what is drawn for later."""
    names = dict.fromkeys(sorted(schedule.present))
    others = dict.fromkeys(name for step in schedule.steps for name in step.joins)
    if schedule.options.can_branch:
        others = dict.fromkeys(sorted(others))
    return list(names | others)
