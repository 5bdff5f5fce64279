"""Measured delays that jitters are drawn from: each file read once.

Input: the tree and where files come from. Output: the tree, whose files of delays have what plans
call them, and their mean and deviation; and `Delays`. Reports what is wrong with files, and links
that have no delay or jitter, where the file has none, either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.declare.named.named_files import ReadOnce, told
from compiler.declare.topology import delay_and_jitter
from compiler.plan.format import MAX_ATTACHED_BYTES, MAX_DELAYS
from compiler.plan.parts.delay_tables import DelayTable
from compiler.plan.types import PlannedDelays
from compiler.sources import Sources
from tdl import ast, quantities
from tdl.diagnostics import Sink

_NO_JITTER = "TS0181"


@dataclass(frozen=True, slots=True)
class Delays:
    planned: tuple[PlannedDelays, ...]
    contents: tuple[bytes, ...]  # each once


class _Reader:
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
    reader = _Reader(sources, sink)
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
