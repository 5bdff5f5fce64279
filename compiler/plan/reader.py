"""Reads a plan strictly: a missing, truncated, edited, foreign or newer plan is a PlanError.

Bytes are checked against size and SHA-256 when they are read and used from memory afterwards, so
what was checked is what is used. Nothing is allocated because a number in the plan says so.
Format in docs/plan.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from compiler.plan import format as form
from compiler.plan import sparse
from compiler.plan.encoding import epoch_from_json, event_from_json, topology_from_json
from compiler.plan.format import Place, PlanError
from compiler.plan.parts import attached, expectations, figures
from compiler.plan.parts.attached import Attached
from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.parts.figures import PlannedFigure
from compiler.plan.routes.behind import RouteGroup, route_groups
from compiler.plan.routes.cells import CellReader
from compiler.plan.routes.core import Core
from compiler.plan.routes.table import RouteReader
from compiler.plan.rules import consistency
from compiler.plan.sparse import Outline, SparseState
from compiler.plan.state import NetworkState, StateAt
from compiler.plan.storage.files import Files, Memory, PlanFiles
from compiler.plan.types import Epoch, Event, Topology

T = TypeVar("T")
_COUNTS = ("epochs", "events", "expectations", "instances", "links", "nodes", "services")


@dataclass(frozen=True, slots=True)
class _Header:
    counts: Mapping[str, int]
    end_ns: int
    files: Mapping[str, tuple[int, str]]  # size, sha256
    params: Mapping[str, str]
    routing: str
    seed: int
    tool: str


class Plan:
    """A plan. Parts are read, checked and kept when first asked for; any may raise PlanError."""

    source_name = form.SOURCE
    names = (form.HEADER, *form.FILES)

    def __init__(self, files: Files, before: Plan | None = None) -> None:
        self._files = files
        # What is read of lines, by file, and how it was in the plan before, where there is one.
        self._read: dict[str, tuple[Sequence[bytes], Sequence[Any]]] = {}
        self._read_before = None if before is None else dict(before._read)
        size = files.size(form.HEADER)
        if size > form.MAX_HEADER_BYTES:
            raise PlanError(form.HEADER, f"{size} bytes are too many for a header")
        data = files.read(form.HEADER, size)
        self._header = _read_header(data)
        self.digest = hashlib.sha256(data).hexdigest()
        self.seed = self._header.seed
        self.params = self._header.params  # values of the source's parameters
        self.end_ns = self._header.end_ns
        self.routing = self._header.routing
        self.tool_version = self._header.tool
        for name in form.FILES:
            self._check_size(name, files.size(name))

    def _check_size(self, name: str, size: int) -> None:
        wanted = self._header.files[name][0]
        if size != wanted:
            raise PlanError(name, f"has {size} bytes instead of the {wanted} in {form.HEADER}")

    def _load(self, name: str) -> bytes:
        size, digest = self._header.files[name]
        data = self._files.read(name, size)
        self._check_size(name, len(data))
        if hashlib.sha256(data).hexdigest() != digest:
            raise PlanError(name, f"was changed: its SHA-256 is not the one in {form.HEADER}")
        return data

    def _lines(self, name: str, *, any_form: bool = False) -> Iterator[tuple[Place, Any]]:
        """Parses the lines of a .jsonl one by one, with the place of each."""
        lines = self._load(name).splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            yield Place(name, number), form.parse(line, name, number, any_form=any_form)

    def _items(
        self,
        name: str,
        read: Callable[[Any, Place], T],
        check: Callable[[T, T | None, Place], None],
    ) -> tuple[T, ...]:
        """What the lines of a .jsonl say. Those that the plan before has, too, are not read again:
        a run's plan grows by a few lines at a time, and a reaction waits for all of it."""
        lines = self._load(name).splitlines(keepends=True)
        known, items = (self._read_before or {}).get(name, ((), ()))
        pairs = enumerate(zip(lines, known, strict=False))
        same = next((n for n, (a, b) in pairs if a != b), min(len(lines), len(known)))
        first = max(same - 1, 0)  # what of the same is checked again: it is the latest of them
        found: list[T] = list(items[:first])
        for number in range(first, len(lines)):
            place = Place(name, number + 1)
            if number < same:
                item = items[number]
            else:
                item = read(form.parse(lines[number], name, number + 1), place)
            check(item, found[-1] if found else None, place)
            found.append(item)
        if self._read_before is not None:
            self._read[name] = lines, found
        return tuple(found)

    def _count(self, name: str, file: str, found: int) -> None:
        wanted = self._header.counts[name]
        if found != wanted:
            raise PlanError(file, f"holds {found} {name} instead of the {wanted} in {form.HEADER}")

    def raw(self, name: str) -> bytes:
        """One of the plan's files, byte for byte, checked like everything that is read."""
        if name != form.HEADER:
            return self._load(name)
        data = self._files.read(name, form.MAX_HEADER_BYTES)
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise PlanError(name, "was changed while it was read", "try again")
        return data

    @cached_property
    def source(self) -> bytes:
        """The TDL source, as it was given."""
        return self._load(form.SOURCE)

    @cached_property
    def attached(self) -> Attached:
        """What the files of services hold, by digest, and included texts, by path."""
        found = attached.read(self._load(form.ATTACHED))
        found.check(self.topology)
        return found

    @cached_property
    def topology(self) -> Topology:
        data = self._load(form.TOPOLOGY)
        found = topology_from_json(form.parse(data, form.TOPOLOGY, 1), Place(form.TOPOLOGY, 1))
        instances = consistency.topology(found)
        counted = (("instances", instances), ("links", len(found.links)))
        for name, count in (*counted, ("nodes", len(found.nodes))):
            self._count(name, form.TOPOLOGY, count)
        self._count("services", form.TOPOLOGY, len(found.services))
        if found.routing != self._header.routing:
            raise PlanError(form.TOPOLOGY, f"routing is not the one in {form.HEADER}")
        return found

    @cached_property
    def expectations(self) -> tuple[PlannedExpectation, ...]:
        """What the run is judged by, in the order of the source."""
        value = form.parse(self._load(form.EXPECTATIONS), form.EXPECTATIONS, 1)
        instances, endpoints = self._header.counts["instances"], self.core.endpoints
        found = expectations.from_json(value, instances, endpoints, self.end_ns)
        self._count("expectations", form.EXPECTATIONS, len(found))
        return found

    @cached_property
    def figures(self) -> tuple[PlannedFigure, ...]:
        """Numbers that its programs give, in the order of the source."""
        value = form.parse(self._load(form.FIGURES), form.FIGURES, 1)
        return figures.from_json(value, self._header.counts["instances"])

    @cached_property
    def core(self) -> Core:
        return Core(self.topology)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        def check(event: Event, last: Event | None, place: Place) -> None:
            consistency.event(event, last, self.end_ns, place)

        found = self._items(form.TIMELINE, event_from_json, check)
        self._count("events", form.TIMELINE, len(found))
        return found

    @cached_property
    def epochs(self) -> tuple[Epoch, ...]:
        if self._read_before is None:
            found = tuple(self._read_epochs())
        else:
            read = partial(epoch_from_json, topology=self.topology)
            found = self._items(form.SNAPSHOTS, read, consistency.epoch)
            self._check_last(found[-1] if found else None)
        self._count("epochs", form.SNAPSHOTS, len(found))
        return found

    def _read_epochs(self) -> Iterator[Epoch]:
        last = None
        for place, value in self._lines(form.SNAPSHOTS):
            epoch = epoch_from_json(value, place, self.topology)
            consistency.epoch(epoch, last, place)
            yield epoch
            last = epoch
        self._check_last(last)

    def _check_last(self, last: Epoch | None) -> None:
        if last is None:
            raise PlanError(form.SNAPSHOTS, "holds no epoch")
        if last.last_seq != self._header.counts["events"]:
            raise PlanError(form.SNAPSHOTS, "does not account for every event")

    @cached_property
    def routes(self) -> RouteReader:
        data = self._load(form.ROUTES)
        return RouteReader(data, self.topology, self.core, self._header.counts["epochs"])

    def route_groups(self, epoch: int, *, whole: bool = False) -> Iterable[RouteGroup]:
        """What an engine has to be told about routes for this epoch, in a total order.

        Epoch 0 lists every route there is (nothing is reachable before), later ones what changed;
        with `whole` a later one too lists every route there is, for an engine that starts with it.
        """
        if epoch == 0 or whole:
            return route_groups(self.core, self.routes.reachable(epoch), initial=True)
        return route_groups(self.core, self.routes.changes(epoch), initial=False)

    def folded_at(self, at_ns: int) -> StateAt:
        """Nodes and links at a moment, events at that moment included. Reads no timeline, and no
        routes."""
        if at_ns < 0:
            raise ValueError("time starts at 0")
        fold = StateAt(self.topology)
        for epoch in self._epochs_until(at_ns):
            fold.advance(epoch)
        return fold

    def state_at(self, at_ns: int) -> NetworkState:
        """The same with its routes."""
        return self.routed(self.folded_at(at_ns))

    def routed(self, fold: StateAt) -> NetworkState:
        """Nodes and links that were folded, with their routes."""
        count = self._header.counts["epochs"]
        if fold.epoch >= count:
            raise PlanError(form.SNAPSHOTS, f"holds more than {count} epochs")
        table = self.routes.table(fold.epoch)
        return NetworkState(
            self.topology, self.core, fold.epoch, fold.at_ns, fold.nodes, fold.links, table
        )

    def sparse_at(self, at_ns: int) -> SparseState:
        """state_at() for a few questions: reads and checks little more than what is asked for."""
        if at_ns < 0:
            raise ValueError("time starts at 0")
        lines = self._lines(form.SNAPSHOTS, any_form=True)
        return sparse.state(self._outline, lines, at_ns, self._cells)

    @cached_property
    def _outline(self) -> Outline:
        value = form.parse(self._load(form.TOPOLOGY), form.TOPOLOGY, 1, any_form=True)
        return Outline(value, self._header.counts)

    def _cells(self, epoch: int) -> CellReader:
        outline, epochs = self._outline, self._header.counts["epochs"]
        if epoch >= epochs:
            raise PlanError(form.SNAPSHOTS, f"holds more than {epochs} epochs")
        size = self._header.files[form.ROUTES][0]
        return CellReader(
            self._part_of_routes, size, outline.core, outline.ends, epoch=epoch, epochs=epochs
        )

    def _part_of_routes(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found = self._files.parts(form.ROUTES, ranges)
        for data, (_, size) in zip(found, ranges, strict=True):
            if len(data) != size:
                raise PlanError(form.ROUTES, "was cut while it was read", "try again")
        return found

    def _epochs_until(self, at_ns: int) -> Iterator[Epoch]:
        source = self.epochs if "epochs" in self.__dict__ else self._read_epochs()
        for epoch in source:
            if epoch.at_ns > at_ns:
                return
            yield epoch

    def verify(self, *, deep: bool = False) -> None:
        """Reads everything and checks that the parts agree.

        The epochs must be what the timeline makes of the topology. With `deep`, every change of
        every route is replayed too (routes themselves are taken as given: compiling is not redone).
        """
        self._load(form.SOURCE)
        _ = self.attached, self.expectations, self.figures
        consistency.folded(self.topology, self.events, self.epochs)
        if deep:
            self.routes.verify()
        else:
            self.routes.table(0)


def _read_header(data: bytes) -> _Header:
    value = form.parse(data, form.HEADER, 1)
    place = Place(form.HEADER, 1)
    _check_version(value, place)
    counts, end, files, _, params, routing, seed, tool, _ = place.fields(
        value, "counts", "end_ns", "files", "format", "params", "routing", "seed", "tool", "version"
    )
    numbers = place.fields(counts, *_COUNTS)
    return _Header(
        counts={
            name: place.integer(number, name) for name, number in zip(_COUNTS, numbers, strict=True)
        },
        end_ns=place.integer(end, "end_ns"),
        files=_read_files(files, place),
        params=_read_params(params, place),
        routing=place.word(routing, "routing", form.ROUTINGS),
        seed=place.integer(seed, "seed"),
        tool=place.text(tool, "tool"),
    )


def _read_params(value: Any, place: Place) -> dict[str, str]:
    if type(value) is not dict:
        place.fail("params must be an object")
    found = {name: place.text(text, f"the param {name:.60}") for name, text in value.items()}
    consistency.params(found, place)
    return found


def _check_version(value: Any, place: Place) -> None:
    """Before anything else: a newer plan may differ in every other field."""
    if type(value) is not dict or value.get("format") != form.FORMAT_NAME:
        place.fail(f"not a plan (format is not {form.FORMAT_NAME!r})", "give a NAME.plan directory")
    version = place.integer(value.get("version"), "version", 1)
    if version != form.FORMAT_VERSION:
        age = "newer" if version > form.FORMAT_VERSION else "older"
        place.fail(
            f"the plan has format {version}, {age} than {form.FORMAT_VERSION}, which this "
            f"release ({form.TOOL_VERSION}) reads; it was written by {value.get('tool')!r:.60}",
            f"compile the source again ({form.SOURCE} in it), or use that release",
        )


def _read_files(value: Any, place: Place) -> dict[str, tuple[int, str]]:
    found = {}
    for name, entry in zip(form.FILES, place.fields(value, *form.FILES), strict=True):
        digest, size = place.fields(entry, "sha256", "size")
        text = place.text(digest, "sha256")
        if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
            place.fail(f"sha256 of {name} must be 64 lower-case hexadecimal digits")
        found[name] = (place.integer(size, f"size of {name}", 0, form.MAX_FILE_BYTES), text)
    return found


def read_plan(path: str | Path, *, lazy: bool = False) -> Plan:
    """The plan in directory `path`. Raises PlanError.

    Everything is read and checked now; with `lazy`, each part when it is first used.
    """
    plan = Plan(PlanFiles(Path(path)))
    if not lazy:
        plan.verify()
    return plan


def decode(
    files: Mapping[str, bytes],
    *,
    lazy: bool = True,
    topology: Topology | None = None,
    events: tuple[Event, ...] | None = None,
    before: Plan | None = None,
) -> Plan:
    """The plan in memory, as compiler.plan.writer.encode() made it. Raises PlanError.

    Whoever has the `topology` and the `events` that it was made of may give them: they are not read
    again then. So is what it has in common with the plan `before`, which has the same topology.
    """
    plan = Plan(Memory(files), before)
    if before is not None:
        plan.topology, plan.core = before.topology, before.core
    if topology is not None:
        plan.topology = topology
    if events is not None:
        plan.events = events
    if not lazy:
        plan.verify()
    return plan
