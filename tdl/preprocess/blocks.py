"""Logical lines to a tree: each `for … {`, `when … {`, `node … {` and `hunt {` with the lines up to
its `}`.

One pass; only a loop is held in memory. A brace without its counterpart is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tdl.diagnostics import Sink
from tdl.tokens.lexer import LogicalLine


@dataclass(slots=True)
class LoopBlock:
    """Of a loop, a `when`, a `node` or a `hunt`. `end` is the line of the `}`, None where it is
    missing."""

    head: LogicalLine
    body: list[LogicalLine | LoopBlock] = field(default_factory=list)
    end: LogicalLine | None = None


Item = LogicalLine | LoopBlock
_KEPT = ("WHEN", "NODE", "HUNT")


def blocks(lines: Iterator[LogicalLine], sink: Sink) -> Iterator[Item]:
    """The lines and loops of a file, in order."""
    for line in lines:
        if is_end(line):
            message = "this '}' closes nothing"
            sink.error(
                "TS0144",
                line.tokens[0].span,
                message,
                "it stands after the lines of a for, a when, a node or a hunt",
            )
            yield LogicalLine(comments=line.comments)
        elif is_head(line):
            yield _loop(line, lines, sink)
        else:
            yield line


def _loop(head: LogicalLine, lines: Iterator[LogicalLine], sink: Sink) -> LoopBlock:
    """Reads on to the end of the loop, or of the text."""
    stack = [LoopBlock(head)]
    for line in lines:
        inner = stack[-1]
        if is_end(line):
            inner.end = line
            if len(stack) == 1:
                return inner
            stack.pop()
        elif is_head(line):
            deeper = LoopBlock(line)
            inner.body.append(deeper)
            stack.append(deeper)
        else:
            inner.body.append(line)
    for loop in stack:
        if loop.head.tokens[-1].type == "BRACE":
            sink.error("TS0144", loop.head.tokens[-1].span, "this '{' is never closed", "add '}'")
    return stack[0]


def is_for(line: LogicalLine) -> bool:
    return bool(line.tokens) and line.tokens[0].type == "FOR"


def is_when(line: LogicalLine) -> bool:
    """With a block: where the brace is missing it is a line by itself, which is wrong."""
    return is_kept(line) and line.tokens[0].type == "WHEN"


def is_node(line: LogicalLine) -> bool:
    """As `is_when`, of a machine with parts."""
    return is_kept(line) and line.tokens[0].type == "NODE"


def is_hunt(line: LogicalLine) -> bool:
    """As `is_when`, of the bounds of storms."""
    return is_kept(line) and line.tokens[0].type == "HUNT"


def is_kept(line: LogicalLine) -> bool:
    """Whether head and end of its block are statements, too."""
    tokens = line.tokens
    return bool(tokens) and tokens[0].type in _KEPT and tokens[-1].text == "{"


def is_head(line: LogicalLine) -> bool:
    return is_for(line) or is_kept(line)


def is_end(line: LogicalLine) -> bool:
    first = line.tokens[0] if line.tokens else None
    return first is not None and first.type == "BRACE" and first.text == "}"
