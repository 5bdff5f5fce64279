"""What an editor asks about a text, answered in a process of its own.

A text that somebody types is broken most of the time, and may be hostile: whatever it makes the
compiler do ends with this process, which has a bound of memory, and of processor time for each
question. It reads the files of the open folder and writes nothing.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compiler.feasibility.warnings import Machines
from compiler.pipeline import Compilation, compile_source
from compiler.plan.format import PlanError
from compiler.sources import NOWHERE
from tdl.ast import Span
from tdl.diagnostics import Diagnostic, Severity, TdlError
from tdl.parser import parse_partial
from tdl.preprocess.includes import NO_TEXTS
from tdl.presentation import first, rest
from tdl.text_layout import format_text
from tdl.tokens.lexer import source_lines
from tstorm import which
from tstorm.lsp import text_ranges
from tstorm.lsp.known_names import DeclaredName, declared_names
from tstorm.lsp.open_folder import OpenFolder
from tstorm.lsp.text_ranges import TextRange

MAX_SECONDS = 10  # of a processor, for one question
MAX_MEMORY = 4 << 30  # bytes of addresses
MAX_SHOWN = 1000  # errors and warnings
ERROR, WARNING, NOTE = "error", "warning", "note"
KnownName = tuple[DeclaredName, TextRange]


@dataclass(frozen=True, slots=True)
class AskedText:
    """A text in an editor. `path` is where its file is ('' if it has none), `root` the open folder,
    `texts` what the editor has of other files there, by their real paths."""

    text: str
    path: str = ""
    root: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-16"
    seconds: int = MAX_SECONDS


@dataclass(frozen=True, slots=True)
class TextFinding:
    """What is wrong somewhere. `file` is '' for the text itself, else the path of a file that it
    includes, from its folder."""

    severity: str  # ERROR, WARNING, or NOTE of the language server itself
    message: str
    file: str = ""
    range: TextRange = text_ranges.NOWHERE
    code: str = ""
    hint: str = ""
    note: str = ""  # the round of a loop


@dataclass(frozen=True, slots=True)
class Checked:
    """What `tstorm check` says of a text, and which files it includes."""

    findings: tuple[TextFinding, ...]
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text in place of another; no place: nothing is to be replaced."""

    range: TextRange | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why there is no answer."""

    why: str


def serve(connection: Connection, asked: AskedText) -> None:
    """Answers questions about a text until nobody asks any more."""
    os.dup2(2, 1)  # standard output belongs to the protocol
    gc.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    sys.setrecursionlimit(5000)
    session = TextSession(asked)
    answers: Mapping[str, Callable[..., Any]] = {
        "check": session.check,
        "format": session.formatted,
        "hover": session.hover,
        "names": session.names,
    }
    while True:
        try:
            question, *about = connection.recv()
        except (EOFError, OSError):
            return
        _give_time(asked.seconds)
        connection.send(_answer(answers[question], about))


def _give_time(seconds: int) -> None:
    """The next question has so many of its own: beyond them the kernel ends this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _answer(answer: Callable[..., Any], about: Sequence[Any]) -> Any:
    try:
        return answer(*about)
    except MemoryError:
        return Unanswered(f"it needs more than {MAX_MEMORY >> 30} GiB of memory")
    except Exception as error:  # of ours: told where the user looks, and the editor goes on
        return Unanswered(f"{type(error).__name__}: {error}")


class TextSession:
    """A text, and what it comes to."""

    def __init__(self, asked: AskedText) -> None:
        self._asked = asked
        self._raw = asked.text.encode("utf-8", "surrogatepass")
        self._lines: dict[str, list[str]] = {"": source_lines(asked.text)}
        self._folder: OpenFolder | None = None
        if asked.path:
            place = Path(asked.path).parent
            self._folder = OpenFolder(place, Path(asked.root or place), asked.texts)

    @cached_property
    def compiled(self) -> Compilation | tuple[Diagnostic, ...] | str:
        """The experiment, or all that is wrong, or why it has no plan."""
        asked, find = self._asked, None
        if asked.path:
            find = which.finder(Path(asked.path).parent)
        try:
            return compile_source(
                self._raw,
                filename=asked.path or "untitled.tdl",
                machines=Machines(find=find),
                sources=self._folder or NOWHERE,
            )
        except TdlError as error:
            return error.diagnostics
        except PlanError as error:
            return str(error)

    def check(self) -> Checked:
        """As `tstorm check` has it."""
        found = self.compiled
        if isinstance(found, str):
            return Checked((TextFinding(ERROR, found),))
        told = found.diagnostics if isinstance(found, Compilation) else found
        shown = first(told, MAX_SHOWN)
        findings = [self._finding(one) for one in shown]
        if more := rest(told, shown):
            findings.append(
                TextFinding(NOTE, f"and {more}; 'tstorm check --max-errors 0' shows all")
            )
        return Checked(tuple(findings), tuple(self._folder.read if self._folder else ()))

    def names(self) -> tuple[KnownName, ...]:
        """What it and the texts that it includes declare, as far as they can be read."""
        partial = parse_partial(self._raw, self._folder or NO_TEXTS)
        found = declared_names(partial, self._asked.text)
        return tuple((one, self.range_of(one.span)) for one in found)

    def hover(self, line: int, units: int) -> str | None:
        """What the experiment has there, in Markdown; None for nothing, or if it has no plan."""
        from tstorm.lsp import hovering

        found, lines = self.compiled, self._lines[""]
        if not isinstance(found, Compilation) or not 0 <= line < len(lines):
            return None
        col = text_ranges.column(lines[line], units, self._asked.encoding) + 1
        return hovering.hover(found, self._asked.text, line + 1, col)

    def formatted(self) -> Replacement | None:
        """What makes the canonical form of it; None where the text has a syntax error."""
        try:
            after = source_lines(format_text(self._raw))
        except TdlError:
            return None
        before = self._lines[""]
        shorter = min(len(before), len(after))
        head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
        if head == len(before) == len(after):
            return Replacement(None)
        left = min(shorter - head, shorter - 1)  # the last line has no end, and is no line
        tail = next((i for i in range(left) if before[-1 - i] != after[-1 - i]), left)
        first_line = min(head, len(before) - 1, len(after) - 1)
        old, new = before[first_line : len(before) - tail], after[first_line : len(after) - tail]
        end = len(before) - tail
        span = Span(first_line + 1, 1, end, len(old[-1]) + 1) if old else None
        if span is None:  # lines come in between
            span, new = Span(first_line + 1, 1, first_line + 1, 1), [*new, ""]
        elif not new:
            span = Span(first_line + 1, 1, end + 1, 1)
        return Replacement(self.range_of(span), "\n".join(new))

    def _finding(self, one: Diagnostic) -> TextFinding:
        severity = ERROR if one.severity is Severity.ERROR else WARNING
        where = self.range_of(one.span)
        hint, note = one.hint or "", one.span.note
        return TextFinding(severity, one.message, one.span.file, where, one.code, hint, note)

    def range_of(self, span: Span) -> TextRange:
        """In the file that the span is of."""
        file = span.file
        if file not in self._lines:
            read = self._folder.read if self._folder else {}
            self._lines[file] = source_lines(read.get(file, b""))
        return text_ranges.text_range(span, self._lines[file], self._asked.encoding)
