"""HOSTS.toml: which hosts are measured, and how a command is run on each.

    [hosts.paris]
    ssh = "tester@paris.example.org"    or  command = ["ip", "netns", "exec", "p"]  or  here = true
    address = "192.0.2.7"               where the others reach it; else what `ssh` has after the @
    port = 5201                         of iperf3, while a test runs

The name of a host becomes that of a service, so it is one of the language. The file may be wrong in
any way: RunError with the host and what is wrong. Nothing of it ever meets a shell unquoted.
"""

from __future__ import annotations

import fcntl
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from runtime.errors import RunError
from runtime.json_schema import ValueKind
from tdl.suggest import nearest

MAX_BYTES = 1 << 20
MOST_HOSTS = 128
DEFAULT_PORT = 5201  # iperf3's own
_MOST_PORT = 65535
KEYS = ("ssh", "command", "here", "address", "port")
_WAYS = ("ssh", "command", "here")
# A word that no program takes for an option, and that has nothing which a terminal would act on.
_WORD = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:%@/\[\]-]*", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*", re.ASCII)
# Asks nothing, and notices within 15 s that the host is gone.
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")


@dataclass(frozen=True, slots=True)
class MeasuredHost:
    """`command`: the words that run others there. Those of `ssh` end in the destination, and what
    comes after it is read by a shell there."""

    name: str
    address: str
    port: Annotated[int, ValueKind("a port", lambda value: type(value) is int)]
    command: tuple[str, ...]
    ssh: str = ""

    @property
    def how(self) -> str:
        """What a person would type before a command, to try it."""
        return f"ssh {self.ssh}" if self.ssh else " ".join(self.command)


@contextmanager
def opened(file: str) -> Iterator[tuple[MeasuredHost, ...]]:
    """The hosts of a file, which nobody else measures meanwhile: two measurements at once would
    measure each other. RunError."""
    try:
        with open(file, "rb") as source:  # noqa: PTH123 - a name as it was given
            text = source.read(MAX_BYTES + 1)
            try:
                fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hint = "two at once would measure each other: wait for its end"
                raise RunError(f"another tstorm measures the hosts of {file}", hint) from None
            yield read(text, file)
    except (IsADirectoryError, FileNotFoundError, PermissionError) as error:
        if error.filename != file:
            raise
        raise RunError(f"cannot read {file}: {os.strerror(error.errno or 0)}") from error


def read(data: bytes, file: str) -> tuple[MeasuredHost, ...]:
    """In the order of the file. RunError."""
    if len(data) > MAX_BYTES:
        raise RunError(f"{file} has more than {MAX_BYTES:,} bytes")
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # tomllib's error has line and column
        raise RunError(f"{file} is no TOML: {error}") from error
    hosts = found.pop("hosts", {})
    if found or not isinstance(hosts, dict):
        what = f"{next(iter(found))!r:.60} is not known" if found else "hosts is no table"
        raise RunError(f"{file}: {what}", "write a table for each host: [hosts.NAME]")
    read_hosts = tuple(_host(name, value, file) for name, value in hosts.items())
    _check_together(read_hosts, file)
    return read_hosts


def _check_together(hosts: tuple[MeasuredHost, ...], file: str) -> None:
    if not 1 < len(hosts) <= MOST_HOSTS:
        raise RunError(
            f"{file} has {len(hosts)} of the 2 to {MOST_HOSTS} hosts that can be measured",
            "write a table for each host: [hosts.NAME]",
        )
    seen: dict[str, str] = {}
    for host in hosts:
        if host.address in seen:
            other = seen[host.address]
            raise RunError(
                f"{file}: {other} and {host.name} have the address {host.address}",
                "tests of two hosts at one address would measure each other",
            )
        seen[host.address] = host.name


def check_next_ports(hosts: tuple[MeasuredHost, ...], file: str) -> None:
    """A host that sends to two others at once listens on its port and on the next one. RunError."""
    for host in hosts:
        if host.port == _MOST_PORT:
            what = f"{file}: host {host.name!r:.60} has the last port, and --bottlenecks takes two"
            raise RunError(what, f"give it a port below {_MOST_PORT}")


def _host(name: str, value: Any, file: str) -> MeasuredHost:
    place = f"{file}: host {name!r:.60}"
    if not isinstance(value, dict):
        raise RunError(f"{place} is no table", f"write [hosts.{name}]")
    for key in value:
        if key not in KEYS:
            near = nearest(key, KEYS)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(KEYS)}"
            raise RunError(f"{place} has {key!r:.60}, which is not known", hint)
    ways = [way for way in _WAYS if way in value]
    if len(ways) != 1:
        said = " and ".join(ways) or f"none of {', '.join(_WAYS)}"
        hint = 'ssh = "user@host", command = ["ip", "netns", "exec", "a"] or here = true'
        raise RunError(f"{place} has {said}: say one way to run commands there", hint)
    command, ssh = _way(value, ways[0], place)
    address = _text(value, "address", place) if "address" in value else _after_at(ssh)
    if not _ADDRESS.fullmatch(address):
        what = f"the address {address!r:.60}" if address else "no address"
        hint = 'say where the others reach it: address = "192.0.2.7"'
        raise RunError(f"{place} has {what}", hint)
    return MeasuredHost(name, address, _port(value, place), command, ssh)


def _way(value: Mapping[str, Any], way: str, place: str) -> tuple[tuple[str, ...], str]:
    if way == "ssh":
        ssh = _text(value, "ssh", place)
        if not _WORD.fullmatch(ssh):
            hint = 'write it like "user@host", and what else ssh needs into ~/.ssh/config'
            raise RunError(f"{place} has {ssh!r:.60} for ssh, which is no destination", hint)
        return (*_SSH, *_ALIVE, "--", ssh), ssh
    if way == "here":
        if value["here"] is not True:
            raise RunError(f"{place} has a `here` that is not true", "leave it out, or write true")
        return (), ""
    words = value["command"]
    is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
    if not is_list or not words or not words[0] or any("\0" in word for word in words):
        hint = 'such as ["ip", "netns", "exec", "a"]'
        raise RunError(f"{place} has a command that is no list of words", hint)
    return tuple(words), ""


def _after_at(ssh: str) -> str:
    """`host` of `user@host` and of `ssh://user@host:22`."""
    return re.sub(r"^ssh://|:\d+$", "", ssh).rpartition("@")[2].strip("[]")


def _text(value: Mapping[str, Any], key: str, place: str) -> str:
    found = value[key]
    if not isinstance(found, str):
        raise RunError(f"{place}: {key} must be a text", f'{key} = "…"')
    return found


def _port(value: Mapping[str, Any], place: str) -> int:
    port = value.get("port", DEFAULT_PORT)
    if type(port) is not int or not 0 < port <= _MOST_PORT:
        raise RunError(f"{place}: port must be a number from 1 to {_MOST_PORT}, not {port!r:.60}")
    return port
