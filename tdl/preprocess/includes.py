"""Which file an `include` names, and its text. Nothing here reads a file: `Texts` does.

A file is called by its path from the file that was read first, `net/wan.tdl` or `../lib/wan.tdl`,
wherever the line stands that includes it. Refused are files that include themselves, and more than
a person could have meant.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from tdl.bounds import MAX_DEPTH, MAX_FILE_BYTES, MAX_INCLUDES
from tdl.decoding import decode
from tdl.diagnostics import Sink
from tdl.preprocess.translated import Translation, Variable
from tdl.tokens.lexer import Token

FOREIGN = (".yml", ".yaml", ".xml", ".graphml", ".gml", ".json", "lab.conf", ".py")
# how names of files end that another package reads
_PROGRAM = re.compile(r"(.*\.py):(.*)", re.DOTALL)  # and which of its topologies
MATRICES = (".csv", ".json")  # the same, of `matrix FILE WAY`
WAYS = ("rtt", "one-way")
MAX_PATH = 80  # bytes: a plan carries the texts in an archive


def is_foreign(name: str) -> bool:
    """Whether it names a file that another package reads."""
    return file_of(name).endswith(FOREIGN)


def file_of(name: str) -> str:
    """The file that a name is of: `topo.py` of `topo.py:tree,depth=2`."""
    return described(name)[0] if _PROGRAM.fullmatch(name) else name


def described(name: str) -> tuple[str, str]:
    """A file that is a program, and which of the topologies that it describes is meant: '' for the
    one there is. `FILE:` and `FILE:CHOICE` are names of texts, too: what the program says."""
    found = _PROGRAM.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


Reader = Callable[[str], bytes]  # the text at a path, which a plan then has. NoTextError


class NoTextError(Exception):
    """A file that cannot be read: why, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Texts(Protocol):
    """Where included files come from."""

    def text(self, path: str) -> bytes:
        """What is in the file at `path`, seen from the folder of the file that includes all others.
        Raises NoTextError."""

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        """What files of another tool say together, in TDL; None after a report. `variable` has
        values that win over those of the files, `read` the files. Raises NoTextError for the
        first of them."""


class _NoTexts:
    def text(self, path: str) -> bytes:
        message = f"'{path}' cannot be read: this text has no folder"
        raise NoTextError(message, "give a TDL file, beside which it is")

    def translated(
        self,
        paths: Sequence[str],
        variable: Variable,  # noqa: ARG002
        read: Reader,  # noqa: ARG002
        sink: Sink,  # noqa: ARG002
    ) -> Translation | None:
        self.text(paths[0])
        return None


NO_TEXTS: Texts = _NoTexts()


class Includes:
    """The files of one text. `read` has what they hold, by path."""

    def __init__(self, texts: Texts, sink: Sink) -> None:
        self._texts = texts
        self._sink = sink
        self._open: list[str] = []
        self._total = 0
        self._entered = 0
        self.read: dict[str, bytes] = {}
        self.failed = False  # there is a file that could not be entered
        self.stopped = False  # there are too many, or too large ones: nothing more is read

    def enter(self, name: str, token: Token) -> tuple[str, str] | None:
        """The path and the text of a file that is named at `token`; None after a report."""
        found = self._enter(name, token)
        self.failed = self.failed or found is None
        return found

    def _enter(self, name: str, token: Token) -> tuple[str, str] | None:
        path = self._path(name, token)
        if path is None or not self._may_enter(path, token):
            return None
        if path not in self.read:
            try:
                self.read[path] = self._texts.text(path)
            except NoTextError as problem:
                self._sink.error("TS0151", token.span, problem.message, problem.hint)
                return None
        self._total += len(self.read[path])
        self._entered += 1
        if self._total > MAX_FILE_BYTES or self._entered > MAX_INCLUDES:
            what = f"{MAX_FILE_BYTES >> 20} MiB"
            if self._entered > MAX_INCLUDES:
                what = f"{MAX_INCLUDES:,} files"
            message = f"more than {what} are included; nothing further is read"
            self._sink.error("TS0153", token.span, message, "an experiment cannot hold so much")
            self.stopped = True
            return None
        self._open.append(path)
        return path, decode(self.read[path], self._sink, path)

    def translate(
        self,
        names: Sequence[str],
        tokens: Sequence[Token],
        variable: Variable,
        words: Sequence[str] = (),
    ) -> Translation | None:
        """What the files of another tool say that are named at `tokens`; None after a report.
        `words` are for their reader, who finds them behind the paths."""
        paths = [self._path(name, token) for name, token in zip(names, tokens, strict=True)]
        found = None
        if all(paths):
            try:
                known = [*(path for path in paths if path), *words]
                found = self._texts.translated(known, variable, self._read, self._sink)
            except NoTextError as problem:
                self._sink.error("TS0151", tokens[0].span, problem.message, problem.hint)
        self.failed = self.failed or found is None
        return found

    def _read(self, path: str) -> bytes:
        if path not in self.read:
            self.read[path] = self._texts.text(path)
        return self.read[path]

    def leave(self) -> None:
        """After the last line of the file entered last."""
        self._open.pop()

    def _path(self, name: str, token: Token) -> str | None:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(token.file), name))
        message = hint = None
        if not name or not name.isprintable() or path in (".", ".."):
            message = "this is not the name of a file"
        elif name.startswith("/"):
            message = "an included file is named from the file that the line is in"
            hint = "write its path without the folders that both are in"
        elif len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
            message, hint = "this path is too long", f"it has at most {MAX_PATH} bytes"
        if message is None:
            return path
        self._sink.error("TS0150", token.span, message, hint)
        return None

    def _may_enter(self, path: str, token: Token) -> bool:
        if path in self._open:
            chain = " -> ".join((*self._open[self._open.index(path) :], path))
            message = f"'{path}' includes itself"
            hint = f"{chain}: put what both need into a third file"
            self._sink.error("TS0152", token.span, message, hint)
        elif len(self._open) >= MAX_DEPTH:
            message = f"more than {MAX_DEPTH} files include one another"
            self._sink.error("TS0153", token.span, message)
        else:
            return True
        return False
