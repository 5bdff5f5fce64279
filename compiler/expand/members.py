"""join, leave, crash, churn, restart, disconnect, pause: who is there, runs, and is reachable.

Each act runs at the start of its statement. At an instant the targets are drawn without
replacement and hit in order of node and link. In an interval the number is fixed at its start, the
moments are drawn uniformly from [T1, T2), and each moment draws one of the targets legal then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.declare.steps import StatementStep
from compiler.draws import Stream
from compiler.expand import illegal
from compiler.expand.targets import (
    CRASH,
    DISCONNECT,
    JOIN,
    KILL,
    LEAVE,
    PAUSE,
    RECONNECT,
    RESTART,
    RESUME,
    Targets,
    Verb,
)
from compiler.expand.walk import Walk, asked
from compiler.expand.world import GONE, KILLED, PRESENT, UP
from compiler.phrases import moment
from compiler.plan.format import MAX_INT
from tdl import ast


def join(walk: Walk, step: StatementStep) -> None:
    if not _single_service(step):
        if not illegal.undeclared_instance(walk, step):
            _members(walk, step, JOIN)
        return
    count = _count(step)
    if count is not None and count.unit is ast.Unit.NUMBER and step.end_ns is None:
        service = step.chosen.services[0]
        if not _make_room(walk, step, service, walk.world.joined(service) + count.value):
            return
    _members(walk, step, JOIN)


def leave(walk: Walk, step: StatementStep) -> None:
    """Links and bridges in an interval are down for all of it. Which ones is decided at T1, as at
    an instant; at T2 those come back that no other statement has touched in this respect."""
    if not step.outage:
        _members(walk, step, LEAVE)
        return
    world = walk.world
    targets = now_possible(walk, step, LEAVE)
    bridges = targets.apply(pick(walk, step, targets), "leave")
    links = [[d for d in link if world.left_by.get(d) == step.order] for link in targets.links]
    for bridge in bridges:
        world.held_by["leave"][bridge] = step.order
    assert step.end_ns is not None
    if bridges or any(links):
        walk.later(
            step.end_ns, step, lambda walk: _end_outage(walk, step, bridges, links), closing=True
        )


def _end_outage(
    walk: Walk, step: StatementStep, bridges: list[int], links: list[list[int]]
) -> None:
    world = walk.world
    for bridge in bridges:
        if world.held_by["leave"].get(bridge) == step.order:
            world.bring(bridge)
        else:
            _kept(walk, step, world.names[bridge], back=world.nodes[bridge] == UP)
    for link in links:
        for direction in sorted(link):
            if world.left_by.get(direction) == step.order:
                world.rejoin(direction)
            else:
                name, back = world.link_names[direction], not world.left[direction]
                _kept(walk, step, name, back=back)


def _kept(walk: Walk, step: StatementStep, name: str, *, back: bool) -> None:
    now = moment(walk.world.now)
    what = "is back already" if back else "has left again by another statement"
    message = f"{name!r} {what} at {now}, so it does not come back by this one"
    walk.warning(step, "TS0912", message, "check what happens to it in the meantime")


def crash(walk: Walk, step: StatementStep) -> None:
    action = step.statement.action
    assert isinstance(action, ast.Crash)
    if not action.power:
        _members(walk, step, CRASH)
        return
    seeds = SeededStream(walk, step, "power")

    def fail(targets: Targets, positions: Sequence[int]) -> None:
        for node in targets.hit(positions):
            if walk.world.service_of[node] < 0:
                walk.world.take(node, "crash")
            else:
                walk.world.move(node, GONE, "crash", {"power_seed": seeds.now().below(MAX_INT)})

    if step.end_ns is not None:
        _in_interval(walk, step, CRASH, lambda targets, at: fail(targets, (at,)))
        return
    targets = now_possible(walk, step, CRASH)
    fail(targets, pick(walk, step, targets))


def kill(walk: Walk, step: StatementStep) -> None:
    """The programs die, the host and its addresses stay."""
    if step.end_ns is None:
        for node in _now(walk, step, KILL):
            walk.world.change(node, "kill")
        return

    def one(targets: Targets, position: int) -> None:
        for node in targets.hit((position,)):
            walk.world.change(node, "kill")

    _in_interval(walk, step, KILL, one)


def churn(walk: Walk, step: StatementStep) -> None:
    action = step.statement.action
    assert isinstance(action, ast.Churn)
    coins = SeededStream(walk, step, "replace")

    def one(targets: Targets, position: int) -> None:
        hit = targets.apply((position,), "crash")
        if coins.now().chance(action.replace_ppb):
            for node in hit:
                walk.world.bring(node)

    _in_interval(walk, step, CRASH, one)


def disconnect(walk: Walk, step: StatementStep) -> None:
    """In an interval: those disconnected at its start are reconnected at its end."""
    _for_a_while(walk, step, DISCONNECT, RECONNECT)


def reconnect(walk: Walk, step: StatementStep) -> None:
    for node in _now(walk, step, RECONNECT):
        walk.world.change(node, "reconnect")


def pause(walk: Walk, step: StatementStep) -> None:
    """In an interval: those paused at its start are resumed at its end."""
    _for_a_while(walk, step, PAUSE, RESUME)


def resume(walk: Walk, step: StatementStep) -> None:
    for node in _now(walk, step, RESUME):
        walk.world.change(node, "resume")


def _for_a_while(walk: Walk, step: StatementStep, verb: Verb, back: Verb) -> None:
    world = walk.world
    hit = _now(walk, step, verb)
    for node in hit:
        world.change(node, verb.name)
        if step.end_ns is not None:
            world.held_by[verb.name][node] = step.order
    if hit and step.end_ns is not None:
        walk.later(step.end_ns, step, lambda walk: _back(walk, step, hit, verb, back), closing=True)


def _back(walk: Walk, step: StatementStep, nodes: list[int], verb: Verb, back: Verb) -> None:
    """The end of it, for those that no other statement has touched in this respect."""
    world = walk.world
    for node in nodes:
        if world.held_by[verb.name].get(node) == step.order:
            world.change(node, back.name)
            continue
        word = {"disconnect": "disconnected", "pause": "paused"}[verb.name]
        what = f"was {word} again by another statement"
        if world.nodes[node] not in PRESENT:
            what = "is not joined any more"
        elif world.nodes[node] in KILLED and verb is PAUSE:
            what = "was killed"
        elif world.nodes[node] in verb.states:
            what = {"disconnect": "is connected already", "pause": "is running already"}[verb.name]
        done = {"disconnect": "reconnected", "pause": "resumed"}[verb.name]
        message = f"{world.names[node]!r} {what} at {moment(world.now)}, so it is not {done}"
        walk.warning(step, "TS0912", message, "check what happens to it in the meantime")


def restart(walk: Walk, step: StatementStep) -> None:
    """A crash, and a join of the same, at once or some time later."""
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.Restart)
    hit = _now(walk, step, RESTART)
    for node in hit:
        world.take(node, "crash")
        if action.after_ns:
            world.held_by["restart"][node] = step.order
        else:
            world.bring(node)
    if hit and action.after_ns:
        walk.later(world.now + action.after_ns, step, lambda walk: _bring_back(walk, step, hit))


def _bring_back(walk: Walk, step: StatementStep, nodes: list[int]) -> None:
    world = walk.world
    for node in nodes:
        if world.held_by["restart"].get(node) == step.order:
            world.bring(node)
            continue
        now = moment(world.now)
        message = f"{world.names[node]!r} has joined meanwhile, so it is not joined at {now}"
        walk.warning(step, "TS0912", message, "check what happens to it in the meantime")


def _make_room(walk: Walk, step: StatementStep, service: int, count: int) -> bool:
    """Raises the number of instances to `count`, which only `replicas=` can forbid."""
    world = walk.world
    if count <= world.declared[service]:
        return True
    if not world.fixed[service]:
        world.grow(service, count)
        return True
    illegal.too_many(walk, step, service, count)
    return False


# --- the common part ----------------------------------------------------------------------------


def _count(step: StatementStep) -> ast.Count | None:
    action = step.statement.action
    assert not isinstance(
        action,
        ast.Flap
        | ast.Set
        | ast.SetClock
        | ast.SetDisk
        | ast.Ramp
        | ast.Partition
        | ast.Heal
        | ast.Background
        | ast.Quit
        | ast.Move,
    )
    return action.count


def _single_service(step: StatementStep) -> bool:
    chosen = step.chosen
    return chosen.named and not chosen.machines and len(chosen.services) == 1


def _members(walk: Walk, step: StatementStep, verb: Verb) -> None:
    if step.end_ns is not None:
        _in_interval(walk, step, verb, lambda targets, at: targets.apply((at,), verb.name))
        return
    targets = now_possible(walk, step, verb)
    targets.apply(pick(walk, step, targets), verb.name)


def now_possible(walk: Walk, step: StatementStep, verb: Verb) -> Targets:
    return walk.targets(step, verb, drawn=_count(step) is not None)


def _now(walk: Walk, step: StatementStep, verb: Verb) -> list[int]:
    """The instances that a statement hits at this moment."""
    targets = now_possible(walk, step, verb)
    return targets.hit(pick(walk, step, targets))


def pick(walk: Walk, step: StatementStep, targets: Targets) -> list[int]:
    """The positions a statement hits at this moment; [] after a report."""
    legal = targets.count_legal()
    wanted = asked(_count(step), legal)
    if legal == 0 or wanted > legal:
        illegal.too_few(walk, step, targets, legal, wanted)
        return []
    if wanted == 0:
        illegal.none(walk, step, _count(step), legal)
        return []
    if wanted == legal:
        return targets.all_legal()
    return targets.pick(walk.stream(step, "who"), wanted)


def _in_interval(
    walk: Walk, step: StatementStep, verb: Verb, act: Callable[[Targets, int], object]
) -> None:
    """Schedules `act` on one legal target at each of the moments."""
    world = walk.world
    end = step.end_ns
    assert end is not None
    targets = walk.targets(step, verb, drawn=True)
    count = _count(step)
    legal = targets.count_legal()
    if legal == 0 and (count is None or count.unit is ast.Unit.PERCENT):
        illegal.too_few(walk, step, targets, legal, 1)
        return
    wanted = asked(count, legal)
    if wanted == 0:
        illegal.none(walk, step, count, legal)
        return
    if not walk.fits(step, wanted):
        return
    who = SeededStream(walk, step, "who")
    moments = drawn_moments(walk, step, end, wanted)
    failed = False
    grows = verb is JOIN and _single_service(step)

    def one(_: Walk) -> None:
        nonlocal failed, targets
        if failed:
            return
        targets = targets.renewed()
        if grows and not targets.any_legal():
            _grow_by_one(walk, step)
            targets = targets.renewed()
        if targets.any_legal():
            seen = len(world.events)
            act(targets, targets.choose(who.now()))
            walk.drawn.setdefault(step.order, []).extend(range(seen, len(world.events)))
        else:
            failed = True
            illegal.too_few(walk, step, targets, 0, 1)

    for at_ns in moments:
        walk.later(at_ns, step, one, bound=True)


def drawn_moments(walk: Walk, step: StatementStep, end_ns: int, count: int) -> list[int]:
    """From now to the end, ascending. Those after a moment of another seed are drawn again, by it,
    from there to the end."""
    start_ns = walk.world.now
    when = walk.stream(step, "when")
    found = [start_ns + when.below(end_ns - start_ns) for _ in range(count)]
    for at_ns in walk.seeds.changes_in(start_ns, end_ns):
        again = walk.stream(step, "again", at_ns)
        found = [one if one < at_ns else at_ns + again.below(end_ns - at_ns) for one in found]
    return sorted(found)


class SeededStream:
    """A stream of a statement that goes on for a while: another one where the seed is another."""

    def __init__(self, walk: Walk, step: StatementStep, label: str) -> None:
        self._walk, self._step, self._label = walk, step, label
        self._seed = walk.seeds.at(walk.world.now)
        self._stream = walk.stream(step, label)

    def now(self) -> Stream:
        seed = self._walk.seeds.at(self._walk.world.now)
        if seed != self._seed:
            self._seed, self._stream = seed, self._walk.stream(self._step, self._label)
        return self._stream


def _grow_by_one(walk: Walk, step: StatementStep) -> None:
    """A join in an interval raises the number of instances like one at an instant."""
    service = step.chosen.services[0]
    if not walk.world.fixed[service]:
        walk.world.grow(service, walk.world.declared[service] + 1)
