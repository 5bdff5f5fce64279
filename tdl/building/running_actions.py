"""Builds what services say about how their instances run: user, files, readiness, the end.

Paths, files and programs are looked at by nobody here: the compiler reads files, the run the rest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tdl import ast, values
from tdl.building.builder import Builder, WrittenProperty, shown
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import EXPECTATIONS, FILE_SYSTEMS, SIGNALS

_WORD = r"[A-Za-z_][A-Za-z0-9_.-]*"
_USER = re.compile(rf"(?:{_WORD}\$?|[0-9]{{1,10}})(?::(?:{_WORD}|[0-9]{{1,10}}))?", re.ASCII)
# What an instance has of its own (namespaces(7)); any other would change the whole machine.
_SYSCTL = re.compile(
    r"(?:net\.[A-Za-z0-9_./-]+|kernel\.(?:shm[a-z_]+|msg[a-z_]+|sem)|fs\.mqueue\.[a-z_]+)", re.ASCII
)
MAX_USER = 2**32 - 2  # the last number stands for none
# What a service starts after: another one is ready, its program is started, or has ended with 0.
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
_AFTER = re.compile(rf"{_NAME}(?:\.[0-9]{{1,9}})?(?:\.{_NAME})?(?::start|:exit)?", re.ASCII)
_ALIAS = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?", re.ASCII)
_PUBLISHED = re.compile(r"(?:[1-9][0-9]{0,4}:)?[1-9][0-9]{0,4}", re.ASCII)  # LOCAL:PORT
_TEXTS = ("WORD", "STRING")
_PROTOCOLS = re.compile(r"(?:tcp|udp|http|https|exec|cmd):\S*", re.ASCII)
READY_NONE, READY_TCP = "none", "tcp:"


class RunningActions(Builder):
    """The properties, by name; StaticActions has the rule."""

    def running(self, found: Mapping[str, WrittenProperty]) -> dict[str, Any]:
        """Fields of ast.ServiceStatement, of those properties that are there."""
        makers: dict[str, tuple[str, Callable[[WrittenProperty], Any]]] = {
            "user": ("user", self._user),
            "cwd": ("cwd", self._cwd),
            "files": ("files", self._files),
            "mount": ("mounts", self._mounts),
            "fs": ("fs", lambda prop: self._one_of(prop, FILE_SYSTEMS)),
            "sysctl": ("sysctls", self._sysctls),
            "setup": ("setup", self.command_line),
            "ready": ("ready", self._ready),
            "ready-timeout": ("ready_timeout_ns", self._span_of_time),
            "stop": ("stop", self._signal),
            "grace": ("grace_ns", self._span_of_time),
            "expect": ("expect", lambda prop: self._one_of(prop, EXPECTATIONS)),
            "keep": ("keep", lambda prop: self._one_of(prop, ("yes", "no")) != "no"),
        }
        return {field: make(found[word]) for word, (field, make) in makers.items() if word in found}

    def other_words(self, found: Mapping[str, WrittenProperty]) -> Iterator[tuple[ast.Name, str]]:
        """after=, alias= and publish=, which plans carry as options: canonical lists."""
        for word, code, pattern, such_as in (
            ("after", "TS0139", _AFTER, "db, db:start or db:exit"),
            ("alias", "TS0139", _ALIAS, "database;db.internal"),
            ("publish", "TS0726", _PUBLISHED, "80, or 8080:80 with the port of this machine first"),
        ):
            prop = found.get(word)
            items: dict[str, None] = {}
            for token in [] if prop is None else prop.values:
                text = self.text(token) if token.type in _TEXTS else ""
                if prop is None or prop.array or not pattern.fullmatch(text):
                    self.error(code, token.span, f"{shown(token)} is not for {word}=", such_as)
                items[text] = None
            if prop is not None:
                yield ast.Name(word, prop.name_span), ";".join(items)

    def aliases(self, prop: WrittenProperty | None) -> tuple[ast.Name, ...]:
        """Each once, with its place. What is none is reported (other_words)."""
        said = [token for token in (prop.values if prop else ()) if token.type in _TEXTS]
        found: dict[str, ast.Name] = {}
        for text, token in ((self.text(token), token) for token in said):
            found.setdefault(text, ast.Name(text, token.span))
        return tuple(found.values())

    def command_line(self, prop: WrittenProperty) -> str:
        """The text of `exec=` and its like, which a shell could split into words."""
        token = self.single(prop, _TEXTS, 'a command line such as "redis-server"')
        return "" if token is None else self.split(token)

    def split(self, token: Token) -> str:
        line = self.text(token)
        try:
            words = shlex.split(line)
        except ValueError:
            self.error("TS0111", token.span, "a quote inside this command line is not closed")
            return line
        if not words:
            self.error("TS0111", token.span, "this command line is empty")
        return line

    # --- one value ---

    def _user(self, prop: WrittenProperty) -> str:
        token = self.single(prop, _TEXTS, "a name or number such as postgres or 1000:1000")
        user = "" if token is None else self.text(token)
        numbers = [part for part in user.split(":") if part.isdecimal()]
        possible = _USER.fullmatch(user) and all(int(n[:11]) <= MAX_USER for n in numbers)
        if token is not None and not possible:
            hint = "a name or a number, and a group after ':', such as postgres or 1000:1000"
            self.error("TS0124", token.span, f"{shown(token)} is not a user", hint)
        return user

    def _cwd(self, prop: WrittenProperty) -> str:
        token = self.single(prop, _TEXTS, "a folder such as /srv/data")
        path = "" if token is None else self.text(token)
        if token is not None and not path.startswith("/"):
            hint = f"write /{path.lstrip('./')}; without cwd= it is the instance's own folder"
            self.error("TS0125", token.span, f"{shown(token)} is not an absolute path", hint)
        elif token is not None and not _plain(path):
            self.error("TS0125", token.span, f"{shown(token)} has . or .. in it", "leave it out")
        return _trimmed(path)

    def _span_of_time(self, prop: WrittenProperty) -> int:
        length = self.measure(prop, values.time, "a time such as 30s", 1)
        if length < 1:
            self.error("TS0113", prop.span, f"{prop.key_name} must be greater than zero")
        return length

    def _one_of(self, prop: WrittenProperty, words: tuple[str, ...]) -> str:
        token = self.single(prop, ("NAME",), " or ".join(words))
        if token is not None and token.text not in words:
            hint = did_you_mean(token.text, words) or f"{prop.key_name} is {' or '.join(words)}"
            message = f"{prop.key_name} has no value '{token.text}'"
            self.error("TS0130", token.span, message, hint)
        return words[0] if token is None else token.text

    def _signal(self, prop: WrittenProperty) -> str:
        token = self.single(prop, ("NAME",), "a signal such as SIGINT")
        if token is not None and token.text not in SIGNALS:
            hint = did_you_mean("SIG" + token.text.upper().removeprefix("SIG"), SIGNALS)
            hint = hint or "one of " + ", ".join(SIGNALS)
            self.error("TS0129", token.span, f"unknown signal '{token.text}'", hint)
        return SIGNALS[0] if token is None else token.text

    def _ready(self, prop: WrittenProperty) -> str:
        token = self.single(prop, _TEXTS, "tcp:PORT, none or a command line")
        if token is None:
            return READY_NONE
        line = self.text(token)
        if not _PROTOCOLS.fullmatch(line):
            return self.split(token)
        port = line.removeprefix(READY_TCP)
        if not line.startswith(READY_TCP) or not port.isdecimal():
            hint = 'write tcp:5432 to connect to a port, or a command: ready="curl -sf localhost"'
            self.error("TS0128", token.span, f"{shown(token)} is no readiness check", hint)
        elif not 1 <= int(port[:6]) <= 65535:
            self.error("TS0114", token.span, f"there is no port {port}")
        return line

    # --- lists ---

    def _items(self, prop: WrittenProperty, such_as: str) -> Iterator[tuple[Token, str, str]]:
        """Each item: its token, what stands before the first colon, and after it."""
        for token in prop.values:
            if prop.array or token.type not in (*_TEXTS, "ENVITEM"):
                message = f"{prop.key_name} takes {such_as}, not {shown(token)}"
                self.error("TS0015", token.span, message, f"such as {prop.key_name}={such_as}")
                continue
            text = token.text if token.type == "ENVITEM" else self.text(token)
            before, _, after = text.partition(":")
            if token.type == "ENVITEM":
                after = self.text(token.within("STRING", len(before) + 1))
            yield token, before, after

    def _files(self, prop: WrittenProperty) -> tuple[ast.FileItem, ...]:
        found: list[ast.FileItem] = []
        for token, source, target in self._items(prop, "conf/;writer.py"):
            if not source.strip("./") or "\0" in source:
                hint = "such as files=conf/;writer.py or files=my.conf:etc/app.conf"
                self.error("TS0125", token.span, f"{shown(token)} names no file", hint)
            elif target and not _plain(target):
                hint = "write where it is to be, without '.' and '..'"
                self.error("TS0125", token.span, f"{target!r} is not a place for a file", hint)
            if any((item.source, item.target) == (source, target) for item in found):
                self.sink.warning("TS0907", token.span, f"{shown(token)} stands here twice")
                continue
            found.append(ast.FileItem(source, target, token.span))
        return tuple(found)

    def _mounts(self, prop: WrittenProperty) -> tuple[ast.MountItem, ...]:
        found: dict[str, ast.MountItem] = {}
        for token, source, rest in self._items(prop, "/srv/data:/data:ro"):
            target, _, mode = rest.partition(":")
            hint = "a mount is HOST:PATH or HOST:PATH:ro, such as /srv/data:/data:ro"
            if not source or mode not in ("", "ro", "rw"):
                self.error("TS0127", token.span, f"{shown(token)} is not a mount", hint)
            elif not (target.startswith("/") and _plain(target)):
                message = f"{shown(token)} does not say where in the instance: an absolute path"
                self.error("TS0127", token.span, message, hint)
            elif _trimmed(target) == "/":
                hint = "fs=private gives each instance the machine's files, with changes its own"
                self.error("TS0127", token.span, "nothing can be mounted on /", hint)
            target = _trimmed(target)
            if target in found:
                self.error("TS0013", token.span, f"two mounts on {target}", "keep one of them")
            found[target] = ast.MountItem(source, target, mode == "ro", token.span)
        return tuple(found.values())

    def _sysctls(self, prop: WrittenProperty) -> tuple[tuple[str, str], ...]:
        pairs: dict[str, str] = {}
        for token, written, value in self._items(prop, "net.ipv4.tcp_congestion_control:cubic"):
            key = written.replace("/", ".") if "." not in written else written
            if not value.strip() or "\n" in value:
                hint = "such as sysctl=net.ipv4.tcp_congestion_control:cubic"
                if "=" in written:
                    hint = f"write {written.replace('=', ':', 1)}"
                self.error("TS0126", token.span, f"{shown(token)} has no value", hint)
            elif not _SYSCTL.fullmatch(key) or ".." in key:
                hint = "net.*, kernel.shm*, kernel.msg*, kernel.sem and fs.mqueue.* are"
                self.error("TS0126", token.span, f"{key} is not an instance's own", hint)
            if key in pairs:
                self.error("TS0121", token.span, f"{key} is set twice")
            pairs[key] = value
        return tuple(pairs.items())


def _plain(path: str) -> bool:
    """Whether a path leads down only."""
    parts = _trimmed(path).removeprefix("/").split("/")
    return "\0" not in path and (path == "/" or not {"", ".", ".."} & set(parts))


def _trimmed(path: str) -> str:
    return path.rstrip("/") or path[:1]
