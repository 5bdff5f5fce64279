"""Parts of a statement: those joined by `and`, the names of a list, what a `set` sets.

Input: a script. Output: for each place where several such parts stand, the choice among them. What
is left stands there as it was written; other parts keep their draws, which depend on their own text
alone (docs/draws.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tdl import ast
from tstorm.shrink.text import Range, SourceText, Subset

if TYPE_CHECKING:
    from tstorm.shrink.script import Script

_Nodes = Sequence[ast.Dynamic]


def clauses(script: Script) -> Iterator[Subset]:
    """`a leave and b join`."""
    for one in script.written.values():
        parts = [_whole(nodes) for nodes in one.clauses]
        yield from _choice(script, parts, " and ", "parts of the statement")


def names(script: Script) -> Iterator[Subset]:
    """`a;b;c leave`, `tags=x;y leave`."""
    for one in script.written.values():
        for nodes in one.clauses:
            spans = dict.fromkeys(node.selector.span for node in nodes)
            selector = nodes[0].selector
            if isinstance(selector, ast.Tagged):
                spans = dict.fromkeys(tag.span for tag in selector.tags)
            yield from _choice(script, [Range.of([span]) for span in spans], ";", "names")


def properties(script: Script) -> Iterator[Subset]:
    """`set latency=5ms loss=1%`. A word without a value, `symmetric`, goes with the one before."""
    for one in script.written.values():
        for nodes in one.clauses:
            action = nodes[0].action
            if not isinstance(action, ast.Set | ast.Ramp):
                continue
            begins = sorted({(item.span.line, item.span.col) for item in action.assignments})
            ends = [*begins[1:], (action.span.end_line, action.span.end_col)]
            parts = [Range(*both) for both in zip(begins, ends, strict=True)]
            yield from _choice(script, parts, " ", "properties")


def _whole(nodes: _Nodes) -> Range:
    """Selectors and action, in whichever order they stand there."""
    spans = [*(node.selector.span for node in nodes), nodes[0].action.span]
    begin = min((span.line, span.col) for span in spans)
    return Range(begin, max((span.end_line, span.end_col) for span in spans))


def _choice(script: Script, parts: Sequence[Range], between: str, what: str) -> Iterator[Subset]:
    if len(parts) < 2:
        return
    text = SourceText(script.text)
    whole = Range(parts[0].begin, parts[-1].end)

    def keeping(kept: Sequence[int]) -> str:
        left = between.join(text.part(parts[at]).strip() for at in kept)
        return text.changed([(whole, left)])

    yield Subset(whole.begin, f"{what} in line {whole.begin[0]}", len(parts), keeping)
