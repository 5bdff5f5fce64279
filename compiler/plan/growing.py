"""A plan that grows while a run carries it out, a little at a time: by changes of links at one
moment, or by other events from a moment on.

Input: the plan of the run, and the events of an action, which the compiler has made
(compiler/kept_walk.py, compiler/kept_firings.py). Output: the longer plan, whose parts are those
before and what is new; and, when somebody asks, its files, to the byte what compiling its source
gives. State and routes at the last moment are kept, so that an action costs what it changes, and
what is planned for later than that. What cannot be added so (CannotGrowError) is compiled as a
whole.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Generic, TypeVar

from compiler.plan import format as form
from compiler.plan.encoding import epoch_to_json, event_from_json, event_line
from compiler.plan.event_kinds import EVENT_KINDS, LINK
from compiler.plan.format import MAX_INT, Place
from compiler.plan.parts import attached
from compiler.plan.parts.attached import Attached
from compiler.plan.reader import Plan
from compiler.plan.routes import tsroutes
from compiler.plan.routes.core import Core
from compiler.plan.routes.routing import Routes
from compiler.plan.routes.table import RouteDelta, RouteReader, RouteWriter
from compiler.plan.rules import consistency
from compiler.plan.state import Fold
from compiler.plan.types import Epoch, Event

_OF_LINKS = frozenset({"set"} | {kind.word for kind in EVENT_KINDS if kind.target == LINK})
_QUIT = "quit"

Row = tuple[str, str, dict[str, Any], int]  # kind, target, args and line of an event
T = TypeVar("T")


class CannotGrowError(Exception):
    """What takes the whole compiler, and why."""


class _Deltas(RouteReader):
    """Changes of routes that were not written yet."""

    def __init__(self, core: Core, deltas: Sequence[RouteDelta]) -> None:
        self._cells = core.cells
        self._deltas = deltas

    def changes(self, epoch: int) -> RouteDelta:
        return self._deltas[epoch]

    def reachable(self, epoch: int) -> RouteDelta:
        found = self.table(epoch)
        cells = array("I", (cell for cell, value in enumerate(found) if value))
        return RouteDelta(cells, array("H", (value for value in found if value)))

    def table(self, epoch: int) -> array[int]:
        found = array("H", bytes(2 * self._cells))
        for delta in self._deltas[: epoch + 1]:
            tsroutes.put(found, delta.cells, delta.values)
        return found


class GrownPlan(Plan):
    """In memory only: `digest` is '' until its files are made."""

    def __init__(self, before: Plan, found: _Parts) -> None:
        counts = {
            **before._header.counts,
            "events": len(found.events),
            "epochs": len(found.epochs),
        }
        self._header = replace(before._header, counts=counts, end_ns=found.end_ns)
        self.digest = ""
        self._read, self._read_before = {}, None
        self.seed, self.params, self.end_ns = before.seed, before.params, found.end_ns
        self.routing, self.tool_version = before.routing, before.tool_version
        self.topology, self.core = before.topology, before.core
        self.source, self.attached = found.source, found.attached
        self.events, self.epochs = found.events, found.epochs
        self.expectations, self.figures = before.expectations, before.figures
        self.routes = _Deltas(before.core, found.deltas)

    def _load(self, name: str) -> bytes:
        return Place(name).fail("is not written yet", "try again")


@dataclass(frozen=True, slots=True)
class _Parts:
    """Of one plan. What has come later is none of them."""

    source: bytes
    attached: Attached
    events: tuple[Event, ...]
    epochs: tuple[Epoch, ...]
    deltas: tuple[RouteDelta, ...]  # of routes, by epoch
    end_ns: int


class GrowingPlan:
    """PlanError, as Plan; CannotGrowError if this plan is not one that can."""

    def __init__(self, plan: Plan) -> None:
        if plan.routing == "ecmp":
            raise CannotGrowError("groups of equal paths are numbered as they are first used")
        self.plan = plan
        self._fold = Fold(plan.topology)
        self._routes = Routes(plan.topology)
        self._at = 0  # how many epochs are folded
        routes = plan.routes
        deltas = tuple(routes.changes(epoch) for epoch in range(len(plan.epochs)))
        self._parts = _Parts(
            plan.source, plan.attached, plan.events, plan.epochs, deltas, plan.end_ns
        )
        last_ns = plan.events[-1].at_ns if plan.events else 0
        quits = bool(plan.events) and plan.events[-1].kind == "quit"
        self._grace_ns = None if quits else plan.end_ns - last_ns
        self._header = json.loads(plan.raw(form.HEADER))
        same = (form.EXPECTATIONS, form.FIGURES, form.TOPOLOGY)
        self._same = {name: plan.raw(name) for name in same}
        self._members: dict[str, bytes] = attached.parts(plan.raw(form.ATTACHED))
        self._timeline = _Lines[Event](event_line)
        self._snapshots = _Lines[Epoch](lambda one: form.canonical(epoch_to_json(one)))
        self._writer, self._written = RouteWriter(plan.core), 0  # of routes, and how many it has

    def add(self, at_ns: int, name: str, text: bytes, rows: Iterable[Row]) -> GrownPlan:
        """The plan with these events at a moment at which nothing happens, later than all that were
        added before; `text` is that of the action. CannotGrowError; PlanError for what is no event
        of this plan, after which this object is of no use."""
        parts = self._parts
        index = bisect_left(parts.epochs, at_ns, key=lambda one: one.at_ns)
        first = parts.epochs[index - 1].last_seq
        own = tuple(
            _of_link(Event(first + number, at_ns, *row, name)) for number, row in enumerate(rows)
        )
        taken = index < len(parts.epochs) and parts.epochs[index].at_ns == at_ns
        if index < self._at or taken or not 0 < at_ns < self.plan.end_ns:
            raise CannotGrowError("something else happens then")
        if own and self._grace_ns is not None and self.plan.expectations:
            raise CannotGrowError("expectations hold until the end, which is another")
        self._advance(index)
        epochs, deltas, later = parts.epochs, parts.deltas, parts.events[first:]
        if own:
            later = tuple(_later(one, len(own)) for one in later)
            new, delta = self._folded(own, index, first)
            after = self._following(new, later)
            routes = self._routes_after(after, index)
            epochs, deltas = (*epochs[:index], new, *after), (*deltas[:index], delta, *routes)
            self._at += 1
        return self._grown(name, text, (*parts.events[:first], *own, *later), epochs, deltas)

    def add_from(self, at_ns: int, name: str, text: bytes, later: Sequence[Event]) -> GrownPlan:
        """The plan with these events, in order, instead of those that it has from this moment on,
        which is no earlier than that of the time before; their numbers tell nothing. `text` is that
        of the action. CannotGrowError; PlanError for what is no event of this plan, after which
        this object is of no use."""
        parts = self._parts
        index = bisect_left(parts.epochs, at_ns, key=lambda one: one.at_ns)
        if index < self._at or at_ns <= 0 or any(one.at_ns < at_ns for one in later[:1]):
            raise CannotGrowError("that moment is over")
        if self._grace_ns is not None and self.plan.expectations:
            raise CannotGrowError("expectations hold until the end, which is another")
        self._advance(index)
        first = parts.epochs[index - 1].last_seq
        kept = parts.events[:first]
        added = tuple(replace(one, seq=first + number) for number, one in enumerate(later))
        epochs, deltas = self._folded_from(added, kept[-1] if kept else None, index)
        return self._grown(
            name,
            text,
            (*kept, *added),
            (*parts.epochs[:index], *epochs),
            (*parts.deltas[:index], *deltas),
        )

    def _folded_from(
        self, later: Sequence[Event], last: Event | None, index: int
    ) -> tuple[list[Epoch], tuple[RouteDelta, ...]]:
        """The epochs that these events make, from this index on. What is kept stays where it is."""
        fold, epochs = self._fold.copied(), list[Epoch]()
        for at_ns, moment in groupby(later, key=lambda one: one.at_ns):
            events = list(moment)
            for event in events:
                end_ns = event.at_ns if event.kind == _QUIT else MAX_INT
                consistency.event(event, last, end_ns, Place(form.TIMELINE, event.seq + 1))
                fold.apply(event)
                last = event
            numbers = events[0].seq, events[-1].seq + 1
            epochs.append(fold.delta(index + len(epochs), at_ns, *numbers))
        return epochs, self._routes_of(epochs)

    def _grown(
        self,
        name: str,
        text: bytes,
        events: tuple[Event, ...],
        epochs: tuple[Epoch, ...],
        deltas: tuple[RouteDelta, ...],
    ) -> GrownPlan:
        parts, end_ns = self._parts, self._parts.end_ns
        if events and self._grace_ns is not None:
            end_ns = min(events[-1].at_ns + self._grace_ns, MAX_INT)
        source = parts.source.rstrip(b"\n") + f'\ninclude "{name}"\n'.encode()
        member = attached.include_name(name)
        self._members[member] = attached.member(member, text)
        includes = parts.attached.with_include(name, text)
        self._parts = _Parts(source, includes, events, epochs, deltas, end_ns)
        self.plan = GrownPlan(self.plan, self._parts)
        return self.plan

    def _advance(self, index: int) -> None:
        """Folds what is planned before."""
        for epoch in self._parts.epochs[self._at : index]:
            for event in self._parts.events[epoch.first_seq : epoch.last_seq]:
                self._fold.apply(event)
            self._fold.delta(epoch.index, epoch.at_ns, epoch.first_seq, epoch.last_seq)
            self._routes.apply(epoch.links)
        self._at = max(self._at, index)

    def _folded(self, own: Sequence[Event], index: int, first: int) -> tuple[Epoch, RouteDelta]:
        for event in own:
            self._fold.apply(event)
        new = self._fold.delta(index, own[0].at_ns, first, first + len(own))
        return new, self._routes.apply(new.links)

    def _following(self, new: Epoch, later: Sequence[Event]) -> tuple[Epoch, ...]:
        """The epochs after a new one."""
        count = new.last_seq - new.first_seq
        found = tuple(_shifted(one, 1, count) for one in self._parts.epochs[new.index :])
        changed = {link for link, _ in new.links}
        named = [self._fold.topology.links[link] for link in changed]
        ends = {end for link in named for end in (link.src, link.dst)}
        if not any(
            any(link in changed for link, _ in epoch.links)
            or any(node in ends for node, _ in epoch.nodes)
            for epoch in found
        ):
            return found
        fold, again = self._fold.copied(), []  # they have a word on the same links
        for epoch in found:
            for event in later[epoch.first_seq - new.last_seq : epoch.last_seq - new.last_seq]:
                fold.apply(event)
            again.append(fold.delta(epoch.index, epoch.at_ns, epoch.first_seq, epoch.last_seq))
        return tuple(again)

    def _routes_after(self, later: Sequence[Epoch], index: int) -> tuple[RouteDelta, ...]:
        """Those of the epochs after the new one."""
        if not any(epoch.links for epoch in later):
            return self._parts.deltas[index:]
        return self._routes_of(later)

    def _routes_of(self, later: Sequence[Epoch]) -> tuple[RouteDelta, ...]:
        """Of epochs that follow, after which the routes are again those of what is folded."""
        found = tuple(self._routes.apply(epoch.links) for epoch in later)
        touched = {link for epoch in later for link, _ in epoch.links}
        self._routes.apply([(link, self._fold.shown_links[link]) for link in sorted(touched)])
        return found

    def files(self) -> Callable[[], dict[str, bytes]]:
        """What makes the files of the plan as it is now. It may be called in another thread, where
        no other does the same, and while the plan grows."""
        parts, members, fixed = self._parts, dict(self._members), self._at

        def made() -> dict[str, bytes]:
            events, epochs = parts.events, parts.epochs
            first = epochs[fixed - 1].last_seq if fixed else 0
            routes = self._written_routes(parts.deltas, fixed)
            files = {
                **self._same,
                form.ATTACHED: attached.archive(members),
                form.SOURCE: parts.source,
                form.TIMELINE: self._timeline.all(events, first),
                form.SNAPSHOTS: self._snapshots.all(epochs, fixed),
                form.ROUTES: routes.encode(),
            }
            return {form.HEADER: self._new_header(parts, files), **files}

        return made

    def _written_routes(self, deltas: Sequence[RouteDelta], fixed: int) -> RouteWriter:
        """`fixed`: how many never change any more. Those are kept."""
        for delta in deltas[self._written : fixed]:
            self._writer.add(delta)
        self._written = max(fixed, self._written)
        found = self._writer.copied()
        for delta in deltas[self._written :]:
            found.add(delta)
        return found

    def _new_header(self, parts: _Parts, files: Mapping[str, bytes]) -> bytes:
        counts = {"events": len(parts.events), "epochs": len(parts.epochs)}
        return form.canonical(
            {
                **self._header,
                "counts": {**self._header["counts"], **counts},
                "end_ns": parts.end_ns,
                "files": {name: form.digest_and_size(data) for name, data in files.items()},
            }
        )


class _Lines(Generic[T]):
    """Lines of a file, of which the first ones stay."""

    def __init__(self, encode: Callable[[T], bytes]) -> None:
        self._encode = encode
        self._fixed, self._data = 0, b""

    def all(self, items: Sequence[T], fixed: int) -> bytes:
        """`fixed`: how many never change any more."""
        new = items[self._fixed : fixed]
        self._data = b"".join((self._data, *map(self._encode, new)))
        self._fixed = max(fixed, self._fixed)
        return b"".join((self._data, *map(self._encode, items[self._fixed :])))


def _of_link(found: Event) -> Event:
    """Checked as one that is read."""
    place = Place(form.TIMELINE, found.seq + 1)
    if found.kind not in _OF_LINKS:
        place.fail("is no change of a link")
    record = {field.name: getattr(found, field.name) for field in fields(Event)}
    return event_from_json(record, place)


def _later(event: Event, count: int) -> Event:
    return replace(event, seq=event.seq + count)


def _shifted(one: Epoch, epochs: int, events: int) -> Epoch:
    """The same behind so many more."""
    first, last = one.first_seq + events, one.last_seq + events
    return Epoch(one.index + epochs, one.at_ns, first, last, one.nodes, one.links)
