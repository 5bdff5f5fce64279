"""What a statement draws of itself: when it happens, for how long, and to which of its targets.

`from 2s to 20s 3 of tags=wan set latency=200ms for 1s..2s` becomes, at a moment of the interval, an
interval of its own with three of these links. The moment is drawn at T1, the length and the targets
at that moment. From then on it is what the statement would be with all of that written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler.declare.selectors import Selection
from compiler.declare.steps import Group, StatementStep
from compiler.expand import illegal
from compiler.expand.members import drawn_moments
from compiler.expand.targets import Targets, Verb
from compiler.expand.walk import Walk, asked
from compiler.expand.world import EVERY_STATE
from compiler.phrases import moment
from tdl import ast

Act = Callable[[Walk, StatementStep], None]

_DRAW = Verb("draw", EVERY_STATE, 0, "there")


def begin(walk: Walk, step: StatementStep, act: Act) -> None:
    drawn, end_ns = step.statement.drawn, step.statement.end_ns
    if drawn is None or not drawn.moment:
        _happen(walk, step, act)
        return
    assert end_ns is not None
    [at_ns] = drawn_moments(walk, step, end_ns, 1)

    def then(walk: Walk) -> None:
        seen = len(walk.world.events)
        _happen(walk, step, act)
        if len(walk.world.events) > seen:
            walk.drawn[step.order] = [seen]  # the others of it follow from this one

    walk.later(at_ns, step, then)


def _happen(walk: Walk, step: StatementStep, act: Act) -> None:
    """At its moment."""
    statement, chosen, groups = step.statement, step.chosen, step.groups
    if isinstance(statement.selector, ast.Some):
        found = _some(walk, step, statement.selector.count)
        if found is None:
            return
        chosen = found
    action = statement.action
    if isinstance(action, ast.Partition) and action.count is not None and groups:
        parted = _parted(walk, step, action.count, groups[0])
        if parted is None:
            return
        groups = parted
    step = replace(step, chosen=chosen, groups=groups)
    act(walk, step if statement.drawn is None else _timed(walk, step, statement.drawn))


def _timed(walk: Walk, step: StatementStep, drawn: ast.DrawnTiming) -> StatementStep:
    """The same from now on, for as long as is drawn."""
    now, spread = walk.world.now, drawn.longest_ns - drawn.shortest_ns
    length_ns = drawn.shortest_ns + walk.stream(step, "length").below(spread + 1)
    end_ns = now + length_ns if drawn.longest_ns else None
    action = step.statement.action
    if isinstance(action, ast.Restart):
        action, end_ns = replace(action, after_ns=length_ns), None
    statement = replace(step.statement, start_ns=now, end_ns=end_ns, action=action, drawn=None)
    return replace(step, statement=statement, end_ns=end_ns)


@dataclass(frozen=True, slots=True)
class _Names:
    """Candidates of which every one is legal."""

    names: Sequence[str]
    word: str = "there"

    def name(self, position: int) -> str:
        return self.names[position]

    def count_legal(self) -> int:
        return len(self.names)

    def all_legal(self) -> list[int]:
        return [*range(len(self.names))]


def _positions(
    walk: Walk, step: StatementStep, count: ast.Count, what: str, names: Sequence[str]
) -> list[int] | None:
    """As many of these as are asked for, ascending; None after a report."""
    wanted, now = asked(count, len(names)), moment(walk.world.now)
    if wanted > len(names):
        message = f"there are {len(names)} {what} at {now}; {wanted} are asked for"
        walk.error(step, "TS0302", message)
        return None
    if not wanted:
        illegal.none(walk, step, count, len(names))
        return None
    candidates = _Names(names)
    stream = walk.stream(step, "which")
    return sorted(stream.sample(len(names), lambda _: True, wanted, candidates))


def _some(walk: Walk, step: StatementStep, count: ast.Count) -> Selection | None:
    """So many of the instances, bridges and links of the selection; of machines, whole ones."""
    chosen = step.chosen
    if chosen.machines:
        names = [one.what for one in chosen.machines]
        found = _positions(walk, step, count, chosen.what, names)
        if found is None:
            return None
        some = [chosen.machines[position] for position in found]
        nodes = tuple(
            node for one in some for node in Targets(walk.world, one, _DRAW, drawn=True).nodes
        )
        links = tuple(link for one in some for link in one.links)
        return Selection(chosen.what, instances=nodes, links=links)
    targets = Targets(walk.world, chosen, _DRAW, drawn=True)
    names = [targets.name(position) for position in range(targets.size)]
    found = _positions(walk, step, count, chosen.what, names)
    if found is None:
        return None
    nodes = tuple(targets.nodes[position] for position in found if position < len(targets.nodes))
    links = tuple(
        targets.links[position - len(targets.nodes)]
        for position in found
        if position >= len(targets.nodes)
    )
    is_bridge = [walk.world.service_of[node] < 0 for node in nodes]
    return Selection(
        chosen.what,
        instances=tuple(node for node, bridge in zip(nodes, is_bridge, strict=True) if not bridge),
        bridges=tuple(node for node, bridge in zip(nodes, is_bridge, strict=True) if bridge),
        links=links,
    )


def _parted(
    walk: Walk, step: StatementStep, count: ast.Count, group: Group
) -> tuple[Group, ...] | None:
    """So many of the group, and all others of it."""
    names = [walk.world.names[node] for node in group]
    found = _positions(walk, step, count, "members of the group", names)
    if found is None:
        return None
    if len(found) == len(group):
        message = f"all {len(group)} members of the group are drawn: nobody is left to part from"
        walk.error(step, "TS0302", message, "lower the number")
        return None
    some = {group[position] for position in found}
    return tuple(sorted(some)), tuple(node for node in group if node not in some)
