"""The timeline: dynamic statements become primitive events, by walking through time in order.

Input: a model. Output: `Timeline`, its events in total order: (time, place of the statement in the
file, expansion order). Every statement sees the state that all earlier ones have left; statements
that are not legal in that state are reported and skipped. Source: docs/tdl.md (dynamic part).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from compiler.declare.actions import rule
from compiler.declare.model import Model
from compiler.declare.selectors import EMPTY
from compiler.declare.steps import StatementStep
from compiler.expand import drawing, host_properties, links, members, partition, ramp
from compiler.expand.bystanders import CutOff
from compiler.expand.recorder import Recorder
from compiler.expand.walk import Walk
from compiler.expand.world import GONE
from compiler.plan.format import MAX_INT
from compiler.plan.parts import action_texts
from compiler.plan.types import Event
from tdl import ast
from tdl.diagnostics import Sink

GRACE_NS = 10_000_000_000  # without `quit` the experiment ends this long after its last event
WAITING_GRACE_NS = 24 * 3_600 * 10**9  # the same with `quit when`

ACTS: dict[type, Callable[[Walk, StatementStep], None]] = {
    ast.Join: members.join,
    ast.Leave: members.leave,
    ast.Crash: members.crash,
    ast.Kill: members.kill,
    ast.Churn: members.churn,
    ast.Disconnect: members.disconnect,
    ast.Reconnect: members.reconnect,
    ast.Pause: members.pause,
    ast.Resume: members.resume,
    ast.Restart: members.restart,
    ast.Flap: links.flap,
    ast.Set: links.set_properties,
    ast.SetClock: host_properties.set_clock,
    ast.SetDisk: host_properties.set_disk,
    ast.Ramp: ramp.ramp,
    ast.Background: links.background,
    ast.Partition: partition.partition,
    ast.Heal: partition.heal,
    ast.Move: links.move,
    ast.Quit: lambda walk, _: walk.quit(),
}


@dataclass(frozen=True, slots=True)
class Timeline:
    events: tuple[Event, ...]
    end_ns: int
    replicas: tuple[int, ...]  # by service: how many were asked for in the end
    holders: Mapping[str, tuple[int, ...]]  # of links down at the end, by order; NOBODY: at first
    drawn: Mapping[int, tuple[int, ...]]  # events whose moments were drawn, by order of the step
    cut_off: Mapping[int, tuple[CutOff, ...]]  # by partitions, beside their groups, by order


def expand(model: Model, sink: Sink, recorder: Recorder | None = None) -> Timeline:
    """Raises NeedReplicas when a join needs more instances than the model has."""
    return timeline_of(walked(model, sink, recorder))


def walked(
    model: Model, sink: Sink, recorder: Recorder | None = None, until_ns: int | None = None
) -> Walk:
    """The walk at its end, or where nothing before `until_ns` is left. NeedReplicas."""
    walk = Walk(model, sink, recorder, cache(partial(_unplaced, model)))
    _begin(walk)
    _plan(walk, model.steps)
    walk.run(until_ns)
    return walk


def _unplaced(model: Model) -> frozenset[int]:
    """Instances that are never there without actions: a run has no place for them. NeedReplicas."""
    walk = Walk(model, Sink())
    _begin(walk)
    steps = model.steps
    _plan(walk, [one for one in steps if not action_texts.number_of(one.statement.span.file)])
    walk.run()
    world = walk.world
    there = {event.target for event in world.events if event.kind == "join"}
    nodes = enumerate(world.names)
    return frozenset(n for n, name in nodes if world.service_of[n] >= 0 and name not in there)


def plan_more(walk: Walk, steps: Sequence[StatementStep]) -> None:
    """Further steps, of which none begins before the moment at which the walk is."""
    walk.take(steps)
    _plan(walk, steps)


def _plan(walk: Walk, steps: Iterable[StatementStep]) -> None:
    for step in steps:
        if step.chosen is not EMPTY or not rule(step.statement.action).targets:
            walk.later(step.statement.start_ns, step, _act(step))


def timeline_of(walk: Walk) -> Timeline:
    """What a walk has left."""
    world = walk.world
    events = tuple(world.events)
    holders = {world.link_names[d]: tuple(by) for d, by in world.holders.items()}
    waits = bool(walk.topology.quit_when)
    drawn = {order: tuple(events) for order, events in walk.drawn.items()}
    return Timeline(
        events, end_of(events, waits=waits), tuple(world.declared), holders, drawn, walk.cut_off
    )


def _act(step: StatementStep) -> Callable[[Walk], None]:
    act = ACTS[type(step.statement.action)]

    def begin(walk: Walk) -> None:
        walk.begun.add(step.order)
        if step.draws_itself:
            drawing.begin(walk, step, act)
        else:
            act(walk, step)

    return begin


def _begin(walk: Walk) -> None:
    """What holds before the first statement, as events at 0 s without a line."""
    world, beginning = walk.world, walk.model.beginning
    for node in beginning.absent_bridges:
        world.move(node, GONE, "bridge_down")
    for direction in beginning.absent_links:
        world.leave(direction)
    for node in beginning.joins:
        world.bring(node)


def end_of(events: tuple[Event, ...], *, waits: bool) -> int:
    """`waits`: programs end the experiment, or it is held, so that this is only where it ends
    without that."""
    if events and events[-1].kind == "quit":
        return events[-1].at_ns
    grace = WAITING_GRACE_NS if waits else GRACE_NS
    return min((events[-1].at_ns if events else 0) + grace, MAX_INT)
