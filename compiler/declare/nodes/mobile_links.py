"""A `mobility` statement becomes what the language has without it: bridges, links, and a schedule.

Input: the tree, with the traces that links follow otherwise, and where files come from. Output: the
tree with a bridge for each node that moves, a link for each two that are linked at some time, one
for each instance that is at a node, and one dynamic statement that takes links down and brings them
back; the traces that these links follow; and `MovingNodes` for the plan. Where routers move, they
are the nodes themselves, and there are no bridges; where there is an `air`, what is linked is the
radios of what moves (airs.py). With `allocate=program` the links that come and
go are all that can be: programs ask for those that are to be used (runtime/driver/radios.py).
Source: docs/mobility.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from compiler.declare.named.named_files import Traces
from compiler.declare.nodes import airs
from compiler.declare.nodes.machines import kind_of_part
from compiler.mobility import sight
from compiler.mobility.link_rows import FOREVER, ByDistance, Stretch, follow
from compiler.phrases import end_name
from compiler.plan.format import MAX_ATTACHED_BYTES, MAX_TRACES
from compiler.plan.parts import traces as plan_traces
from compiler.plan.parts.action_texts import number_of
from compiler.plan.parts.motion import Motion
from compiler.plan.types import PlannedTrace
from compiler.sources import Sources
from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean

PROGRAM = "program"  # as `allocate=`
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class MovingNodes:
    """What a plan keeps of them."""

    source: str
    digest: str
    names: tuple[str, ...]  # of bridges or instances, in the order of the file
    content: bytes
    transceivers: int = 0  # of each node, for programs to use; 0: no program asks
    range_mm: int | None = None
    body_mm: int | None = None


class _Numbers:
    """Numbers traces after those that there are."""

    def __init__(self, before: Traces) -> None:
        self.planned = list(before.planned)
        self.contents = {hashlib.sha256(data).hexdigest(): data for data in before.contents}
        self._size = sum(map(len, before.contents))

    def add(
        self, name: str, trace: plan_traces.Rows, values: Sequence[int], place: ast.Span
    ) -> ast.TraceFile | None:
        """`values` are the means. None: there is no room for it."""
        data = plan_traces.encode(trace)
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self.contents:
            self.contents[digest] = data
            self._size += len(data)
        means = tuple(zip(trace.fields, values, strict=True))
        self.planned.append(PlannedTrace(name, digest, 0, True, means))
        if self._size > MAX_ATTACHED_BYTES or len(self.planned) > MAX_TRACES:
            return None
        return ast.TraceFile(name, True, place, len(self.planned), means)


def move(
    file: ast.File, sources: Sources, traces: Traces, sink: Sink
) -> tuple[ast.File, Traces, MovingNodes | None]:
    said = [one for one in file.statements if isinstance(one, ast.Mobility)]
    if not said:
        airs.report_still(file, sink)
        return file, traces, None
    rest: tuple[ast.Statement, ...] = tuple(
        one for one in file.statements if not isinstance(one, ast.Mobility)
    )
    for again in said[1:]:
        message = f"nodes move already, by the statement on {ast.said(said[0].span.place)}"
        sink.error("TS0194", again.span, message, "put all nodes into one file")
    found = sources.mobility(said[0], sink)
    if found is None:
        return replace(file, statements=rest), traces, None
    names, motion = found
    ends = _LinkEnds(file, said[0], names, sink)
    rest = tuple(map(ends.counted, rest))
    numbers = _Numbers(traces)
    made = [*ends.declared(), *_moved(said[0], ends, motion, numbers, _quit_ns(rest, motion), sink)]
    if motion.quits and not any(map(_quits, rest)):
        everything = ast.Everything(said[0].span)
        quits = ast.Quit(said[0].span)
        made.append(ast.Dynamic(motion.end_ns, None, everything, quits, said[0].span))
    place = file.statements.index(said[0])
    before, after = (
        [found for one in some for found in ends.resolved(one)]
        for some in (rest[:place], rest[place:])
    )
    digest = hashlib.sha256(motion.text).hexdigest()
    led = said[0].transceivers if said[0].allocate == PROGRAM else None
    bounds = (said[0].range_mm, said[0].body_mm)
    moving = MovingNodes(said[0].source, digest, ends.names, motion.text, led or 0, *bounds)
    follows = Traces(tuple(numbers.planned), tuple(numbers.contents.values()))
    return replace(file, statements=(*before, *made, *after)), follows, moving


class _LinkEnds:
    """What is linked where nodes move: their bridges, the routers that move, or the radios of an
    air. `layers`: by node of the file, of one air after the other; None: it is not heard there."""

    def __init__(
        self, file: ast.File, said: ast.Mobility, names: Sequence[str], sink: Sink
    ) -> None:
        self._file, self._said, self._nodes = file, said, names
        self._at_nodes = dict(_at_nodes(file, said, names, sink))
        self._routers = any(end.forwards for end in self._at_nodes.values())
        self._airs: airs.Airs | None = None
        self.layers: list[list[ast.Element | None]]
        if airs.airs_of(file):
            _check_air(said, sink)
            stations = {
                (end.service.text, end.number): node for node, end in self._at_nodes.items()
            }
            self._airs = airs.Airs(file, stations, sink)
            self.layers = [
                [_radio(air, self._at_nodes.get(name)) for name in names]
                for air in self._airs.found.values()
            ]
        elif self._routers:
            _check_routers(said, names, self._at_nodes, sink)
            self.layers = [[_end(said, name, self._at_nodes.get(name)) for name in names]]
        else:
            self.layers = [[_end(said, name, None) for name in names]]
        if said.allocate == PROGRAM and not self._routers:
            message = "programs lead the radios of routers, and here no router moves"
            hint = "write `service NAME router …`, and nodes=NAME"
            sink.error("TS0631", said.span, message, hint)

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that are where the nodes of the file are."""
        found = (next(filter(None, ends), None) for ends in zip(*self.layers, strict=True))
        return tuple(end_name(end.name, end.index) for end in found if end is not None)

    def declared(self) -> Iterator[ast.Statement]:
        """Bridges, and links of instances to them."""
        if self._airs is None and not self._routers:
            yield from _bridges(self._file, self._said, self._nodes)
            for name, end in self._at_nodes.items():
                yield _access(self._said, name, end)

    def counted(self, one: ast.Statement) -> ast.Statement:
        """A service with as many instances as move, of which some may never be linked."""
        if not isinstance(one, ast.ServiceStatement) or one.replicas is not None:
            return one
        count = sum(at.service.text == one.name.text for at in self._at_nodes.values())
        is_node = self._routers or self._airs is not None
        return replace(one, replicas=count) if count and is_node else one

    def resolved(self, one: ast.Statement) -> Iterator[ast.Statement]:
        return iter((one,)) if self._airs is None else self._airs.resolved(one)

    def hear(self, link: ast.LinkStatement) -> None:
        """It is one between radios, if there are any."""
        if self._airs is not None:
            self._airs.hear(link.a, link.b)


