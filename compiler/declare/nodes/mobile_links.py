"""A `mobility` statement becomes what the language has without it: bridges, links, and a schedule.

Input: the tree, with the traces that links follow otherwise, and where files come from. Output: the
tree with a bridge for each node that moves, a link for each two that are linked at some time, one
for each instance that is at a node, and one dynamic statement that takes links down and brings them
back; the traces that these links follow; and `MovingNodes` for the plan. Source: docs/mobility.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.declare.named.trace_numbers import Traces
from compiler.mobility import allocation, sight
from compiler.mobility.link_rows import FOREVER, ByDistance, Stretch, follow
from compiler.plan.format import MAX_ATTACHED_BYTES, MAX_TRACES
from compiler.plan.parts import traces as plan_traces
from compiler.plan.parts.action_texts import number_of
from compiler.plan.parts.motion import Motion
from compiler.plan.types import PlannedTrace
from compiler.sources import Sources
from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class MovingNodes:
    """What a plan keeps of them."""

    source: str
    digest: str
    names: tuple[str, ...]
    content: bytes


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
        return file, traces, None
    rest = tuple(one for one in file.statements if not isinstance(one, ast.Mobility))
    for again in said[1:]:
        message = f"nodes move already, by the statement on {ast.said(said[0].span.place)}"
        sink.error("TS0194", again.span, message, "put all nodes into one file")
    found = sources.mobility(said[0], sink)
    if found is None:
        return replace(file, statements=rest), traces, None
    names, motion = found
    numbers = _Numbers(traces)
    histories = _histories(motion, said[0])
    made = [*_bridges(file, said[0], names), *_at_nodes(file, said[0], names, sink)]
    quit_ns = _quit_ns(rest, motion)
    for pair, stretches in histories.items():
        values = follow(stretches, motion, said[0], quit_ns)
        link = _link(said[0], names, pair, values, numbers)
        if link is None:
            hint = "write a larger latency-step=, or fewer transceivers="
            sink.error("TS0196", said[0].span, "what these links follow is too much", hint)
            break
        made.append(link)
    made.append(_schedule(said[0], names, histories))
    if motion.quits and not any(map(_quits, rest)):
        everything = ast.Everything(said[0].span)
        quits = ast.Quit(said[0].span)
        made.append(ast.Dynamic(motion.end_ns, None, everything, quits, said[0].span))
    place = file.statements.index(said[0])
    statements = (*rest[:place], *made, *rest[place:])
    digest = hashlib.sha256(motion.text).hexdigest()
    moving = MovingNodes(said[0].source, digest, tuple(names), motion.text)
    follows = Traces(tuple(numbers.planned), tuple(numbers.contents.values()))
    return replace(file, statements=statements), follows, moving


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


def _at_nodes(
    file: ast.File, said: ast.Mobility, names: Sequence[str], sink: Sink
) -> Iterator[ast.Statement]:
    """The links of instances to the nodes that they are at."""
    services = {
        one.name.text: one for one in file.statements if isinstance(one, ast.ServiceStatement)
    }
    taken: dict[str, str] = {}
    for wanted in said.nodes:
        service, span = wanted.service.text, wanted.service.span
        if service not in services:
            hint = did_you_mean(service, services) or "declare it: service NAME …"
            sink.error("TS0193", span, f"there is no service {service!r}", hint)
            continue
        here = [name for name in names if name.startswith(wanted.prefix)]
        twice = next((name for name in here if name in taken), None)
        if twice is not None:
            message = f"{twice} is a node of {taken[twice]!r} already"
            sink.error("TS0193", span, message, "write longer prefixes")
            continue
        if not _fit(services[service], wanted, here, names, sink):
            continue
        taken |= dict.fromkeys(here, service)
        for index, name in enumerate(here):
            end = ast.Name(name, said.span)
            yield ast.LinkStatement(wanted.service, end, said.span, a_index=index)


def _fit(
    service: ast.ServiceStatement,
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
    if service.replicas not in (None, len(here)):
        message = f"{service.name.text} has {service.replicas} replicas, and there are {len(here)}"
        hint = f"write replicas={len(here)}, or leave it out"
        sink.error("TS0193", span, f"{message} nodes for them", hint)
        return False
    return True


def _histories(motion: Motion, said: ast.Mobility) -> Mapping[tuple[int, int], list[Stretch]]:
    """When each pair is linked, of those that ever are, as the file has the nodes."""
    seen = sight.seen(motion, said.range_mm, said.body_mm)
    linked = allocation.nearest(seen, len(motion.places), said.transceivers)
    found: dict[tuple[int, int], list[Stretch]] = {}
    before: allocation.Links = {}
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
    names: Sequence[str],
    pair: tuple[int, int],
    values: ByDistance,
    numbers: _Numbers,
) -> ast.LinkStatement | None:
    a, b = (names[node] for node in pair)
    fixed, more = values.fixed, dict[str, Any]()
    if values.trace is not None:
        followed = numbers.add(f"{said.source} {a}--{b}", values.trace, values.means, said.span)
        if followed is None:
            return None
        more = {"trace_up": followed, "trace_down": followed}
    rate = fixed.get("rate_bps")
    ends = ast.Name(a, said.span), ast.Name(b, said.span)
    return ast.LinkStatement(
        *ends,
        said.span,
        latency_ns=fixed.get("delay_ns", 0),
        loss_ppb=fixed.get("loss_ppb", 0),
        up_bps=rate,
        down_bps=rate,
        symmetric=rate is not None,
        **more,
    )


def _schedule(
    said: ast.Mobility,
    names: Sequence[str],
    histories: Mapping[tuple[int, int], Sequence[Stretch]],
) -> ast.Dynamic:
    changes: dict[int, tuple[list[int], list[int]]] = {}
    for number, stretches in enumerate(histories.values()):
        for one in stretches:
            changes.setdefault(one.from_ns, ([], []))[0].append(number)
            if one.to_ns < FOREVER:
                changes.setdefault(one.to_ns, ([], []))[1].append(number)
    action = ast.Move(
        tuple((names[a], names[b]) for a, b in histories),
        tuple((at, tuple(up), tuple(down)) for at, (up, down) in sorted(changes.items())),
        said.span,
    )
    return ast.Dynamic(0, None, ast.Everything(said.span), action, said.span)
