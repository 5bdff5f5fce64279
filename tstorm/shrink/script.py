"""A TDL text, and what can be taken out of it: the statements of its timeline, and time at its end.

Input: a text that compiles. Output: texts without some of its events, or that quit earlier.
Taken out is what stands in the file itself, as it was written: a statement in a loop goes with all
its rounds, one with `and` as a whole. Declarations, what is expected, and included files stay. A
line of which only a comment would be left goes with its statement; all others stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tdl import ast
from tdl.diagnostics import TdlError
from tdl.parser import parse_partial
from tdl.preprocess.includes import Texts
from tdl.preprocess.unroll import NO_PARAMS
from tstorm import units

_Place = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class Statement:
    """A range of the text: lines and columns from 1, the end not included."""

    begin: _Place
    end: _Place

    def has(self, place: _Place) -> bool:
        return self.begin <= place and place[0] <= self.end[0]


@dataclass(frozen=True, slots=True)
class Script:
    """`quit` is the statement that ends the experiment, at `end_ns`, if there is one to change."""

    text: str
    events: tuple[Statement, ...]
    quit: Statement | None = None
    end_ns: int = 0

    def keeping(self, kept: Collection[Statement], end_ns: int | None = None) -> str:
        """The text with these events only; `end_ns`: it quits then."""
        changes = [(one, "") for one in self.events if one not in kept]
        if end_ns is not None and self.quit is not None:
            changes.append((self.quit, f"at {units.duration(end_ns)} quit"))
        return _changed(self.text, changes)


def read(raw: bytes, texts: Texts, params: Mapping[str, str] = NO_PARAMS) -> Script:
    """Raises TdlError."""
    partial = parse_partial(raw, texts, params)
    if partial.failed:
        raise TdlError(partial.diagnostics)
    dynamic = [one for one in partial.file.statements if isinstance(one, ast.Dynamic)]
    own = _statements(one.span for one in dynamic if not one.span.file)
    quits = [one for one in dynamic if isinstance(one.action, ast.Quit)]
    ends = [one for one in own if any(one.has(_begin(end.span)) for end in quits)]
    events = tuple(one for one in own if one not in ends)
    text = raw.decode("utf-8")
    alone = len(quits) == 1 and len(ends) == 1 and ends[0].begin == _begin(quits[0].span)
    if not alone or quits[0].span.file or quits[0].span.note:
        return Script(text, events)
    return Script(text, events, ends[0], quits[0].start_ns)


def _begin(span: ast.Span) -> _Place:
    return span.line, span.col


def _statements(spans: Iterable[ast.Span]) -> tuple[Statement, ...]:
    """Rounds of a loop stand in one place; what follows `and` belongs to what it follows."""
    found: dict[_Place, Statement] = {}
    last: Statement | None = None
    for span in spans:
        begin, end = (span.line, span.col), (span.end_line, span.end_col)
        if last is not None and last.begin < begin and last.has(begin):
            begin, end = last.begin, max(last.end, end)
        known = found.get(begin)
        last = Statement(begin, end if known is None else max(known.end, end))
        found[begin] = last
    return tuple(sorted(found.values()))


def _changed(text: str, changes: Iterable[tuple[Statement, str]]) -> str:
    lines = text.split("\n")
    for statement, instead in sorted(changes, reverse=True):  # from the end: places stay right
        (first, column), (last, end) = statement.begin, statement.end
        before, after = lines[first - 1][: column - 1], lines[last - 1][end - 1 :]
        left = f"{before}{instead}{after}"
        gone = not instead and (not left.strip() or left.lstrip().startswith("#"))
        lines[first - 1 : last] = [] if gone else [left]
    return "\n".join(lines)
