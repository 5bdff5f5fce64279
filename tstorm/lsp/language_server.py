"""The language server: what an editor sends, and what it gets.

Input and output: the Language Server Protocol 3.17 over two streams, spoken by pygls. Each open
text is checked when it has not changed for a moment, by a process of its own (check_process.py); a
later text ends the check of an earlier one. A text that another open one includes is judged as a
part of that, as it is in an experiment. Source:
https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer

from tdl.tokens import patterns
from tdl.tokens.lexer import source_lines
from tstorm.lsp.check_process import CheckProcess
from tstorm.lsp.checking import (
    ERROR,
    NOTE,
    AskedText,
    Checked,
    KnownName,
    RenamedText,
    Replacement,
    TextFinding,
    Unanswered,
)
from tstorm.lsp.completing import proposals
from tstorm.lsp.known_names import NODE, OTHER, TAG, VARIABLE
from tstorm.lsp.text_ranges import NOWHERE, TextRange, column

PAUSE_SECONDS = 0.15  # without a change, before a text is checked
MAX_TEXT = 4 << 20  # characters of a text that is looked at while it is typed
MAX_CHECKS = 2  # at the same time
MAX_KEPT = 4  # processes that answer questions about a text that has been checked
_SEVERITIES = {ERROR: lsp.DiagnosticSeverity.Error, NOTE: lsp.DiagnosticSeverity.Information}

_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "property": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.Value,
    NODE: lsp.CompletionItemKind.Class,
    TAG: lsp.CompletionItemKind.Folder,
    VARIABLE: lsp.CompletionItemKind.Variable,
    OTHER: lsp.CompletionItemKind.Reference,
}
_NAME = re.compile(patterns.NAME)
_INCLUDE = re.compile(r"\s*include\s")


class OpenText:
    """A text that is open in the editor, and what is known of it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.path = _path(uri)
        self.text = ""
        self.version = 0
        self.checked: Checked | None = None
        self.names: tuple[KnownName, ...] = ()
        self.process: CheckProcess | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def parts(self) -> set[str]:
        """The files that it includes."""
        if self.checked is None or not self.path:
            return set()
        return {self.place_of(name) for name in self.checked.includes}

    def place_of(self, name: str) -> str:
        """Where a file is that it includes by this name."""
        return str((Path(self.path).parent / name).resolve())

    def name_of(self, place: str) -> str | None:
        """By which name it includes a file; '' for itself."""
        if place == self.path:
            return ""
        names = self.checked.includes if self.checked is not None else ()
        return next((name for name in names if self.place_of(name) == place), None)

    def forget(self) -> None:
        """Ends what is done for a text that is not there any more."""
        if self.task is not None:
            self.task.cancel()
        if self.process is not None:
            self.process.close()
        self.process = None


