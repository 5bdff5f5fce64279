"""Files that links and `set` name, each read once: what they follow, what their jitter is.

Input: the tree and where files come from. Output: the tree with what they say, and `Delays` or
`Traces` for the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from compiler.declare.topology import FIELDS, delay_and_jitter
from compiler.plan.format import MAX_ATTACHED_BYTES, MAX_DELAYS, MAX_TRACES
from compiler.plan.parts import traces
from compiler.plan.parts.delay_tables import DelayTable
from compiler.plan.types import PlannedDelays, PlannedTrace
from compiler.sources import Sources
from tdl import ast, quantities
from tdl.diagnostics import Sink
from tdl.tokens.words import LINK_WORDS

Wanted = TypeVar("Wanted", ast.TraceFile, ast.DelayFile)
Found = TypeVar("Found")


class ReadOnce(Generic[Wanted, Found]):
    """`known` has what was found, by name, None after a report."""

    def __init__(self, read: Callable[[Wanted], Found | None]) -> None:
        self._read: Callable[[Wanted], Found | None] = read
        self.known: dict[str, Found | None] = {}

    def find(self, wanted: Wanted) -> Found | None:
        if wanted.source not in self.known:
            self.known[wanted.source] = self._read(wanted)
        return self.known[wanted.source]


def told(
    file: ast.File,
    link: Callable[[ast.LinkStatement], ast.LinkStatement],
    change: Callable[[ast.Assignment, int], ast.Assignment],
) -> tuple[ast.Statement, ...]:
    """The statements, with what is known of the files. `change` is told when it is set, too."""
    return tuple(_told(statement, link, change) for statement in file.statements)


def _told(
    statement: ast.Statement,
    link: Callable[[ast.LinkStatement], ast.LinkStatement],
    change: Callable[[ast.Assignment, int], ast.Assignment],
) -> ast.Statement:
    if isinstance(statement, ast.LinkStatement):
        return link(statement)
    if isinstance(statement, ast.Dynamic) and isinstance(statement.action, ast.Set):
        before = statement.action.assignments
        after = tuple(change(one, statement.start_ns) for one in before)
        if any(new is not old for new, old in zip(after, before, strict=True)):
            return replace(statement, action=replace(statement.action, assignments=after))
    return statement


# Measured delays that jitters are drawn from. Files of delays get what plans call them, and their
# mean and deviation. Reports what is wrong with files,
# and links that have no delay or jitter, where the file has none, either.

_NO_JITTER = "TS0181"


@dataclass(frozen=True, slots=True)
class Delays:
    planned: tuple[PlannedDelays, ...]
    contents: tuple[bytes, ...]  # each once


class _DelayReader:
    def __init__(self, sources: Sources, sink: Sink) -> None:
        self._sources, self._sink = sources, sink
        self.files: ReadOnce[ast.DelayFile, DelayTable] = ReadOnce(self._read)

    def _read(self, wanted: ast.DelayFile) -> DelayTable | None:
        if len(self.files.known) == MAX_DELAYS:
            message = f"more than {MAX_DELAYS:,} files of delays"
            self._sink.error("TS0180", wanted.span, message, "name fewer")
        return self._sources.delays(wanted, self._sink)

    def link(self, statement: ast.LinkStatement) -> ast.LinkStatement:
        if not isinstance(statement.distribution, ast.DelayFile):
            return statement
        delays = self._named(statement.distribution)
        if delays.distribution:
            _check(statement, delays, self._sink)
        return replace(statement, distribution=delays)

    def change(self, one: ast.Assignment, _begin_ns: int) -> ast.Assignment:
        return one if one.delays is None else replace(one, delays=self._named(one.delays))

    def _named(self, wanted: ast.DelayFile) -> ast.DelayFile:
        found = self.files.find(wanted)
        if found is None:
            return wanted
        return ast.DelayFile(
            wanted.source, wanted.span, found.name, found.mean_ns, found.deviation_ns
        )

    def result(self) -> Delays:
        tables = {name: table for name, table in self.files.known.items() if table is not None}
        planned = tuple(PlannedDelays(name, table.digest) for name, table in tables.items())
        contents = {table.digest: table.data for table in tables.values()}
        assert sum(map(len, contents.values())) < MAX_ATTACHED_BYTES
        return Delays(planned, tuple(contents.values()))


def measure(file: ast.File, sources: Sources, sink: Sink) -> tuple[ast.File, Delays]:
    reader = _DelayReader(sources, sink)
    statements = told(file, reader.link, reader.change)
    found = reader.result()
    return replace(file, statements=statements) if reader.files.known else file, found


def _check(link: ast.LinkStatement, delays: ast.DelayFile, sink: Sink) -> None:
    """That it has a jitter, which its delay has room for."""
    for trace in filter(None, (link.trace_up, link.trace_down)):
        if {"delay_ns", "jitter_ns"} & dict(trace.means).keys():
            return  # another one for each row
    latency_ns, jitter_ns = delay_and_jitter(link, delays)
    if not jitter_ns:
        message = f"{delays.source!r} has the shape of a jitter, and this link has no jitter"
        sink.error(_NO_JITTER, delays.span, message, "add latency= and jitter=")
    elif jitter_ns > latency_ns:
        mine = "" if link.jitter_ns else f" of {delays.source!r}"
        message = f"jitter {quantities.latency(jitter_ns)}{mine} is greater than the latency"
        message += f", which is {quantities.latency(latency_ns) if latency_ns else '0'} here"
        hint = "delay cannot be negative: raise the latency or lower the jitter"
        sink.error("TS0105", delays.span, message, hint)


# What links follow: each trace that links follow from an instant on gets its number and means.
#
# A link follows its trace from time 0 on, what `set` names from then on: the same file from two
# instants on is two traces, whose content is one. Reports what is wrong with files, and properties
# of a link that both its statement and its trace have.

WORDS = {field: word for word, field in FIELDS.items() if word not in ("up", "down")}


@dataclass(frozen=True, slots=True)
class Traces:
    planned: tuple[PlannedTrace, ...]
    contents: tuple[bytes, ...]  # each once


class _TraceReader:
    def __init__(self, sources: Sources, sink: Sink) -> None:
        self._sources, self._sink = sources, sink
        self._files: ReadOnce[ast.TraceFile, tuple[traces.Trace, str]] = ReadOnce(self._read)
        self.contents: dict[str, bytes] = {}  # by digest
        self.planned: dict[PlannedTrace, int] = {}  # their numbers

    def link(self, statement: ast.LinkStatement) -> ast.LinkStatement:
        if not (statement.trace_up or statement.trace_down):
            return statement
        up = self._numbered(statement.trace_up, 0)
        down = self._numbered(statement.trace_down, 0)
        found = replace(statement, trace_up=up, trace_down=down)
        for trace, field_name in _twice(found):
            word = WORDS[field_name]
            message = f"{trace.source!r} has the {word} of this link, and so has the statement"
            self._sink.error("TS0174", trace.span, message, f"leave {word}= or the trace out")
            break
        return found

    def change(self, one: ast.Assignment, begin_ns: int) -> ast.Assignment:
        if one.trace is None:
            return one
        return replace(one, trace=self._numbered(one.trace, begin_ns))

    def _numbered(self, wanted: ast.TraceFile | None, begin_ns: int) -> ast.TraceFile | None:
        found = None if wanted is None else self._files.find(wanted)
        if wanted is None or found is None:
            return wanted
        trace, digest = found
        if wanted.holds and not self._can_hold(wanted, trace):
            return wanted
        means = tuple(zip(trace.fields, trace.means, strict=True))
        planned = PlannedTrace(wanted.source, digest, begin_ns, wanted.holds, means)
        number = self.planned.setdefault(planned, len(self.planned) + 1)
        if number == MAX_TRACES + 1:
            hint = "name fewer files, or fewer instants"
            self._sink.error("TS0176", wanted.span, f"more than {MAX_TRACES:,} traces", hint)
        return replace(wanted, number=number, means=means)

    def _read(self, wanted: ast.TraceFile) -> tuple[traces.Trace, str] | None:
        found = self._sources.trace(wanted, self._sink)
        if found is None:
            return None
        kept = found, self._keep(found)
        if sum(map(len, self.contents.values())) > MAX_ATTACHED_BYTES:
            most = MAX_ATTACHED_BYTES >> 20
            message = f"all traces together have more than {most} MiB in the plan"
            self._sink.error("TS0176", wanted.span, message, "cut what no run reaches")
            self.contents.clear()
        return kept

    def _keep(self, found: traces.Trace) -> str:
        data = traces.encode(found)
        digest = hashlib.sha256(data).hexdigest()
        self.contents[digest] = data
        return digest

    def _can_hold(self, wanted: ast.TraceFile, trace: traces.Trace) -> bool:
        if isinstance(trace, traces.Opportunities):
            why, hint = "has deliveries, and no last value that could stay", "leave trace-end out"
        elif "rate_bps" in trace.fields and not trace.rows[-1].values[0]:
            why = "ends with a rate of 0, with which nothing would ever pass again"
            hint = "give its last row a rate"
        else:
            return True
        self._sink.error("TS0175", wanted.span, f"{wanted.source!r} {why}", hint)
        return False


def follow(file: ast.File, sources: Sources, sink: Sink) -> tuple[ast.File, Traces]:
    reader = _TraceReader(sources, sink)
    statements = told(file, reader.link, reader.change)
    found = Traces(tuple(reader.planned), tuple(reader.contents.values()))
    return replace(file, statements=statements) if found.planned else file, found


def _twice(link: ast.LinkStatement) -> Iterator[tuple[ast.TraceFile, str]]:
    down_bps = link.up_bps if link.symmetric else link.down_bps
    for trace, rate_bps in ((link.trace_up, link.up_bps), (link.trace_down, down_bps)):
        for name, _ in trace.means if trace is not None else ():
            own = LINK_WORDS[WORDS[name]].field
            if trace is not None and (getattr(link, own) if own else rate_bps):
                yield trace, name
