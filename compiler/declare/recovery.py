"""What else is wrong with a file that has syntax errors.

The statements that could be read are checked against each other, so that all errors of a file are
reported in one go. Kept are findings that no unreadable statement can be the reason of: those about
what is there (CERTAIN), and those about what is missing (MISSING) if no unreadable statement
mentions the name, since it may have declared or used it.
"""

from __future__ import annotations

import re

from compiler.declare.model import build
from compiler.declare.nodes.machines import with_parts
from tdl import ast
from tdl.ast import Span
from tdl.diagnostics import Diagnostic, Sink
from tdl.parser import Partial
from tdl.tokens.lexer import source_lines

CERTAIN = frozenset(("TS0101", "TS0107", "TS0108", "TS0204", "TS0209", "TS0212"))
MISSING = frozenset(("TS0102", "TS0103", "TS0123", "TS0201", "TS0202", "TS0203", "TS0901"))
MOBILITY = "mobility"  # as a statement begins
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")


def also_wrong(partial: Partial, text: str | bytes) -> list[Diagnostic]:
    """The findings of the model about the statements of `partial`, which has errors already."""
    sink = Sink()
    build(with_parts(partial.file, sink), sink)
    moves = any(isinstance(one, ast.Mobility) for one in partial.file.statements)
    missing = MISSING
    if moves or MOBILITY in partial.mentioned:
        missing = frozenset()  # its file is not read: it may have any node and link
    texts = {"": text, **partial.includes}
    lines: dict[str, list[str]] = {}  # of files with something to look at: they may be huge

    def mentions(span: Span) -> bool:
        if span.file not in lines:
            lines[span.file] = source_lines(texts[span.file])
        return not partial.mentioned.isdisjoint(_names(span, lines[span.file]))

    return [
        found
        for found in sink.found
        if found.code in CERTAIN or (found.code in missing and not mentions(found.span))
    ]


def _names(span: Span, lines: list[str]) -> list[str]:
    """The words that a span covers."""
    rows = lines[span.line - 1 : span.end_line]
    if not rows:
        return []
    rows[-1] = rows[-1][: span.end_col - 1]
    rows[0] = rows[0][span.col - 1 :]
    return [word for row in rows for word in _NAME.findall(row)]
