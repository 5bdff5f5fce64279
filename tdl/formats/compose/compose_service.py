"""One service of a Compose file as the words of a `service`, each with its place.

The order of words is that of docs/tdl.md. Checks that the language makes anyway are not made here:
they find the same places.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from tdl import quantities
from tdl.ast import Span
from tdl.formats.compose import compose_fields, env_files
from tdl.formats.compose.compose_overrides import as_map
from tdl.formats.compose.compose_project import Project
from tdl.formats.compose.compose_values import Mounted, Reading
from tdl.formats.written import array, bare, image, pair, text, variable
from tdl.formats.yaml_tree import Value
from tdl.preprocess.translated import Line, Piece
from tdl.suggest import did_you_mean
from tdl.tokens.words import SERVICE_PROPERTIES, TEXT_PROPERTIES

SECOND = 10**9
MOST_PORTS = 256  # of a range
_CHECK = (30 * SECOND, 30 * SECOND, 3, 0)  # interval, timeout, retries, start_period of Docker
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_RAW = re.compile(r"[^\s#]+")
_NO_RESTART = ("no", "")
_SHARED_HINT = "bind a folder that both see: - ./data:/data"


@dataclass(slots=True)
class Shared:
    """What services have together: top-level fields by kind and name, who uses which volume, other
    names of services, and those that others wait for (`after`)."""

    top: Mapping[str, Mapping[str, tuple[Span, Value]]]
    volumes: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, dict[str, Span]] = field(default_factory=dict)
    after: dict[str, dict[str, tuple[str, Span]]] = field(default_factory=dict)
    awaited: dict[str, Span] = field(default_factory=dict)


class ServiceReader:
    """`place` is that of the service's name."""

    def __init__(
        self, project: Project, shared: Shared, reading: Reading, name: str, place: Span
    ) -> None:
        self._project = project
        self._shared = shared
        self._reading = reading
        self._sink = reading.sink
        self._name = name
        self._place = place
        self._fields: dict[str, tuple[Span, Value]] = {}
        self._words: dict[str, list[Piece]] = {}
        self._replicas = 1

    def line(self, service: Value) -> Line:
        """The statement."""
        self._fields = {k: v for k, v in (service.entries or {}).items() if not v[1].is_null}
        self._judge()
        own = self._own()
        for step in (
            *(self._image, self._programs, self._count, self._environment, self._ports),
            *(self._resources, self._around, self._volumes, self._settings, self._check),
            *(self._names, self._end, self._restart),
        ):
            step()
        self._words |= own
        if not any(word in self._words for word in ("img", "exec")):
            message = f"the service '{self._name}' has neither image nor build"
            self._sink.error("TS0501", self._place, message)
        ordered = (self._words.get(word, ()) for word in SERVICE_PROPERTIES)
        return (Piece(f"service {self._name}", self._place), *chain.from_iterable(ordered))

    # --- fields ---

    def _get(self, key: str) -> Value | None:
        found = self._fields.get(key)
        return None if found is None else as_map(key, found[1])

    def _put(self, word: str, written: str, span: Span) -> None:
        self._judge_text(written, span)
        self._words[word] = [Piece(f"{word}={written}", span)]

    def _list(self, word: str, items: Iterable[tuple[str, Span]]) -> None:
        """A property with a list, each item with its place."""
        begin = f"{word}="
        for written, span in items:
            self._judge_text(written, span)
            self._words.setdefault(word, []).append(Piece(f"{begin}{written}", span))
            begin = ";"

    def _judge_text(self, written: str, span: Span) -> None:
        if "\r" in written:
            hint = "no text of an experiment has one"
            self._sink.error("TS0502", span, "a carriage return cannot be carried over", hint)

    def _lost(self, span: Span, what: str, why: str) -> None:
        self._sink.warning("TS0971", span, f"{what} is not carried over", why)

    def _wrong(self, span: Span, what: str, why: str) -> None:
        self._sink.error("TS0502", span, f"{what} cannot be carried over", why)

    def _judge(self) -> None:
        """Of each field whether it is carried over."""
        for name, (span, value) in self._fields.items():
            off = value.text is not None and value.text.lower() in ("false", "0")
            empty = value.items == () or value.entries == {}
            if name in compose_fields.WRONG:
                self._wrong(span, name, compose_fields.WRONG[name])
            elif name in compose_fields.LOST and not off and not empty:
                self._lost(span, name, compose_fields.LOST[name])
            elif name not in compose_fields.SERVICE and not name.startswith("x-"):
                known = sorted(compose_fields.SERVICE)
                hint = did_you_mean(name, known) or "docs/from-compose.md has all of them"
                self._sink.error("TS0501", span, f"a service has no field '{name[:40]}'", hint)
        for name in ("pid", "ipc"):
            found = self._get(name)
            if found is not None and found.text not in (None, "private", "shareable"):
                self._wrong(found.span, f"{name}: {found.text}", "each instance has its own")

    def _own(self) -> dict[str, list[Piece]]:
        """Properties of the language, of `x-tstorm`: they win."""
        found: dict[str, list[Piece]] = {}
        value = self._get(compose_fields.OWN)
        if value is not None and value.entries is None:
            self._reading.shape(value, "a map of properties, such as exec: ./serve")
            return found
        for name, span, one in value.values() if value else ():
            said = one.text or ""
            if name not in SERVICE_PROPERTIES:
                hint = did_you_mean(name, SERVICE_PROPERTIES) or "docs/tdl.md has all of them"
                self._sink.error("TS0501", span, f"services have no property '{name[:40]}'", hint)
            elif name in ("command", "entrypoint"):
                found[name] = [Piece(f"{name}={array(self._reading.words(one))}", one.span)]
            elif name in TEXT_PROPERTIES:
                written = image(said) if name == "img" else text(said)
                found[name] = [Piece(f"{name}={written}", one.span)]
            elif _RAW.fullmatch(said):
                found[name] = [Piece(f"{name}={said}", one.span)]
            else:
                self._sink.error("TS0501", one.span, f"'{said[:40]}' is no value of {name}=")
        return found

    # --- the program ---

    def _image(self) -> None:
        build, named = self._get("build"), self._get("image")
        said = self._reading.word(named, "an image")
        if build is None:
            if named is not None and said is not None:
                self._put("img", image(said), named.span)
            return
        built = said or f"{self._project.name or 'project'}-{self._name}:latest"
        self._put("img", image(f"docker-daemon:{built}"), (named or build).span)

    def _programs(self) -> None:
        program, command = self._get("entrypoint"), self._get("command")
        words = [] if program is None else self._reading.words(program)
        arguments = [] if command is None else self._reading.words(command)
        if program is not None and not words:  # the image's own is taken away
            words, arguments = arguments, []
        if program is not None:
            self._put("entrypoint", array(words), program.span)
        if command is not None and arguments:
            self._put("command", array(arguments), command.span)

    def _environment(self) -> None:
        found: dict[str, tuple[str, Span]] = {}
        for file, needed, is_raw in self._env_files():
            data = self._project.text(file.text or "", file.span, "file", needed=needed)
            if data is not None:
                path = self._project.path(file.text or "", file.span)
                there: env_files.Variables = {}
                expand = self._project.variables.and_last(_values(there, found)).text
                if is_raw:
                    env_files.read_raw(there, data, path, self._sink)
                else:
                    env_files.read_into(there, data, path, expand, self._sink)
                for name, (_, value) in there.items():
                    self._variable(found, name, value, file.span)
        stated = self._get("environment")
        if stated is not None and stated.entries is None:
            self._reading.shape(stated, "a map of variables")
        for name, _, one in stated.values() if stated else ():
            self._variable(found, name, self._reading.printed(one), one.span)
        self._list("env", ((variable(k, value), span) for k, (value, span) in found.items()))

    def _env_files(self) -> Iterator[tuple[Value, bool, bool]]:
        """Each, whether it has to be there, and whether its values are as they stand."""
        value = self._get("env_file")
        if value is None:
            return
        for one in value.items if value.items is not None else (value,):
            fields = {"path": one} if one.text is not None else {}
            known = ("path", "required", "format")
            fields = fields or self._reading.entries(one, known, "env_file")
            path = fields.get("path")
            if path is not None and path.text:
                needed, kind = fields.get("required"), fields.get("format")
                is_raw = self._reading.word(kind) == "raw"
                if kind is not None and not is_raw:
                    message = f"'{(kind.text or '')[:40]}' is no format of an env_file"
                    self._sink.error("TS0501", kind.span, message, "raw, or none")
                yield path, needed is None or self._reading.flag(needed), is_raw

    def _variable(
        self, found: dict[str, tuple[str, Span]], name: str, value: str | None, span: Span
    ) -> None:
        if value is None:
            value = self._project.variables.get(name)
        if not _ENV_NAME.fullmatch(name):
            self._sink.error("TS0501", span, f"'{name[:40]}' is no name of a variable")
        elif value is None:
            message = f"{name} is not set, so programs do not have it"
            hint = f"set it: {name}=… in .env, or --param {name}=…"
            self._sink.warning("TS0970", span, message, hint)
        else:
            found[name] = (value, span)

    # --- how it runs ---

    def _count(self) -> None:
        deploy = self._deploy()
        said, mode = deploy.get("replicas") or self._get("scale"), deploy.get("mode")
        if mode is not None and mode.text not in (None, "replicated"):
            self._wrong(mode.span, f"mode: {mode.text}", "say how many: replicas: 3")
        count = self._reading.word(said, "a number")
        if said is None or count is None:
            return
        if count == "0":
            self._wrong(said.span, "a service of no replicas", "leave it out with profiles:")
            return
        self._replicas = int(count) if count.isdecimal() and len(count) < 6 else 1
        self._put("replicas", bare(count), said.span)

    def _deploy(self) -> dict[str, Value]:
        return self._reading.entries(self._get("deploy"), compose_fields.DEPLOY, "deploy")

    def _ports(self) -> None:
        found: dict[str, Span] = {}
        for key in ("ports", "expose"):
            value = self._get(key)
            if value is None or value.items is None:
                continue
            for one in value.items:
                said = self._reading.ports(one)
                if said is None or said[1] != "tcp":
                    continue
                if len(said[0]) > MOST_PORTS:
                    why = f"the first {MOST_PORTS} ports are; nothing else depends on port="
                    self._lost(one.span, f"the whole range of {len(said[0]):,} ports", why)
                for port in said[0][:MOST_PORTS]:
                    found.setdefault(str(port), one.span)
            if key == "ports" and value.items:
                self._not_published(self._fields["ports"][0], next(iter(found), ""))
        self._list("port", found.items())

    def _not_published(self, span: Span, port: str) -> None:
        how = "they are reached inside of the experiment"
        if port:
            how = f"tstorm run --publish {self._name}.0:{port}, or while it runs tstorm forward"
        self._sink.warning("TS0972", span, "ports are not published on this machine", how)

    def _resources(self) -> None:
        resources = self._deploy().get("resources")
        known = ("limits", "reservations")
        parts = self._reading.entries(resources, known, "resources")
        limits = parts.get("limits")
        of_limits = ("cpus", "memory", "pids", "devices")
        found = self._reading.entries(limits, of_limits, "limits")
        for name in ("pids", "devices"):
            if name in found:
                self._lost(found[name].span, name, "limits are of cpus and memory")
        reserved = parts.get("reservations")
        if reserved is not None:
            if reserved.get("devices") is not None:
                self._wrong(reserved.span, "devices", compose_fields.WRONG["gpus"])
            else:
                self._lost(reserved.span, "a reservation", "only limits are carried over")
        cpus = self._limit("cpus", found.get("cpus"), self._reading.cpus)
        memory = self._limit("mem_limit", found.get("memory"), self._reading.size)
        for word, value, read in (
            ("cpu", cpus, self._reading.cpus),
            ("mem", memory, self._reading.size),
        ):
            written = None if value is None else read(value)
            if value is not None and written is not None:
                self._put(word, written, value.span)

    def _limit(
        self, key: str, limit: Value | None, read: Callable[[Value], str | None]
    ) -> Value | None:
        """What `deploy` says, else what the service says; both have to be the same."""
        own = self._get(key)
        if own is not None and limit is not None and read(own) != read(limit):
            hint = "Compose refuses two different ones: leave one of them out"
            self._sink.error("TS0501", own.span, f"deploy has another limit than {key}", hint)
        return limit or own

    def _around(self) -> None:
        for key, word in (("user", "user"), ("working_dir", "cwd")):
            value = self._get(key)
            said = self._reading.word(value)
            if value is not None and said is not None:
                self._put(word, bare(said), value.span)
        sysctls = self._get("sysctls")
        if sysctls is not None:
            named = ((name, one.text or "", span) for name, span, one in sysctls.values())
            self._list("sysctl", ((pair(name, said), span) for name, said, span in named))

    # --- files ---

    def _volumes(self) -> None:
        mounts: dict[str, tuple[str, Span]] = {}
        value = self._get("volumes")
        if value is not None and value.items is None:
            self._reading.shape(value, "a list of volumes")
        for one in (value.items or ()) if value else ():
            found = self._reading.mounted(one)
            if found is not None:
                written = self._mount(found)
                if written:
                    mounts[found.target] = (written, found.span)
        tmpfs = self._get("tmpfs")
        for one in self._reading.texts(tmpfs):
            self._lost(one.span, "tmpfs", "what is written there stays until the run ends")
        files: list[tuple[str, Span]] = []
        for source, target, span in self._given("configs", "/"):
            files.append((pair(source, target), span))
        for source, target, span in self._given("secrets", "/run/secrets/"):
            mounts[target] = (pair(source, f"{target}:ro"), span)
        self._list("files", files)
        self._list("mount", mounts.values())

    def _mount(self, found: Mounted) -> str:
        """Of what is bound. A volume with a name is the instance's own folder, which stays as long
        as the run; so nobody else can have it."""
        if found.kind == "volume" and found.source:
            self._named_volume(found)
        elif found.kind == "tmpfs":
            self._lost(found.span, "tmpfs", "what is written there stays until the run ends")
        elif found.kind == "bind" and found.source.startswith("~"):
            self._wrong(found.span, found.source[:60], "write a path from the file's folder")
        elif found.kind == "bind" and found.source.endswith(_SOCKETS):
            why = "no container engine takes part in a run"
            self._wrong(found.span, "the socket of a container engine", why)
        elif found.kind == "bind":
            source = found.source
            if not source.startswith("/"):
                source = self._project.path(source, found.span)
            return pair(source, found.target + (":ro" if found.read_only else ""))
        return ""

    def _named_volume(self, found: Mounted) -> None:
        known = self._shared.top["volumes"]
        if found.source not in known:
            message = f"there is no volume '{found.source[:40]}'"
            hint = did_you_mean(found.source, list(known)) or f"volumes: {{{found.source[:40]}: }}"
            self._sink.error("TS0505", found.span, message, hint)
            return
        place, volume = known[found.source]
        for name in ("external", "driver_opts"):
            said = volume.get(name)
            if said is not None and (name != "external" or self._reading.flag(said)):
                what = f"the volume {found.source} ({name})"
                self._wrong(place, what, "bind a folder: - ./data:/data")
                return
        user = self._shared.volumes.setdefault(found.source, self._name)
        if user != self._name:
            what = f"the volume {found.source}, which {user} has, too,"
            self._wrong(found.span, what, _SHARED_HINT)
        elif self._replicas > 1:
            what = f"the volume {found.source}, which all replicas have,"
            self._wrong(found.span, what, _SHARED_HINT)

    def _given(self, kind: str, folder: str) -> Iterator[tuple[str, str, Span]]:
        """Source, place and span of each of its configs or secrets."""
        value = self._get(kind)
        if value is not None and value.items is None:
            self._reading.shape(value, f"a list of {kind}")
        for one in (value.items or ()) if value else ():
            fields = {"source": one}
            if one.text is None:
                known = ("source", "target", "uid", "gid", "mode")
                fields = self._reading.entries(one, known, kind)
            name = self._reading.word(fields.get("source")) or ""
            target = self._reading.word(fields.get("target")) or name
            for extra in ("uid", "gid", "mode"):
                if extra in fields:
                    self._lost(fields[extra].span, extra, "a file is its owner's on this machine")
            source = self._source(kind, name, one.span)
            if source:
                yield source, target if target.startswith("/") else folder + target, one.span

    def _source(self, kind: str, name: str, span: Span) -> str | None:
        known = self._shared.top[kind]
        what = kind.removesuffix("s")
        if name not in known:
            hint = did_you_mean(name, list(known))
            self._sink.error("TS0505", span, f"there is no {what} '{name[:40]}'", hint)
            return None
        place, value = known[name]
        file = value.get("file")
        if file is None or not file.text:
            self._wrong(place, f"a {what} without a file", "write it to a file: file: ./NAME")
            return None
        return self._project.inner_path(file.text, file.span, "file")

    # --- start and end ---

    def _check(self) -> None:
        value = self._get("healthcheck")
        fields = self._reading.entries(value, compose_fields.CHECK, "healthcheck")
        test = fields.get("test")
        if self._reading.flag(fields.get("disable")) or (test is not None and _is_none(test)):
            assert value is not None
            self._put("ready", "none", value.span)
            return
        times = [
            self._reading.time_ns(fields.get(name), default)
            for name, default in zip(("interval", "timeout"), _CHECK[:2], strict=True)
        ]
        start = self._reading.time_ns(fields.get("start_period"), _CHECK[3])
        said = self._reading.word(fields.get("retries")) or str(_CHECK[2])
        retries = (int(said) if said.isdecimal() and len(said) < 6 else 0) or _CHECK[2]
        if test is not None and (line := self._test(test)):
            self._put("ready", text(line), test.span)
        if value is not None:
            longest = start + retries * sum(times)
            self._put("ready-timeout", quantities.time(max(longest, SECOND)), value.span)

    def _test(self, test: Value) -> str:
        """The command line of a check."""
        if test.text is not None:
            return shlex.join(("/bin/sh", "-c", test.text))
        words = [one.text or "" for one in self._reading.texts(test)]
        match words[:1]:
            case ["CMD"]:
                return shlex.join(words[1:])
            case ["CMD-SHELL"]:
                return shlex.join(("/bin/sh", "-c", " ".join(words[1:])))
        hint = 'such as ["CMD", "pg_isready"] or ["CMD-SHELL", "curl -f http://localhost"]'
        self._sink.error("TS0501", test.span, "a test begins with CMD, CMD-SHELL or NONE", hint)
        return ""

    def _settings(self) -> None:
        """Who starts after whom, and what a wait for this one needs."""
        waits = self._shared.after.get(self._name, {})
        self._list("after", ((how, span) for how, span in waits.values()))
        if self._name in self._shared.awaited and self._get("healthcheck") is None:
            self._put("ready", "none", self._shared.awaited[self._name])

    def _names(self) -> None:
        host = self._get("hostname")
        if host is not None and host.text != f"{self._name}-0":
            why = f"the host name is {self._name}-0; others find it by this name, too"
            self._lost(host.span, "hostname", why)
        names = self._shared.aliases.get(self._name, {})
        own = (f"{self._name}.0", f"{self._name}-0") if self._replicas == 1 else ()
        self._list("alias", (one for one in sorted(names.items()) if one[0] not in own))
        extra = self._get("extra_hosts")
        if extra is not None:
            why = "nothing outside of the experiment can be reached"
            self._lost(self._fields["extra_hosts"][0], "extra_hosts", why)

    def _end(self) -> None:
        signal, grace = self._get("stop_signal"), self._get("stop_grace_period")
        if signal is not None and signal.text:
            self._put("stop", bare(f"SIG{signal.text.removeprefix('SIG')}"), signal.span)
        if grace is not None:
            ns = self._reading.time_ns(grace, 10 * SECOND)
            self._put("grace", quantities.time(max(ns, 1)), grace.span)

    def _restart(self) -> None:
        found = self._get("restart")
        policy = self._deploy().get("restart_policy")
        condition = policy.get("condition") if policy else None
        if policy is not None and (condition is None or condition.text != "none"):
            found = policy
        if found is not None and found.text not in _NO_RESTART:
            why = "a program that ends by itself is not started again; expect=run makes that fail"
            self._lost(found.span, "restart", why)


def _values(
    there: env_files.Variables, before: Mapping[str, tuple[str, Span]]
) -> Callable[[str], str | None]:
    """Of a file of variables, and of those before it."""

    def value(name: str) -> str | None:
        return there[name][1] if name in there else before.get(name, (None,))[0]

    return value


def _is_none(test: Value) -> bool:
    first = test.items[0].text if test.items else None
    return first == "NONE"
