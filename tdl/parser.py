"""Text to syntax tree. All errors of a file in one go: each statement is parsed by itself.

Two ways in: `parse` raises when there is an error; `parse_partial` gives what could be read along
with the diagnostics, for callers that have more to check before they report.
"""

from __future__ import annotations

from dataclasses import dataclass

from tdl import ast, lalr
from tdl._tables import RULES
from tdl.ast import Span
from tdl.diagnostics import Diagnostic, Severity, Sink, TdlError, sort
from tdl.dynamic import Actions
from tdl.explain import explain
from tdl.lexer import LogicalLine, logical_lines, source_lines


@dataclass(frozen=True, slots=True)
class Partial:
    """What could be read of a file that may have errors.

    `mentioned` are the words of the statements that had errors: a pass that looks for undeclared
    names should not complain about these.
    """

    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    failed: bool
    mentioned: frozenset[str]


def parse(
    text: str | bytes,
    filename: str = "",  # noqa: ARG001
) -> tuple[ast.File, tuple[Diagnostic, ...]]:
    """The tree of a TDL file, and warnings.

    Raises TdlError with every error (and warning) of the file, sorted by place. `filename` is only
    for the caller's own messages; nothing is read from disk.
    """
    partial = parse_partial(text)
    if partial.failed:
        raise TdlError(partial.diagnostics)
    return partial.file, partial.diagnostics


def parse_partial(text: str | bytes) -> Partial:
    """As `parse`, but returns the statements that are right beside the errors of the others."""
    sink = Sink()
    source = decode(text, sink)
    statements: list[ast.Statement] = []
    mentioned: set[str] = set()
    for _line, found in statements_by_line(source, sink, mentioned):
        statements.extend(found)
    return Partial(ast.File(tuple(statements)), sort(sink.found), sink.failed, frozenset(mentioned))


def statements_by_line(
    source: str, sink: Sink, mentioned: set[str] | None = None
) -> list[tuple[LogicalLine, tuple[ast.Statement, ...]]]:
    """Every logical line with its statements (none for blank lines and lines with errors)."""
    actions = Actions(sink)
    table = [(made, getattr(actions, action), length) for made, action, length in RULES]
    result = []
    for line in logical_lines(source, sink):
        found: tuple[ast.Statement, ...] = ()
        if line.tokens and not line.broken:
            found = _statement(line, actions, table)
        if line.tokens and not found and mentioned is not None:
            for token in line.tokens:
                mentioned.update(_words(token.text))
        result.append((line, found))
    return result


def _words(text: str) -> set[str]:
    """The names that a token may stand for: `a-b` may have been meant as `a--b`."""
    parts = text.partition(".")[0].split("-")
    if len(parts) > 8:
        return {text}
    count = len(parts) + 1
    return {"-".join(parts[i:j]) for i in range(count) for j in range(i + 1, count)} - {""}


def _statement(
    line: LogicalLine, actions: Actions, table: list[tuple[str, lalr.Action, int]]
) -> tuple[ast.Statement, ...]:
    actions.tokens = line.tokens
    errors, before = actions.errors, len(actions.sink.found)
    try:
        found: tuple[ast.Statement, ...] = lalr.run(line.tokens, table)
    except lalr.UnexpectedTokenError as stop:
        # Warnings about the part that was read would only distract from the error.
        found_so_far = actions.sink.found
        found_so_far[before:] = [d for d in found_so_far[before:] if d.severity is Severity.ERROR]
        found_so_far.append(explain(line.tokens, stop.index, stop.expected))
        return ()
    return found if actions.errors == errors else ()


def decode(text: str | bytes, sink: Sink) -> str:
    """Bytes as UTF-8; what is not UTF-8 is reported and replaced by a question mark."""
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as problem:
        before = source_lines(text[: problem.start])
        line, col = len(before), len(before[-1]) + 1
        byte = text[problem.start]
        message = f"byte 0x{byte:02x} is not UTF-8"
        sink.error("TS0001", Span(line, col, line, col + 1), message, "save the file as UTF-8")
        return text.decode("utf-8", "replace").replace("\ufffd", "?")