def _moved(
    said: ast.Mobility,
    ends: _LinkEnds,
    motion: Motion,
    numbers: _Numbers,
    quit_ns: int | None,
    sink: Sink,
) -> Iterator[ast.Statement]:
    """The links between nodes, and when they are up."""
    histories = _histories(motion, said)
    for layer in ends.layers:
        linked = {pair: one for pair, one in histories.items() if all(layer[at] for at in pair)}
        for pair, stretches in linked.items():
            values = follow(stretches, motion, said, quit_ns)
            link = _link(said, layer, pair, values, numbers)
            if link is None:
                hint = "write a larger latency-step=, or fewer transceivers="
                sink.error("TS0196", said.span, "what these links follow is too much", hint)
                return
            ends.hear(link)
            yield link
        yield _schedule(said, layer, linked)


def _quit_ns(rest: Sequence[ast.Statement], motion: Motion) -> int | None:
    """When the experiment ends, where the text or the file says it; a program ends it sometime.
    A quit that is an action on the run changes no link of what has run before."""
    said = [
        one.start_ns
        for one in rest
        if isinstance(one, ast.Dynamic)
        and isinstance(one.action, ast.Quit)
        and not number_of(one.span.file)
    ]
    if any(isinstance(one, ast.QuitWhen) for one in rest):
        return min(said, default=None)
    return min(said, default=motion.end_ns if motion.quits else None)


