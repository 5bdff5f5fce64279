"""What the timeline says when a statement is not legal in the state of its moment."""

from __future__ import annotations

from compiler.declare.steps import StatementStep
from compiler.expand.targets import JOIN, Targets
from compiler.expand.walk import Walk
from compiler.expand.world import (
    CUT,
    CUT_KILLED,
    CUT_PAUSED,
    GONE,
    NEVER,
    UP,
    UP_KILLED,
    UP_PAUSED,
    World,
)
from compiler.phrases import declared_as, moment, number
from tdl import ast

_STATES = {
    NEVER: "has not joined yet",
    UP: "is joined and connected",
    CUT: "is disconnected",
    GONE: "is not joined any more",
    UP_PAUSED: "is paused",
    CUT_PAUSED: "is paused and disconnected",
    UP_KILLED: "is killed",
    CUT_KILLED: "is killed and disconnected",
}


def too_few(walk: Walk, step: StatementStep, targets: Targets, legal: int, wanted: int) -> None:
    """TS0302, or TS0307 for one element named by itself."""
    world, verb, what = walk.world, targets.verb, targets.what
    now = moment(world.now)
    if step.chosen.single:
        message = f"{what} {_state(world, targets)} at {now}, so it cannot {verb.name}"
        walk.error(step, "TS0307", message, _hint(walk, step, targets))
        return
    if targets.left_out():
        some, others = ("none", "they") if legal == 0 else (f"only {legal}", "the others")
        message = (
            f"{some} of the {what} that are absent at {now} can join: {others} are never there in"
            " the text, so nothing was made for them in this run"
        )
    elif legal == 0 and verb is JOIN:
        everyone = "the only one" if targets.size == 1 else f"all {targets.size}"
        message = f"{everyone} of the {what} joined already: at {now} none is absent"
    else:
        message = f"only {legal} of {targets.size} {what} are {targets.word} at {now}"
    if wanted > max(legal, 1):
        message += f"; {wanted} are asked for"
    # More than there will ever be, whatever the state.
    certain = wanted > targets.size and all(_is_sure(walk, s) for s in step.chosen.services)
    walk.error(step, "TS0302", message, _hint(walk, step, targets), certain=certain)


def _state(world: World, targets: Targets) -> str:
    if targets.links:
        left = all(world.left[direction] for direction in targets.links[0])
        return "has left already" if left else "is in place"
    node = targets.nodes[0]
    if world.service_of[node] < 0:
        return "is up" if world.nodes[node] == UP else "is down"
    return _STATES[world.nodes[node]]


def _hint(walk: Walk, step: StatementStep, targets: Targets) -> str | None:
    """For the two misunderstandings that are easy: joins of one's own, and joins that add."""
    if left_out := targets.left_out():
        first = walk.world.names[left_out[0]]
        return (
            f"have it begin and leave in the text (`at 0s {first} join`, `at 0s {first} leave`),"
            " and run that"
        )
    services = sorted({walk.world.service_of[node] for node in targets.nodes} - {-1})
    waiting = all(walk.world.nodes[node] == NEVER for node in targets.nodes)
    if waiting and services and targets.verb is not JOIN:
        return _late(walk, services)
    if len(services) != 1:
        return None
    service = services[0]
    name = walk.topology.services[service].name
    if targets.verb is JOIN:
        if walk.world.fixed[service]:
            return f"raise `replicas=` of {name!r} to have more of them"
        return f"`{name} join 1` adds one more instance" if not step.chosen.single else None
    return None


def _late(walk: Walk, services: list[int]) -> str | None:
    """Nothing of these has joined yet: because of joins of their own?"""
    late = [service for service in services if service in walk.model.beginning.late]
    if not late:
        return None
    names = [repr(walk.topology.services[service].name) for service in late]
    why = f"{names[0]} has a join of its own, so nothing of it joins by itself at 0s"
    if names[1:]:
        why = f"{', '.join(names[:3])}{' …' if names[3:] else ''} have joins of their own, so "
        why += "nothing of them joins by itself at 0s"
    steps = (step.statement for step in walk.model.steps if set(late) & set(step.chosen.services))
    first = min((s.start_ns for s in steps if isinstance(s.action, ast.Join)), default=None)
    return why if first is None else f"{why}; the first join is at {moment(first)}"


def too_many(walk: Walk, step: StatementStep, service: int, count: int) -> None:
    """TS0303: a join beyond `replicas=`."""
    world = walk.world
    name = walk.topology.services[service].name
    joined, declared = world.joined(service), world.declared[service]
    walk.error(
        step,
        "TS0303",
        f"{joined} of {declared} {name!r} instances are joined at {moment(world.now)}; "
        f"{count - joined} more are asked for",
        f"declare `service {declared_as(name)} replicas={count}`",
        certain=count - joined > declared and _is_sure(walk, service),
    )


def _is_sure(walk: Walk, service: int) -> bool:
    """`replicas=` is given, once."""
    name = walk.topology.services[service].name
    return walk.world.fixed[service] and name not in walk.model.declared.doubtful


def undeclared_instance(walk: Walk, step: StatementStep) -> bool:
    """TS0307: `server.4 join` before any join has asked for five of them."""
    world = walk.world
    for node in step.chosen.instances:
        service = world.service_of[node]
        if node not in world.range_of(service):
            name = walk.topology.services[service].name
            now = moment(world.now)
            message = f"there are only {world.declared[service]} {name!r} instances at {now}"
            needed = len(world.instances[service])
            hint = f"declare `service {declared_as(name)} replicas={needed}`"
            walk.error(step, "TS0307", message, hint)
            return True
    return False


def none(walk: Walk, step: StatementStep, count: ast.Count | None, legal: int) -> None:
    """TS0903: the outcome is zero."""
    now = moment(walk.world.now)
    message = "a count of zero does nothing"
    if count is not None and count.unit is ast.Unit.PERCENT:
        percent = f"{count.value / 10_000_000:.9g}%"
        message = f"{percent} of {number(legal, 'legal target')} at {now} rounds to none"
    span = None if count is None else count.span
    walk.warning(step, "TS0903", message, "ask for more", span)
