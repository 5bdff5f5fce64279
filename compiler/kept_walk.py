"""What changes of links make of a running experiment whose walk through time is kept.

Input: a compiled plan, a moment from which on nothing of it has happened, and changes of its links
(compiler/link_changes.py). Output: the events that these changes are, and the text of the action:
both as compiling the plan with that text gives them (compiler/extension.py), at the cost of what is
changed. The walk stands at the end of all that is planned, so this is so only of links that nothing
which is still to come may be about; of others, and of whatever is wrong, NotKeptError says that it
takes the whole compiler, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.declare.model import Model
from compiler.declare.selectors import Selection
from compiler.declare.steps import StatementStep
from compiler.expand.timeline import ACTS, walked
from compiler.link_changes import WORDS, LinkChange, LinkChanges
from compiler.plan import run_clock
from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan
from compiler.plan.types import Event, Link
from tdl import ast, quantities
from tdl.diagnostics import Sink

_SPAN = ast.Span(1, 1, 1, 2)
_OF_ALL = (ast.Partition, ast.Heal, ast.Move)  # what they do depends on links that nobody names


class NotKeptError(Exception):
    """This takes the whole compiler."""


class KeptWalk:
    """Of a plan and its model, from `now_ns` on."""

    def __init__(self, plan: Plan, model: Model, now_ns: int) -> None:
        self._index = {link.name: number for number, link in enumerate(model.topology.links)}
        self._pending = _pending(model, now_ns)
        held = not run_clock.read(plan.attached.includes).is_plain
        self._nothing = held or self._pending is None or model.oversized
        self._meaning = LinkChanges(plan, now_ns)
        self._walk = walked(model, Sink())
        self._order = len(model.steps) + 1
        self._chosen: dict[int, Selection] = {}  # one object each: the walk knows them by that

    def links(self, changes: Sequence[LinkChange]) -> list[tuple[Link, ...]]:
        """What the changes are about. ChangeError, NotKeptError."""
        if self._nothing or any(one.at_ns is not None for one in changes):
            raise NotKeptError
        if not all(map(self._meaning.is_direct, changes)):
            raise NotKeptError
        found = self._meaning.links(changes)
        for change, own in zip(changes, found, strict=True):
            if change.reset and not all(one.state.rate_bps for one in own):
                raise NotKeptError  # it depends on what they have now
            if any(self._index[one.name] in (self._pending or ()) for one in own):
                raise NotKeptError
        return found

    def events(
        self, changes: Sequence[LinkChange], links: Sequence[Sequence[Link]], number: int
    ) -> list[Event]:
        """Of action `number`, in order; their times tell nothing. NotKeptError, after which this
        object is of no use."""
        walk, world = self._walk, self._walk.world
        before, name, line = len(world.events), action_texts.name_of(number), 0
        for position, (change, own) in enumerate(zip(changes, links, strict=True)):
            for link in own:
                for action in self._actions(change, link, position):
                    line, self._order = line + 1, self._order + 1
                    world.place, world.by = (name, line), self._order
                    ACTS[type(action)](walk, self._step(action, self._index[link.name]))
        found = world.events[before:]
        del world.events[before:]  # whoever carries them out has them
        if walk.sink.failed:
            raise NotKeptError
        return found

    def text(
        self, changes: Sequence[LinkChange], links: Sequence[Sequence[Link]], at_ns: int
    ) -> str:
        """The action, with its times written out."""
        begin = f"at {quantities.time(at_ns)} "
        found = self._meaning.statements(changes, links)
        return "".join(f"{begin}{line}\n" for _, line in found)

    def _actions(self, change: LinkChange, link: Link, position: int) -> list[ast.Action]:
        found: list[ast.Action] = []
        values = self._meaning.values(change, link, position)
        if values:
            found.append(_set(values))
        if change.up is not None:
            found.append(ast.Join(None, _SPAN) if change.up else ast.Leave(None, _SPAN))
        return found

    def _step(self, action: ast.Action, direction: int) -> StatementStep:
        if direction not in self._chosen:
            name = self._walk.world.link_names[direction]
            own = ((direction,),)
            self._chosen[direction] = Selection(name, links=own, named=True, single=True)
        selector = ast.Everything(_SPAN)  # which it was is in `chosen`
        dynamic = ast.Dynamic(self._walk.world.now, None, selector, action, _SPAN)
        return StatementStep(self._order, dynamic, self._chosen[direction], None)


def _set(values: Mapping[str, int]) -> ast.Set:
    return ast.Set(
        tuple(
            ast.Assignment(ast.Name(WORDS[field][0], _SPAN), ast.Op.ASSIGN, value, _SPAN)
            for field, value in values.items()
        ),
        _SPAN,
    )


def _pending(model: Model, now_ns: int) -> frozenset[int] | None:
    """Directions that something planned from now on may be about; None: any may be."""
    found: set[int] = set()
    for step in model.steps:
        if isinstance(step.statement.action, ast.Quit):
            continue
        if step.last_ns < now_ns:
            continue
        if isinstance(step.statement.action, _OF_ALL):
            return None
        found.update(direction for link in step.chosen.links for direction in link)
    return frozenset(found)