def _quits(statement: ast.Statement) -> bool:
    ends = isinstance(statement, ast.Dynamic) and isinstance(statement.action, ast.Quit)
    return ends or isinstance(statement, ast.QuitWhen)


def _bridges(file: ast.File, said: ast.Mobility, names: Sequence[str]) -> Iterator[ast.Statement]:
    """Those that the file does not declare, perhaps with tags."""
    there = {
        name.text for one in file.statements if isinstance(one, ast.Bridges) for name in one.names
    }
    missing = tuple(ast.Name(name, said.span) for name in names if name not in there)
    if missing:
        yield ast.Bridges(missing, said.span)


class _AtNode(NamedTuple):
    """Which instance is at a node."""

    service: ast.Name
    number: int
    forwards: bool  # it is a router


def _at_nodes(
    file: ast.File, said: ast.Mobility, names: Sequence[str], sink: Sink
) -> Iterator[tuple[str, _AtNode]]:
    """By node, in the order of `nodes=` and then of the file."""
    services = {
        one.name.text: one for one in file.statements if isinstance(one, ast.ServiceStatement)
    }
    taken: dict[str, str] = {}
    for wanted in said.nodes:
        service, span = wanted.service.text, wanted.service.span
        found = [services[service]] if service in services else _parts(service, services)
        if not found:
            parts = [".".join(kind) for one in services if (kind := kind_of_part(one))]
            hint = did_you_mean(service, [*services, *parts]) or "declare it: service NAME …"
            sink.error("TS0193", span, f"there is no service {service!r}", hint)
            continue
        here = [name for name in names if name.startswith(wanted.prefix)]
        twice = next((name for name in here if name in taken), None)
        if twice is not None:
            message = f"{twice} is a node of {taken[twice]!r} already"
            sink.error("TS0193", span, message, "write longer prefixes")
            continue
        if not _fit(found, wanted, here, names, sink):
            continue
        taken |= dict.fromkeys(here, service)
        for name, (one, index) in zip(here, _instances(found, len(here)), strict=True):
            end = ast.Name(one.name.text, span)
            yield name, _AtNode(end, index, one.forwards is not None)


def _parts(name: str, services: Mapping[str, ast.ServiceStatement]) -> list[ast.ServiceStatement]:
    """The services that a part of machines (sat.gnab) stands for, one for each machine."""
    node, dot, part = name.partition(".")
    if not dot:
        return []
    return [said for one, said in services.items() if kind_of_part(one) == (node, part)]


def _instances(
    services: Sequence[ast.ServiceStatement], count: int
) -> list[tuple[ast.ServiceStatement, int]]:
    """Of one service without `replicas=` as many as there are nodes."""
    return [
        (one, index)
        for one in services
        for index in range(count if one.replicas is None else one.replicas)
    ]


def _access(said: ast.Mobility, name: str, at: _AtNode) -> ast.LinkStatement:
    """Of an instance to the bridge that it is at."""
    return ast.LinkStatement(at.service, ast.Name(name, said.span), said.span, a_index=at.number)


def _end(said: ast.Mobility, name: str, at: _AtNode | None) -> ast.Element:
    """Of the links between nodes: the router that is this node, or its bridge."""
    if at is None:
        return ast.Element(ast.Name(name, said.span), said.span)
    return ast.Element(ast.Name(at.service.text, said.span), said.span, at.number)


def _radio(air: airs.Air, at: _AtNode | None) -> ast.Element | None:
    """By which the instance at a node is heard in this air."""
    name = None if at is None else air.radios.get((at.service.text, at.number))
    return None if name is None else ast.Element(name, name.span)


def _check_air(said: ast.Mobility, sink: Sink) -> None:
    """What is said elsewhere where radios are heard by all around."""
    message = hint = ""
    if said.rate_bps is not None or said.rate_file is not None:
        message = "in an air the rate is that of each sender's queue, whoever hears it"
        hint = "write rate= at the link to the air; range= and loss=FILE say who hears what"
    elif said.transceivers is not None:
        message = "a radio in an air is heard by all around, and has no transceiver for each"
        hint = "leave transceivers= and allocate= out, or leave the air out"
    if message:
        sink.error("TS0633", said.span, message, hint)


