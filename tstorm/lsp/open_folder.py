"""The files that a text in an editor names: those of the open folder, as they are in the editor.

Nothing outside the folder is read, links followed, and no program runs: who opens a file has not
said that he trusts what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from compiler.plan.parts import traces
from compiler.plan.parts.delay_tables import DelayTable
from compiler.sources import MAX_FILES, Content, Moving, SourceFolder
from tdl import ast
from tdl.diagnostics import Sink
from tdl.preprocess.includes import NoTextError, file_of

_HINT = "open the folder that both are in; tstorm check reads it"


class OpenFolder(SourceFolder):
    """`folder` is that of the text, `root` the one that is open, `texts` what the editor has of
    files, by their real paths."""

    def __init__(self, folder: Path, root: Path, texts: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._place = folder
        self._root = root.resolve()
        self._texts = texts
        self.read: dict[str, bytes] = {}  # included texts, by the names that spans have

    def text(self, path: str) -> bytes:
        file = file_of(path)
        place = (self._place / file).resolve()
        if not place.is_relative_to(self._root):
            raise NoTextError(f"{file!r} is outside of the open folder, and not read here", _HINT)
        known = self._texts.get(str(place)) if file == path else None
        found = super().text(path) if known is None else known.encode("utf-8", "surrogatepass")
        self.read[path] = found
        return found

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> traces.Trace | None:
        if self._refused(wanted.source, wanted.span, "TS0171", sink):
            return None
        return super().trace(wanted, sink)

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:
        if self._refused(wanted.source, wanted.span, "TS0178", sink):
            return None
        return super().delays(wanted, sink)

    def mobility(self, wanted: ast.Mobility, sink: Sink) -> Moving | None:
        names = (wanted.source, wanted.rate_file, wanted.loss_file)
        known = [name for name in names if name is not None]
        if any(self._refused(name, wanted.place, "TS0190", sink) for name in known):
            return None
        return super().mobility(wanted, sink)

    def files(self, service: ast.ServiceStatement, sink: Sink) -> list[Content]:
        inside = [
            item
            for item in service.files
            if not self._refused(item.source, item.span, "TS0133", sink)
        ]
        return super().files(replace(service, files=tuple(inside)), sink)

    def _refused(self, name: str, span: ast.Span, code: str, sink: Sink) -> bool:
        """Whether it is outside, which is reported then."""
        if not self._is_beyond(name):
            return False
        message = f"{name!r} is outside of the open folder, and not read here"
        sink.error(code, span, message, _HINT)
        return True

    def _is_beyond(self, name: str) -> bool:
        """Whether it is not in the open folder, or is a folder of which something is not."""
        place = self._place / name
        if not self._is_inside(place):
            return True
        if not place.is_dir():
            return False
        for count, one in enumerate(place.rglob("*")):
            if count > MAX_FILES:
                return False  # the compiler refuses as many before it reads them all
            if one.is_symlink() and not self._is_inside(one):
                return True
        return False

    def _is_inside(self, place: Path) -> bool:
        try:
            return place.resolve().is_relative_to(self._root)
        except (OSError, ValueError, RuntimeError):
            return True  # no file has this name, which the compiler tells
