"""Compose files to one tree of services: read, with the values of variables, merged, extended.

Names of files are relative to the first file's folder, in a file that is extended to its own. What
is read beside the files that were named (`.env`, an override file, env files) lies below the folder
of the first.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from tdl.ast import Span
from tdl.bounds import MAX_DEPTH
from tdl.diagnostics import Sink
from tdl.formats import yaml_tree
from tdl.formats.compose import env_files
from tdl.formats.compose.compose_overrides import merged, without_resets
from tdl.formats.compose.compose_variables import Variables
from tdl.formats.yaml_tree import Value
from tdl.preprocess.includes import NoTextError, Reader
from tdl.preprocess.translated import Variable
from tdl.suggest import did_you_mean

_PROJECT = "COMPOSE_PROJECT_NAME"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]")


class Project:
    """What the files are together: `root` has their fields, `services` those that are extended."""

    def __init__(
        self,
        paths: Sequence[str],
        variable: Variable,
        read: Reader,
        unrecorded: Reader,
        sink: Sink,
        folder: str,
    ) -> None:
        self._called = folder
        self.folder = posixpath.dirname(paths[0])
        self._sink = sink
        self._read = read
        self._bases: dict[str, str] = {}  # by file: where its names begin
        self._lacks_some = False  # services that extend what is not there
        self._trees: dict[str, Value] = {}
        self._dotenv: dict[str, tuple[Span, str | None]] = {}
        self._given = variable
        self.variables = Variables(self._ask, sink)
        self._read_env_beside(unrecorded)
        self.root = self._files(paths)

    def _ask(self, name: str) -> str | None:
        known = self._given(name)
        return self._dotenv.get(name, (None, None))[1] if known is None else known

    def _read_env_beside(self, unrecorded: Reader) -> None:
        """Of `.env`. A plan has the values that are used, and not the file."""
        path = posixpath.join(self.folder, ".env")
        try:
            data = unrecorded(path)
        except NoTextError:
            return
        env_files.read_into(self._dotenv, data, path, self.variables.text, self._sink)

    # --- files ---

    def _files(self, paths: Sequence[str]) -> Value | None:
        """The first has to be there (NoTextError)."""
        found = self._whole(paths[0])
        others = [(path, True) for path in paths[1:]]
        if not others:
            stem, end = posixpath.splitext(paths[0])
            others = [(f"{stem}.override{end}", False)]
        for path, needed in others:
            try:
                above = self._whole(path)
            except NoTextError as problem:
                if needed:
                    raise NoTextError(problem.message, problem.hint) from None
                continue
            if found is not None and above is not None:
                found = merged(found, above)
        return None if found is None else without_resets(found)

    def _whole(self, path: str) -> Value | None:
        """A file of the experiment: its services have what they extend in them, as this file has
        it, whatever the next one changes of that. NoTextError."""
        tree = self._file(path, self.folder)
        known = tree.get("services") if tree else None
        if tree is None or known is None or known.entries is None:
            return tree
        services = {}
        for name, span, value in known.values():
            found = self._extended(value, known, (name,)) if value.entries is not None else value
            if found is None:
                self._lacks_some = True  # and it is said why
            else:
                services[name] = (span, found)
        whole = (tree.entries or {})["services"][0], known.with_entries(services)
        return tree.with_entries({**(tree.entries or {}), "services": whole})

    def _file(self, path: str, base: str) -> Value | None:
        if path in self._trees:
            return self._trees[path]
        tree = yaml_tree.read(self._read(path), path, self._sink)
        if tree is None:
            return None
        if tree.entries is None:
            message = f"a Compose file is a map with services, not {tree.kind}"
            self._sink.error("TS0501", tree.span, message)
            return None
        self._bases[path] = base
        self._trees[path] = self.variables.put_into(tree)
        return self._trees[path]

    def path(self, name: str, span: Span) -> str:
        """A file's path from the folder of the experiment."""
        base = self._bases.get(span.file, self.folder)
        return posixpath.normpath(posixpath.join(base, name))

    def inner_path(self, name: str, span: Span, what: str) -> str | None:
        """The same of a file that is read; None after the report that it lies outside."""
        path = self.path(name, span)
        inside = posixpath.relpath(path, self.folder or ".")
        if name and not path.startswith("/") and not inside.startswith(".."):
            return path
        message = f"the {what} '{name[:80]}' is not below the folder of the Compose file"
        hint = "put it there: nothing outside is read"
        self._sink.error("TS0504", span, message, hint)
        return None

    def text(self, name: str, span: Span, what: str, *, needed: bool = True) -> bytes | None:
        """What a file holds that the Compose file names; a plan then has it."""
        path = self.inner_path(name, span, what)
        if path is None:
            return None
        try:
            return self._read(path)
        except NoTextError as problem:
            if needed:
                self._sink.error("TS0504", span, problem.message, problem.hint)
        return None

    @property
    def name(self) -> str:
        """What Compose calls the project: it is in the names of images that are built. A plan has
        it as a variable, since it does not have the folder."""
        said = self.root and self.root.get("name")
        known = (said and said.text) or self.variables.get(_PROJECT)
        if not known:
            known = posixpath.basename(self.folder) or self._called
            self.variables.used[_PROJECT] = known
        return _NOT_IN_NAMES.sub("", known.lower()).strip("_-")

    # --- services ---

    def services(self) -> dict[str, tuple[Span, Value]]:
        """By name."""
        known = self.root.get("services") if self.root else None
        if known is None or not (known.entries or self._lacks_some):
            span = Span(1, 1, 1, 2, "") if self.root is None else self.root.span
            if self.root is not None:
                message = "there are no services in this file"
                if known is not None and known.entries is None:
                    message = f"services is a map, not {known.kind}"
                self._sink.error("TS0501", known.span if known else span, message)
            return {}
        found: dict[str, tuple[Span, Value]] = {}
        for name, span, value in known.values():
            if value.entries is None:
                self._sink.error("TS0501", span, f"the service '{name[:40]}' has no fields")
                continue
            found[name] = (span, value)
        return found

    def _extended(self, service: Value, beside: Value, chain: tuple[str, ...]) -> Value | None:
        said = service.get("extends")
        if said is None or said.is_null:
            return service
        base = said if said.text is not None else said.get("service")
        file = said.get("file")
        if base is None or base.text is None:
            self._sink.error("TS0501", said.span, "extends names a service", "service: NAME")
            return None
        if file is not None and file.text:
            tree = self._other(file)
            if tree is None:
                return None
            beside = tree
        key = f"{file.text if file else said.span.file}:{base.text}"
        if key in chain or (file is None and base.text in chain) or len(chain) > MAX_DEPTH:
            self._sink.error("TS0505", base.span, f"'{base.text}' extends itself")
            return None
        found = beside.get(base.text)
        if found is None or found.entries is None:
            hint = did_you_mean(base.text, list(beside.entries or ()))
            self._sink.error("TS0505", base.span, f"there is no service '{base.text}'", hint)
            return None
        below = self._extended(found, beside, (*chain, key, base.text))
        if below is None:
            return None
        entries = {k: v for k, v in (below.entries or {}).items() if k != "extends"}
        whole = merged(below.with_entries(entries), service)
        rest = {k: v for k, v in (whole.entries or {}).items() if k != "extends"}
        return whole.with_entries(rest)

    def _other(self, file: Value) -> Value | None:
        """The services of a file that is extended."""
        name = file.text or ""
        path = self.inner_path(name, file.span, "file")
        if path is None:
            return None
        try:
            tree = self._file(path, posixpath.dirname(path))
        except NoTextError as problem:
            self._sink.error("TS0504", file.span, problem.message, problem.hint)
            return None
        services = tree.get("services") if tree else None
        if services is None or services.entries is None:
            self._sink.error("TS0505", file.span, f"there are no services in '{name}'")
            return None
        return services
