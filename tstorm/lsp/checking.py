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
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compiler.feasibility.warnings import Machines
from compiler.pipeline import Compilation, compile_source
from compiler.plan.format import PlanError
from compiler.sources import NOWHERE
from tdl.ast import Span, said
from tdl.diagnostics import Diagnostic, Severity, TdlError
from tdl.parser import Partial, parse_partial
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
class RenamedText:
    """What is called `name` at a place `range`, and what is to be replaced, by file, to call it
    something else. `mentions`: where texts for programs have the old name, and keep it."""

    name: str
    range: TextRange
    edits: tuple[tuple[str, TextRange], ...] = ()
    mentions: tuple[str, ...] = ()


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
        "rename": session.rename,
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
        found = declared_names(self._partial(), self._asked.text)
        return tuple((one, self.range_of(one.span)) for one in found)

    def hover(self, line: int, units: int) -> str | None:
        """What the experiment has there, in Markdown; None for nothing, or if it has no plan."""
        from tstorm.lsp import hovering

        found, lines = self.compiled, self._lines[""]
        if not isinstance(found, Compilation) or not 0 <= line < len(lines):
            return None
        col = text_ranges.column(lines[line], units, self._asked.encoding) + 1
        return hovering.hover(found, self._asked.text, line + 1, col)

    def rename(self, file: str, line: int, units: int, new: str | None) -> RenamedText | Unanswered:
        """What is called something at a place of a file, and where another name is to be put. No
        name: only what there is."""
        from tstorm.lsp import renaming

        partial, lines = self._partial(), self._lines_of(file)
        texts = {"": self._asked.text, **{f: _text(data) for f, data in partial.includes.items()}}
        names = renaming.RenamableNames(partial, texts, self._lines_of)
        try:
            if not 0 <= line < len(lines):
                raise renaming.NotRenamedError("no name stands here")
            col = text_ranges.column(lines[line], units, self._asked.encoding) + 1
            there = names.at(file, line + 1, col)
            symbol, place = there.symbol, self.range_of(there.span)
            if new is None or new == symbol.text:
                return RenamedText(symbol.text, place)
            found = names.places(symbol, new)
            self._refuse_errors("mend what is wrong first")
            other = self._with(found, new)
            other._refuse_errors(f"with the name {new!r} something is wrong")
            if not renaming.same_meaning(partial.file, other._partial().file, symbol, new):
                message = f"with the name {new!r} the texts would say something else"
                raise renaming.NotRenamedError(message)
        except renaming.NotRenamedError as problem:
            return Unanswered(str(problem))
        edits = ((file, self.range_of(span)) for file, spans in found.items() for span in spans)
        return RenamedText(symbol.text, place, tuple(edits), tuple(names.mentions(symbol, found)))

    def _refuse_errors(self, why: str) -> None:
        """NotRenamedError if it does not compile."""
        from tstorm.lsp.renaming import NotRenamedError

        found = self.compiled
        if isinstance(found, str):
            raise NotRenamedError(f"{why}: {found}")
        if not isinstance(found, Compilation):
            first_one = next(one for one in found if one.severity is Severity.ERROR)
            raise NotRenamedError(f"{why}: {first_one.message} ({said(first_one.span.place)})")

    def _with(self, places: Mapping[str, Sequence[Span]], new: str) -> TextSession:
        """The same with a name in these places, in each file from the beginning on."""
        asked, changed = self._asked, {}
        for file, spans in places.items():
            lines = list(self._lines_of(file))
            for span in reversed(spans):
                line = lines[span.line - 1]
                lines[span.line - 1] = line[: span.col - 1] + new + line[span.end_col - 1 :]
            changed[file] = "\n".join(lines)
        text = changed.pop("", asked.text)
        folder = Path(asked.path).parent
        parts = {str((folder / file).resolve()): one for file, one in changed.items()}
        return TextSession(replace(asked, text=text, texts={**asked.texts, **parts}))

    def _partial(self) -> Partial:
        return parse_partial(self._raw, self._folder or NO_TEXTS)

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
        return text_ranges.text_range(span, self._lines_of(span.file), self._asked.encoding)

    def _lines_of(self, file: str) -> list[str]:
        if file not in self._lines:
            read = self._folder.read if self._folder else {}
            self._lines[file] = source_lines(read.get(file, b""))
        return self._lines[file]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