def _check_routers(
    said: ast.Mobility, names: Sequence[str], at_nodes: Mapping[str, _AtNode], sink: Sink
) -> None:
    """Either routers are all nodes, or none: a bridge and a router cannot be linked."""
    for wanted in said.nodes:
        here = [
            at_nodes[name] for name in names if name.startswith(wanted.prefix) and name in at_nodes
        ]
        if here and not here[0].forwards:
            message = f"{wanted.service.text!r} is no router, and others that move are"
            sink.error(
                "TS0630", wanted.service.span, message, "let all of them be routers, or none"
            )
    missing = next((name for name in names if name not in at_nodes), None)
    if missing is not None:
        message = f"no router is at {missing}, and routers are at other nodes"
        sink.error("TS0630", said.span, message, "name routers in nodes= for all nodes of the file")


def _fit(
    services: Sequence[ast.ServiceStatement],
    wanted: ast.MobileNodes,
    here: Sequence[str],
    names: Sequence[str],
    sink: Sink,
) -> bool:
    span = wanted.service.span
    if not here:
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        message = f"no node begins with {wanted.prefix!r}"
        sink.error("TS0193", span, message, f"the nodes are {shown}")
        return False
    count = len(_instances(services, len(here)))
    if count != len(here):
        message = f"{wanted.service.text} has {count} replicas, and there are {len(here)}"
        hint = f"write replicas={len(here)}"
        hint += ", or leave it out" if len(services) == 1 else ""
        sink.error("TS0193", span, f"{message} nodes for them", hint)
        return False
    return True


def _histories(motion: Motion, said: ast.Mobility) -> Mapping[tuple[int, int], list[Stretch]]:
    """When each pair is linked, of those that ever are, as the file has the nodes."""
    seen = sight.seen(motion, said.range_mm, said.body_mm)
    most = None if said.allocate == PROGRAM else said.transceivers
    linked = sight.nearest(seen, len(motion.places), most)
    found: dict[tuple[int, int], list[Stretch]] = {}
    before: sight.Links = {}
    for at, links in zip(motion.times, linked, strict=True):
        for pair in before.keys() - links.keys():
            found[pair][-1] = found[pair][-1]._replace(to_ns=at)
        for pair, square in links.items():
            if pair not in before:
                found.setdefault(pair, []).append(Stretch(at, FOREVER, []))
            found[pair][-1].squares.append((at, square))
        before = links
    return dict(sorted(found.items()))


def _link(
    said: ast.Mobility,
    ends: Sequence[ast.Element | None],
    pair: tuple[int, int],
    values: ByDistance,
    numbers: _Numbers,
) -> ast.LinkStatement | None:
    a, b = (ends[node] for node in pair)
    assert a is not None
    assert b is not None
    fixed, more = values.fixed, dict[str, Any]()
    if values.trace is not None:
        between = f"{end_name(a.name, a.index)}--{end_name(b.name, b.index)}"
        followed = numbers.add(f"{said.source} {between}", values.trace, values.means, said.span)
        if followed is None:
            return None
        more = {"trace_up": followed, "trace_down": followed}
    rate = fixed.get("rate_bps")
    return ast.LinkStatement(
        a.name,
        b.name,
        said.span,
        a_index=a.index,
        b_index=b.index,
        latency_ns=fixed.get("delay_ns", 0),
        loss_ppb=fixed.get("loss_ppb", 0),
        up_bps=rate,
        down_bps=rate,
        symmetric=rate is not None,
        **more,
    )


def _schedule(
    said: ast.Mobility,
    ends: Sequence[ast.Element | None],
    histories: Mapping[tuple[int, int], Sequence[Stretch]],
) -> ast.Dynamic:
    changes: dict[int, tuple[list[int], list[int]]] = {}
    for number, stretches in enumerate(histories.values()):
        for one in stretches:
            changes.setdefault(one.from_ns, ([], []))[0].append(number)
            if one.to_ns < FOREVER:
                changes.setdefault(one.to_ns, ([], []))[1].append(number)
    names = ["" if end is None else end_name(end.name, end.index) for end in ends]
    action = ast.Move(
        tuple((names[a], names[b]) for a, b in histories),
        tuple((at, tuple(up), tuple(down)) for at, (up, down) in sorted(changes.items())),
        said.span,
    )
    return ast.Dynamic(0, None, ast.Everything(said.span), action, said.span)
