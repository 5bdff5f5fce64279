"""`expect` statements become the plan's expectations: whose, when, and how much.

Input: the model and its timeline. Output: `Expectation`s in the order of the file. Times that are
not said are the beginning and the end of the plan. Of all combinations of two different instances
those count that are there at once in that time (for `unreachable`, at any time before its end);
where there is none, that is an error. Source: docs/tdl.md, "Expectations".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.expect.subjects import Subjects
from compiler.phrases import moment
from compiler.plan.event_kinds import ENDINGS
from compiler.plan.format import MAX_INT
from compiler.plan.frame_domains import FrameDomains
from compiler.plan.parts import action_texts
from compiler.plan.parts import expectations as plan
from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.parts.figures import PlannedFigure
from compiler.plan.types import Event, owner_of
from tdl import ast
from tdl.bounds import MAX_PAIRS
from tdl.building.builder import join_spans
from tdl.diagnostics import Sink
from tdl.formatter import format_statement

_Interval = tuple[int, int]

_PROGRAMS = (*plan.OF_LOGS, plan.EXIT, *plan.OF_HISTORIES, plan.ASSERTIONS)


@dataclass(frozen=True, slots=True)
class _Known:
    """What all statements are looked up in. `presence` is None where the timeline has errors."""

    model: Model
    subjects: Subjects
    presence: _Presence | None
    end_ns: int
    sink: Sink

    def name(self, node: int) -> str:
        """Of the instance, whichever interface of it the node is."""
        nodes = self.model.planned.nodes
        return nodes[owner_of(nodes, node)].name


def expect(model: Model, timeline: Timeline, sink: Sink) -> tuple[PlannedExpectation, ...]:
    """What is wrong goes to the sink (TS0404, TS0406 to TS0409), and is left out."""
    statements = model.declared.expects
    if not statements or model.oversized:
        return ()
    presence = None if sink.failed else _Presence(timeline.events)
    subjects = Subjects(model.declared, model.layout, sink)
    known = _Known(model, subjects, presence, timeline.end_ns, sink)
    found: list[PlannedExpectation] = []
    left = MAX_PAIRS
    for statement in statements:
        one = _one(statement, known, left)
        if one is not None and _is_told(statement, one, known):
            found.append(one)
            left -= len(one.pairs)
    return tuple(found)


def _is_told(statement: ast.Expect, one: PlannedExpectation, known: _Known) -> bool:
    """Whether a run knows of its pairs: it does not where programs of routers decide, and counts
    what passes a lan by link. Reports TS0609."""
    planned = known.model.planned
    if not planned.frames_at[1]:
        return True
    domains = FrameDomains.of(planned)
    direct = {(link.src, link.dst) for link in planned.links}
    for src, dst in one.pairs:
        why = ""
        if domains.by_programs(src, dst):
            why = "routers are between them, whose programs decide: no probe takes their way"
        elif one.kind == plan.THROUGHPUT and planned.nodes[src].frames:
            why = "" if (src, dst) in direct else "what passes a lan is counted by link"
        if why:
            message = f"of {known.name(src)} and {known.name(dst)} a run tells no {one.kind}: {why}"
            hint = "let a program measure, and expect what it says: `expect log`, `figure`"
            known.sink.error("TS0609", statement.span, message, hint)
            return False
    return True


def _one(statement: ast.Expect, known: _Known, left: int) -> PlannedExpectation | None:
    groups = [
        known.subjects.nodes(
            group, programs=statement.kind in _PROGRAMS, ends=statement.kind in plan.OF_PAIRS
        )
        for group in statement.subjects
    ]
    nodes = [group for group in groups if group is not None]
    window = _window(statement, known)
    if window is None or known.presence is None or len(nodes) < len(groups):
        return None
    base = replace(_plain(statement), from_ns=window[0], to_ns=window[1])
    if statement.kind in plan.OF_PAIRS:
        return _of_pairs(statement, base, nodes, known, left)
    if statement.kind == plan.VALID:
        return base
    if statement.kind == plan.DRIVERS:
        timed = _of_drivers(statement, base, known)
        if timed is None:
            return None
        base = timed
    present = _there(nodes[0] if nodes else _everyone(known), base, known)
    if not present:
        _nobody(statement, "none of them is joined then", known)
        return None
    return replace(base, nodes=present if statement.kind != plan.RUN else present[:1])


def _plain(statement: ast.Expect) -> PlannedExpectation:
    """All that a statement says by itself."""
    kind, window = statement.kind, statement.window
    moment_said = window is not None and window.from_ns == window.to_ns
    once = kind in (plan.LOG, plan.SOMETIMES, plan.EVENTUALLY)
    once = once or (kind == plan.RUN and not moment_said)
    exact = kind in (plan.NO_LOG, plan.EXIT, plan.VALID, *plan.OF_HISTORIES)
    exact = exact or kind in (plan.ALWAYS, plan.ASSERTIONS, plan.DRIVERS)
    said = window is not None and window.eventually
    return PlannedExpectation(
        text=format_statement(statement),
        kind=kind,
        line=statement.span.line,
        file=statement.span.file,
        op=statement.op,
        value=statement.value,
        of_plan=statement.of_plan,
        statistic=statement.statistic,
        pattern=statement.text if kind in plan.OF_LOGS else "",
        argv=_argv(statement),
        path=statement.text if kind in plan.OF_HISTORIES else "",
        model=statement.model,
        key=statement.key,
        number=statement.number,
        has=statement.has,
        eventually=once or (said and not exact),
    )


def _argv(statement: ast.Expect) -> tuple[str, ...]:
    if statement.kind == plan.DRIVERS:
        return (statement.text,)
    return tuple(shlex.split(statement.text)) if statement.kind == plan.RUN else ()


def _of_drivers(
    statement: ast.Expect, base: PlannedExpectation, known: _Known
) -> PlannedExpectation | None:
    """Drivers are started until `to_ns`, from where on their checks run: not before the last event
    of the timeline, and halfway to the end where nothing is said. That is the same for a run to
    which something is done: its drivers have been started already. Reports TS0404, TS0415."""
    assert known.presence is not None
    last_ns, end_ns, window = known.presence.last_ns, known.end_ns, statement.window
    if window is None or window.to_ns is None:
        planned_ns = max(known.presence.last_planned_ns, base.from_ns)
        to_ns = planned_ns + (end_ns - planned_ns) // 2
        if last_ns <= to_ns:
            return replace(base, to_ns=to_ns)
        message = f"checks begin at {moment(to_ns)}, and faults would go on"
        hint = f"the last event is at {moment(last_ns)}"
        known.sink.error("TS0415", statement.span, message, hint)
        return None
    if window.to_ns >= end_ns:
        hint = f"name a time before {moment(end_ns)}, or let it end later: `at T quit`"
        message = f"the experiment ends at {moment(end_ns)}: no time is left for checks"
        known.sink.error("TS0404", window.span, message, hint)
        return None
    if window.to_ns < last_ns:
        message = f"checks would begin at {moment(window.to_ns)}, and faults go on"
        hint = f"the last event is at {moment(last_ns)}: write to {moment(last_ns)} or later"
        known.sink.error("TS0415", window.span, message, hint)
        return None
    return base


def _window(statement: ast.Expect, known: _Known) -> tuple[int, int] | None:
    """From and to, within the plan; None after a report, and where nobody knows the end."""
    window, end_ns = statement.window, known.end_ns
    if known.presence is None:
        return None
    if window is None:
        return 0, end_ns
    base_ns = known.presence.last_ns if window.after_faults else 0
    start = base_ns + (window.from_ns or 0)
    stop = end_ns if window.to_ns is None else base_ns + window.to_ns
    if start < end_ns and stop <= end_ns:
        return start, stop
    late = start if start >= end_ns else stop
    message = f"the experiment ends at {moment(end_ns)}"
    hint = f"name an earlier time than {moment(late)}, or write `at {moment(late)} quit`"
    if late == start:
        hint = f"name a time before {moment(end_ns)}, or let it end later: `at T quit`"
    known.sink.error("TS0404", window.span, message, hint)
    return None


def _of_pairs(
    statement: ast.Expect,
    base: PlannedExpectation,
    ends: Sequence[tuple[int, ...]],
    known: _Known,
    left: int,
) -> PlannedExpectation | None:
    sources, targets = ends
    if len(sources) * len(targets) > left:
        message = f"expectations of more than {MAX_PAIRS:,} pairs of instances"
        known.sink.error("TS0409", _span(statement), message, "name single instances")
        return None
    assert known.presence is not None
    since = 0 if base.kind == plan.UNREACHABLE else base.from_ns
    named = {node: known.name(node) for node in (*sources, *targets)}
    pairs = tuple(
        (a, b)
        for a in sources
        for b in targets
        if named[a] != named[b] and known.presence.together(named[a], named[b], since, base.to_ns)
    )
    if not pairs:
        same = len({*named.values()}) == 1
        message = "an instance has no path to itself" if same else "no two of them are joined then"
        _nobody(statement, message, known)
        return None
    return replace(base, pairs=pairs)


def _everyone(known: _Known) -> tuple[int, ...]:
    return tuple(node for nodes in known.model.layout.instances for node in nodes)


def _there(nodes: Sequence[int], base: PlannedExpectation, known: _Known) -> tuple[int, ...]:
    """Those that are there in its time. For a command, those that are there when it first runs
    come first, so that one of these runs it."""
    presence = known.presence
    assert presence is not None
    found = [node for node in nodes if presence.there(known.name(node), base.from_ns, base.to_ns)]
    if base.kind == plan.RUN:
        at_once = base.from_ns
        found.sort(key=lambda node: (not presence.there(known.name(node), at_once, at_once), node))
    return tuple(found)


def _nobody(statement: ast.Expect, message: str, known: _Known) -> None:
    hint = "name instances that are joined in that time; `tstorm events` shows when they are"
    known.sink.error("TS0407", _span(statement), message, hint)


def _span(statement: ast.Expect) -> ast.Span:
    """The names, or all of it where none are written."""
    spans = [subject.span for group in statement.subjects for subject in group]
    return join_spans(spans) if spans else statement.span


class _Presence:
    """When instances are there, from the events of the timeline: each in intervals [from, to). What
    is disconnected or paused is there, too. `there` asks about a closed interval, as expectations
    have them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._since: dict[str, int] = {}
        self._spans: dict[str, list[_Interval]] = {}
        self.last_ns = 0  # of all events but the end
        self.last_planned_ns = 0  # of those that nobody has done to the run
        for event in events:
            if event.kind != "quit":
                self.last_ns = max(self.last_ns, event.at_ns)
                if not action_texts.number_of(event.file):
                    self.last_planned_ns = max(self.last_planned_ns, event.at_ns)
            if event.kind == "join":
                self._since[event.target] = event.at_ns
            elif event.kind in ENDINGS:
                self._end(event.target, event.at_ns)
        for name in list(self._since):
            self._end(name, MAX_INT)

    def _end(self, name: str, at_ns: int) -> None:
        since = self._since.pop(name, None)
        if since is not None and since < at_ns:
            self._spans.setdefault(name, []).append((since, at_ns))

    def there(self, name: str, from_ns: int, to_ns: int) -> bool:
        return any(since <= to_ns and from_ns < end for since, end in self._spans.get(name, ()))

    def together(self, a: str, b: str, from_ns: int, to_ns: int) -> bool:
        """Whether both are there at some moment of the interval."""
        for first_since, first_end in self._spans.get(a, ()):
            for since, end in self._spans.get(b, ()):
                moment = max(first_since, since, from_ns)
                if moment <= to_ns and moment < min(first_end, end):
                    return True
        return False


# `figure` statements become the plan's figures.
#
# Input: the model. Output: `Figure`s in the order of the file; what is wrong goes to the sink
# (TS0406, TS0408, TS0412), and is left out. Source: docs/tdl.md, "Figures".


def figures(model: Model, sink: Sink) -> tuple[PlannedFigure, ...]:
    if model.oversized:
        return ()
    subjects = Subjects(model.declared, model.layout, sink)
    first: dict[str, ast.Figure] = {}
    found = []
    for statement in model.declared.figures:
        name = statement.name.text
        before = first.setdefault(name, statement)
        if before is not statement:
            message = f"there is a figure {name!r} already, in line {before.span.line}"
            sink.error("TS0412", statement.name.span, message, "give it another name")
            continue
        nodes = subjects.nodes(statement.subjects, programs=True)
        if nodes is not None:
            found.append(_figure(statement, nodes))
    return tuple(found)


def _figure(statement: ast.Figure, nodes: tuple[int, ...]) -> PlannedFigure:
    return PlannedFigure(
        name=statement.name.text,
        text=format_statement(statement),
        line=statement.span.line,
        file=statement.span.file,
        nodes=nodes,
        pattern=statement.pattern,
        path=statement.path,
        key=statement.key,
    )
