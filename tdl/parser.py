"""Text to syntax tree. All errors of a file in one go: each statement is parsed by itself.

Two ways in: `parse` raises when there is an error; `parse_partial` gives what could be read along
with the diagnostics, for callers that have more to check before they report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tdl import ast, lalr
from tdl.ast import Span
from tdl.bounds import MAX_BRIDGES, MAX_ERRORS, MAX_EVENTS, MAX_FILE_BYTES, MAX_LINKS, MAX_SERVICES
from tdl.diagnostics import Diagnostic, Severity, Sink, TdlError, sort
from tdl.dynamic import Actions
from tdl.expected import explain
from tdl.lexer import LogicalLine, logical_lines, source_lines

ENDS = ("TS0029", "TS0030", "TS0031", "TS0032")  # after these nothing more was read
_MOST: dict[type, tuple[int, str]] = {
    ast.ServiceStatement: (MAX_SERVICES, "services"),
    ast.Bridges: (MAX_BRIDGES, "bridges"),
    ast.LinkStatement: (MAX_LINKS, "links"),
    ast.Dynamic: (MAX_EVENTS, "events"),
}
_START = Span(1, 1, 1, 2)
_SAMPLE = 65_536  # bytes of a file that tell whether it is text
_STRAY = 8  # control characters that a text may have by mistake
_ODD = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Partial:
    """What could be read of a file that may have errors.

    `mentioned` are the words of the statements that had errors: a pass that looks for undeclared
    names should not complain about these. `whole` is false when a limit ended the reading: then
    nothing can be said about what the statements make together, and `file` is empty.
    """

    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    failed: bool
    mentioned: frozenset[str]
    whole: bool = True


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
    whole = all(found.code not in ENDS for found in sink.found)
    file = ast.File(tuple(statements) if whole else ())
    return Partial(file, sort(sink.found), sink.failed, frozenset(mentioned), whole)


def statements_by_line(
    source: str, sink: Sink, mentioned: set[str] | None = None
) -> Iterator[tuple[LogicalLine, tuple[ast.Statement, ...]]]:
    """Every logical line with its statements (none for blank lines and lines with errors).

    Ends where the file has more than there may be, which is reported.
    """
    actions = Actions(sink)
    room = _Room(sink)
    table = lalr.callbacks(actions)
    line = LogicalLine()
    for line in logical_lines(source, sink):
        found: tuple[ast.Statement, ...] = ()
        if line.tokens and not line.broken:
            found = _statement(line, actions, table)
        if line.tokens and not found and mentioned is not None:
            for token in line.tokens:
                mentioned.update(_words(token.text))
        if not all(map(room.take, found)):
            return
        if sink.full:
            break
        yield line, found
    if sink.full:
        message = "so much is wrong here that the rest of the file is not read"
        hint = f"mend the first of these errors ({MAX_ERRORS:,} are enough)"
        sink.error("TS0032", sort(sink.found)[-1].span, message, hint)


class _Room:
    """How many statements of each kind there may still be."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._left = {kind: most for kind, (most, _) in _MOST.items()}

    def take(self, statement: ast.Statement) -> bool:
        """False, and a report, when there are too many with this one."""
        kind = type(statement)
        if kind not in self._left:
            return True
        names = statement.names if isinstance(statement, ast.Bridges) else ()
        left = self._left[kind] = self._left[kind] - (len(names) or 1)
        if left >= 0:
            return True
        span = names[left].span if names else statement.span
        most, what = _MOST[kind]
        message = f"more than {most:,} {what}; the file is not read any further"
        self._sink.error("TS0031", span, message, "an experiment cannot hold so many")
        return False


def _words(text: str) -> set[str]:
    """The names that a token may stand for: `a-b` may have been meant as `a--b`."""
    parts = text.partition(".")[0].split("-")
    if len(parts) > 8:
        return {text}
    count = len(parts) + 1
    return {"-".join(parts[i:j]) for i in range(count) for j in range(i + 1, count)} - {""}


def _statement(
    line: LogicalLine, actions: Actions, table: lalr.Callbacks
) -> tuple[ast.Statement, ...]:
    actions.tokens = line.tokens
    errors, before = actions.errors, len(actions.sink.found)
    try:
        found: tuple[ast.Statement, ...] = lalr.run(line.tokens, table)
    except lalr.UnexpectedTokenError as stop:
        # Warnings about the part that was read would only distract from the error.
        found_so_far = actions.sink.found
        found_so_far[before:] = [d for d in found_so_far[before:] if d.severity is Severity.ERROR]
        said = explain(line.tokens, stop.index, stop.expected)
        actions.sink.error(said.code, said.span, said.message, said.hint)
        return ()
    return found if actions.errors == errors else ()


def decode(text: str | bytes, sink: Sink) -> str:
    """Bytes as UTF-8; what is not UTF-8 is reported and replaced by a question mark.

    What is no text at all, or too much, is reported and becomes an empty text.
    """
    problem = _not_text(text)
    if problem is not None:
        sink.error("TS0029", _START, "this is not a text file", problem)
        return ""
    if len(text) > MAX_FILE_BYTES:
        message = f"the file has more than {MAX_FILE_BYTES >> 20} MiB"
        sink.error("TS0030", _START, message, "an experiment cannot hold so much")
        return ""
    return text if isinstance(text, str) else _utf8(text, sink)


def _not_text(text: str | bytes) -> str | None:
    """Why it is no text, if it is none: a hint."""
    if isinstance(text, bytes) and text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it looks like UTF-16: save it as UTF-8"
    zero = "\0" in text if isinstance(text, str) else b"\0" in text
    sample = text[:_SAMPLE]
    raw = sample if isinstance(sample, bytes) else sample.encode("utf-8", "replace")
    odd = len(_ODD.findall(raw))
    if zero or (odd > _STRAY and odd * 10 > len(raw)):
        return "a TDL file is UTF-8 text; this looks like a program, an archive or an image"
    return None


def _utf8(text: bytes, sink: Sink) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as problem:
        before = source_lines(text[: problem.start])
        line, col = len(before), len(before[-1]) + 1
        byte = text[problem.start]
        message = f"byte 0x{byte:02x} is not UTF-8"
        sink.error("TS0001", Span(line, col, line, col + 1), message, "save the file as UTF-8")
        return text.decode("utf-8", "replace").replace("\ufffd", "?")
