"""What links follow: each file read once, each trace that links follow from an instant on numbered.

Input: the tree and where files come from. Output: the tree, whose traces have their numbers and
means, and `Traces`. A link follows its trace from time 0 on, what `set` names from then on: the
same file from two instants on is two traces, whose content is one. Reports what is wrong with
files, and properties of a link that both its statement and its trace have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.declare.named.named_files import ReadOnce, told
from compiler.declare.topology import FIELDS
from compiler.plan.format import MAX_ATTACHED_BYTES, MAX_TRACES
from compiler.plan.parts import traces
from compiler.plan.types import PlannedTrace
from compiler.sources import Sources
from tdl import ast
from tdl.diagnostics import Sink
from tdl.tokens.words import LINK_WORDS

WORDS = {field: word for word, field in FIELDS.items() if word not in ("up", "down")}


@dataclass(frozen=True, slots=True)
class Traces:
    planned: tuple[PlannedTrace, ...]
    contents: tuple[bytes, ...]  # each once


class _Reader:
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
    reader = _Reader(sources, sink)
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