class TdlLanguageServer:
    """Of one editor."""

    def __init__(self, version: str) -> None:
        kind = lsp.TextDocumentSyncKind.Full  # lines of the editor need not be those of pygls
        self._editor = LanguageServer("tstorm", version, text_document_sync_kind=kind)
        self._open: dict[str, OpenText] = {}
        self._shown: dict[str, list[lsp.Diagnostic]] = {}
        self._checks = asyncio.Semaphore(MAX_CHECKS)
        self._kept: list[CheckProcess] = []
        handlers: dict[str, Callable[..., Any]] = {
            lsp.TEXT_DOCUMENT_DID_OPEN: self._opened,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self._changed,
            lsp.TEXT_DOCUMENT_DID_SAVE: self._saved,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._files_changed,
            lsp.TEXT_DOCUMENT_FORMATTING: self._format,
            lsp.TEXT_DOCUMENT_HOVER: self._hover,
            lsp.TEXT_DOCUMENT_DEFINITION: self._define,
            lsp.TEXT_DOCUMENT_PREPARE_RENAME: self._prepare_rename,
            lsp.TEXT_DOCUMENT_RENAME: self._rename,
        }
        for method, handler in handlers.items():
            self._editor.feature(method)(partial(handler))
        triggers = lsp.CompletionOptions(trigger_characters=["=", "$", "{", ";", ">", "-"])
        self._editor.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)(partial(self._complete))

    def serve(self, requests: BinaryIO, answers: BinaryIO) -> None:
        """Until the editor says that it is the end, or is gone."""
        try:
            self._editor.start_io(requests, answers)
        finally:
            for one in self._open.values():
                one.forget()

    # --- texts ---

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        self._take(params.text_document.uri)

    def _changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        self._take(params.text_document.uri)

    def _take(self, uri: str) -> None:
        """The text as it is now."""
        document = self._editor.workspace.get_text_document(uri)
        one = self._open.setdefault(uri, OpenText(uri))
        one.text, one.version = document.source, document.version or 0
        self._check(one)
        self._check_wholes(one)

    def _check_wholes(self, part: OpenText) -> None:
        """The texts that include it."""
        for one in self._open.values():
            if one is not part and part.path in one.parts:
                self._check(one)

    def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:  # noqa: ARG002
        self._check_all()

    def _files_changed(self, params: lsp.DidChangeWatchedFilesParams) -> None:  # noqa: ARG002
        self._check_all()

    def _check_all(self) -> None:
        """What texts say may stand in files that have changed."""
        for one in self._open.values():
            self._check(one)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        one = self._open.pop(params.text_document.uri, None)
        if one is not None:
            one.forget()
            self._check_wholes(one)
        self._show()

    # --- checks ---

    def _check(self, one: OpenText) -> None:
        one.forget()
        one.task = asyncio.get_running_loop().create_task(self._check_soon(one))

    async def _check_soon(self, one: OpenText) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        if len(one.text) > MAX_TEXT:
            self._tell(one, _not_checked(f"it has more than {MAX_TEXT >> 20} MiB"))
            return
        async with self._checks:
            process = self._process(one)
            one.process = process
            found = await process.ask("check")
            names = await process.ask("names")
            one.names = names if isinstance(names, tuple) else one.names
        self._keep(process)
        self._tell(one, _not_checked(found.why) if isinstance(found, Unanswered) else found)

    def _process(self, one: OpenText) -> CheckProcess:
        root = self._root(one.path)
        others = {
            str(Path(other.path).resolve()): other.text
            for other in self._open.values()
            if other is not one and other.path and len(other.text) <= MAX_TEXT
        }
        return CheckProcess(AskedText(one.text, one.path, root, others, self._encoding))

    @property
    def _encoding(self) -> str:
        """Of columns: UTF-16 for an editor that names none."""
        named = self._editor.workspace.position_encoding or "utf-16"
        return str(lsp.PositionEncodingKind(named).value)

    def _root(self, path: str) -> str:
        """The open folder that a file is in, else its own folder."""
        workspace = self._editor.workspace
        folders = [_path(folder.uri) for folder in workspace.folders.values()]
        if not folders and workspace.root_uri:
            folders = [_path(workspace.root_uri)]
        around = [one for one in folders if one and Path(path).is_relative_to(one)]
        return max(around, key=len, default=str(Path(path).parent)) if path else ""

    def _keep(self, process: CheckProcess) -> None:
        self._kept = [one for one in self._kept if not one.closed]
        self._kept.append(process)
        while len(self._kept) > MAX_KEPT:
            self._kept.pop(0).close()

    def _tell(self, one: OpenText, checked: Checked) -> None:
        one.checked = checked
        self._show(one)

    # --- diagnostics ---

    def _show(self, checked: OpenText | None = None) -> None:
        """Sends what has changed of all that is wrong, and that of the text just checked."""
        found = self._found()
        uris_now = {**dict.fromkeys(self._shown), **dict.fromkeys(found)}
        for uri in uris_now:
            now = found.get(uri, [])
            if now != self._shown.get(uri) or (checked is not None and uri == checked.uri):
                one = self._open.get(uri)
                self._editor.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(uri, now, one.version if one else None)
                )
        self._shown = {uri: now for uri, now in found.items() if now or uri in self._open}

    def _found(self) -> dict[str, list[lsp.Diagnostic]]:
        """By file, of all texts that are no part of another."""
        found: dict[str, list[lsp.Diagnostic]] = {}
        for one in self._open.values():
            if one.checked is None:
                continue
            found.setdefault(one.uri, [])
            if any(self._is_part(one, other) for other in self._open.values()):
                continue
            for finding in one.checked.findings:
                place = self._uri_of(one, finding.file)
                told = _diagnostic(finding)
                if told not in found.setdefault(place, []):
                    found[place].append(told)
        return found

    def _is_part(self, one: OpenText, other: OpenText) -> bool:
        return other is not one and one.path in other.parts and other.path not in one.parts

    def _uri_of(self, one: OpenText, file: str) -> str:
        """By the name that the editor has for it, if it is open there."""
        if not file:
            return one.uri
        place = one.place_of(file)
        known = (other.uri for other in self._open.values() if other.path == place)
        return str(next(known, None) or uris.from_fs_path(place) or one.uri)

    # --- format ---

    async def _format(self, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        """By `tstorm fmt`: whatever width and tabs the editor prefers."""
        one = self._open.get(params.text_document.uri)
        if one is None or len(one.text) > MAX_TEXT:
            return None
        process = self._process(one)
        try:
            after = await process.ask("format")
        finally:
            process.close()
        if isinstance(after, Replacement):
            return [lsp.TextEdit(_range(after.range), after.text)] if after.range else []
        why = after.why if isinstance(after, Unanswered) else "it has an error of syntax"
        self._warn(f"{Path(one.path).name or 'this text'} is not formatted: {why}")
        return None

    # --- questions about a place ---

    def _complete(self, params: lsp.CompletionParams) -> lsp.CompletionList | None:
        found = self._line_of(params)
        if found is None:
            return None
        one, lines, col = found
        known = [name for name, _ in self._whole(one).names]
        taken, proposed = proposals([*lines[:-1], lines[-1][:col]], known)
        end = params.position
        start = lsp.Position(end.line, end.character - taken)  # of ASCII, so as many units
        items = [
            lsp.CompletionItem(
                label=text,
                kind=_KINDS[kind],
                detail=detail or None,
                sort_text=f"{place:05}",
                text_edit=lsp.TextEdit(lsp.Range(start, end), text),
            )
            for place, (text, kind, detail) in enumerate(proposed)
        ]
        return lsp.CompletionList(is_incomplete=True, items=items)

    async def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        one = self._open.get(params.text_document.uri)
        if one is None or len(one.text) > MAX_TEXT:
            return None
        place = params.position
        said = await self._ask(one, "hover", place.line, place.character)
        if not isinstance(said, str):
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, said))

    async def _ask(self, one: OpenText, question: str, *about: Any) -> Any:
        """Once the texts are checked as they are now."""
        await self._checked([one])
        if one.process is None or one.process.closed:
            one.process = self._process(one)
            self._keep(one.process)
        return await one.process.ask(question, *about)

    async def _checked(self, texts: Iterable[OpenText]) -> None:
        tasks = [one.task for one in texts if one.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    # --- another name ---

    async def _prepare_rename(
        self, params: lsp.PrepareRenameParams
    ) -> lsp.PrepareRenamePlaceholder | None:
        one = self._open.get(params.text_document.uri)
        if one is None or len(one.text) > MAX_TEXT:
            return None
        await self._checked(self._open.values())
        whole, place = self._wholes(one)[0], params.position
        name = whole.name_of(one.path) or ""
        found = await self._ask(whole, "rename", name, place.line, place.character, None)
        if isinstance(found, RenamedText):
            return lsp.PrepareRenamePlaceholder(_range(found.range), found.name)
        self._not_renamed(found)
        return None

    async def _rename(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        """In all open texts that have a part of it, by way of each file that changes."""
        one, place = self._open.get(params.text_document.uri), params.position
        if one is None or len(one.text) > MAX_TEXT:
            return None
        await self._checked(self._open.values())
        changes: dict[str, dict[TextRange, lsp.TextEdit]] = {}
        told: dict[str, None] = {}
        asked: set[str] = set()
        left = [(whole, one.path, place.line, place.character) for whole in self._wholes(one)]
        while left:
            whole, path, line, units = left.pop(0)
            name = whole.name_of(path)
            if whole.uri in asked or name is None:
                continue
            asked.add(whole.uri)
            found = await self._ask(whole, "rename", name, line, units, params.new_name)
            if not isinstance(found, RenamedText):
                self._not_renamed(found)
                return None
            told |= dict.fromkeys(found.mentions)
            for file, where in found.edits:
                edit = lsp.TextEdit(_range(where), params.new_name)
                changes.setdefault(self._uri_of(whole, file), {})[where] = edit
                there = whole.place_of(file) if file else whole.path
                others = (other for other in self._open.values() if there in other.parts)
                left += ((other, there, where.line, where.start) for other in others)
        if told:
            message = f"texts for programs have the old name, and keep it: {', '.join(told)}"
            self._warn(message)
        return lsp.WorkspaceEdit({uri: list(edits.values()) for uri, edits in changes.items()})

    def _wholes(self, one: OpenText) -> list[OpenText]:
        """The open texts that it is a part of, else itself."""
        return [other for other in self._open.values() if self._is_part(one, other)] or [one]

    def _not_renamed(self, found: Any) -> None:
        self._warn(f"not renamed: {found.why}" if isinstance(found, Unanswered) else "not renamed")

    def _warn(self, message: str) -> None:
        self._editor.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, message))

    def _define(self, params: lsp.DefinitionParams) -> list[lsp.Location] | None:
        found = self._line_of(params)
        if found is None:
            return None
        one, lines, col = found
        whole = self._whole(one)
        if _INCLUDE.match(lines[-1]):
            return [
                lsp.Location(self._uri_of(whole, name), _range(NOWHERE))
                for name in (whole.checked.includes if whole.checked else ())
                if Path(name).name in lines[-1]
            ]
        words = [
            match for match in _NAME.finditer(lines[-1]) if match.start() <= col <= match.end()
        ]
        return [
            lsp.Location(self._uri_of(whole, name.span.file), _range(place))
            for name, place in whole.names
            if words and name.text == words[0][0]
        ]

    def _line_of(
        self, params: lsp.TextDocumentPositionParams
    ) -> tuple[OpenText, list[str], int] | None:
        """The text, its lines up to that of the place, and the column in that, from 0."""
        one, place = self._open.get(params.text_document.uri), params.position
        if one is None or len(one.text) > MAX_TEXT:
            return None
        lines = source_lines(one.text)[: place.line + 1]
        if len(lines) <= place.line:
            return None
        return one, lines, column(lines[-1], place.character, self._encoding)

    def _whole(self, one: OpenText) -> OpenText:
        return self._wholes(one)[0]


def _not_checked(why: str) -> Checked:
    """Said where it can be seen, since a text without diagnostics looks right."""
    message = f"this text is not checked here, since {why}; tstorm check has no such bound"
    return Checked((TextFinding(NOTE, message),))


def _diagnostic(finding: TextFinding) -> lsp.Diagnostic:
    more = [f"note: with {finding.note}"] if finding.note else []
    more += [f"help: {finding.hint}"] if finding.hint else []
    return lsp.Diagnostic(
        range=_range(finding.range),
        message="\n".join((finding.message, *more)),
        severity=_SEVERITIES.get(finding.severity, lsp.DiagnosticSeverity.Warning),
        code=finding.code or None,
        source="tstorm",
        data={"message": finding.message, "hint": finding.hint, "note": finding.note},
    )


def _range(place: TextRange) -> lsp.Range:
    return lsp.Range(lsp.Position(place.line, place.start), lsp.Position(place.end_line, place.end))


def _path(uri: str) -> str:
    """Where the file of a text is; '' if it has none, such as one that was never saved."""
    return str(uris.to_fs_path(uri) or "") if uri.startswith("file:") else ""
