"""Services to and from the JSON of topology.json, and what must hold of each of them.

Field names and ranges are those of docs/plan.md. PlanError at the first value out of its range.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from compiler.plan import types
from compiler.plan.format import MAX_NODES, Place

FILE_MODES = (0o644, 0o755)
# Sysctls that a network or IPC namespace has of its own (namespaces(7)): others would change the
# machine.
SYSCTL = re.compile(
    r"(?:net\.[A-Za-z0-9_./-]+|kernel\.(?:shm[a-z_]+|msg[a-z_]+|sem)|fs\.mqueue\.[a-z_]+)", re.ASCII
)
USER = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_.-]*\$?|[0-9]{1,10})(?::(?:[A-Za-z_][A-Za-z0-9_.-]*|[0-9]{1,10}))?",
    re.ASCII,
)
SIGNALS = ("SIGABRT", "SIGALRM", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGPWR", "SIGQUIT",
           "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH")  # fmt: skip
CARD = re.compile(r"[^\s/:%]{1,15}", re.ASCII)
PUBLISHED = re.compile(r"(?:[1-9][0-9]{0,4}:)?[1-9][0-9]{0,4}", re.ASCII)  # LOCAL:PORT
MAX_USER = 2**32 - 2  # the last number stands for none
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

_PLAIN = ("cpu_millis", "cwd", "expect", "fs", "grace_ns", "image", "mem_bytes", "name")
_PLAIN_TOO = ("ready_timeout_ns", "replicas", "stop", "user")
_LISTS = ("command", "entrypoint", "exec", "ready", "setup", "tags")
_PAIRS = ("env", "options", "sysctls")
_OTHERS = ("external", "files", "gateway", "interfaces_at", "keep", "mounts", "ports", "router")
_FIELDS = tuple(sorted((*_PLAIN, *_PLAIN_TOO, *_LISTS, *_PAIRS, *_OTHERS)))
_NOWHERE = ["", 0]  # for `interfaces_at`, which stands there only where something says so


def service_to_json(service: types.Service) -> dict[str, object]:
    said: dict[str, object] = {}
    if service.interfaces_at[1]:
        said["interfaces_at"] = list(service.interfaces_at)
    if service.router:
        said["router"] = 1
    if service.gateway:
        said["gateway"] = 1
    if service.external is not None:
        said["external"] = list(astuple(service.external))
    return {
        **said,
        **{name: getattr(service, name) for name in (*_PLAIN, *_PLAIN_TOO)},
        **{name: list(getattr(service, name)) for name in _LISTS},
        **{name: [list(pair) for pair in getattr(service, name)] for name in _PAIRS},
        "files": [[file.path, file.mode, file.digest] for file in service.files],
        "keep": int(service.keep),
        "ports": list(service.ports),
        "mounts": [[each.source, each.target, int(each.read_only)] for each in service.mounts],
    }


def service_from_json(value: Any, outer: Place, index: int) -> types.Service:
    place = Place(outer.file, outer.line, f"service {index}")
    if type(value) is dict:
        value = {"interfaces_at": _NOWHERE, "router": 0, "gateway": 0, "external": None, **value}
    found = dict(zip(_FIELDS, place.fields(value, *_FIELDS), strict=True))
    fields: dict[str, Any] = {name: place.texts(found[name], name) for name in _LISTS}
    fields |= {name: _pairs(found[name], name, place) for name in _PAIRS}
    for name in ("cpu_millis", "mem_bytes", "grace_ns", "ready_timeout_ns"):
        fields[name] = place.integer(found[name], name)
    for name in ("cwd", "image", "name", "stop", "user"):
        fields[name] = place.text(found[name], name)
    ports = place.items(found["ports"])
    fields["ports"] = tuple(place.integer(port, "port", 1, 65_535) for port in ports)
    fields["replicas"] = place.integer(found["replicas"], "replicas", 0, MAX_NODES)
    fields["expect"] = place.word(found["expect"], "expect", ("", *types.EXPECTATIONS))
    fields["fs"] = place.word(found["fs"], "fs", ("", types.PRIVATE))
    fields["keep"] = place.integer(found["keep"], "keep", 0, 1) == 1
    fields["files"] = tuple(_file(item, place) for item in place.items(found["files"]))
    fields["mounts"] = tuple(_mount(item, place) for item in place.items(found["mounts"]))
    for name in ("router", "gateway"):
        fields[name] = place.integer(found[name], name, 0, 1) == 1
    if fields["gateway"] and not fields["router"]:
        place.fail("a gateway is a router")
    fields["external"] = None if found["external"] is None else _external(found["external"], place)
    fields["interfaces_at"] = _line(found["interfaces_at"], place)
    return types.Service(**fields)


def _external(value: Any, place: Place) -> types.PlannedExternal:
    *words, line = place.items(value, 6)
    card, behind, own, gateway, file = (place.text(word, "external") for word in words)
    line = place.integer(line, "external", 1)
    found = types.PlannedExternal(card, behind, own, gateway, file, line)
    try:
        IPv4Network(found.behind)
        IPv4Interface(found.own or "0.0.0.0/0")
        IPv4Address(found.gateway or 0)
    except ValueError:
        place.fail(f"the addresses of the external {words!r:.80} are none")
    if not CARD.fullmatch(found.card):
        place.fail(f"the card of an external, {found.card!r:.60}, is none")
    return found


def _line(value: Any, place: Place) -> tuple[str, int]:
    file, line = place.items(value, 2)
    if value is not _NOWHERE:
        place.integer(line, "interfaces_at", 1)
    return place.text(file, "interfaces_at"), line


def _pairs(value: Any, name: str, place: Place) -> tuple[tuple[str, str], ...]:
    found = []
    for item in place.items(value):
        key, word = place.items(item, 2)
        found.append((place.text(key, name), place.text(word, name)))
    return tuple(found)


def _file(value: Any, place: Place) -> types.PlanFile:
    path, mode, digest = place.items(value, 3)
    return types.PlanFile(
        place.text(path, "path of a file"),
        place.integer(mode, "mode of a file"),
        place.text(digest, "digest of a file"),
    )


def _mount(value: Any, place: Place) -> types.Mount:
    source, target, read_only = place.items(value, 3)
    return types.Mount(
        place.text(source, "source of a mount"),
        place.text(target, "target of a mount"),
        place.integer(read_only, "read_only", 0, 1) == 1,
    )


def check(service: types.Service, place: Place) -> None:
    """Raises PlanError for values that no source can have given."""
    if service.entrypoint and not service.entrypoint[0]:
        place.fail(f"the entrypoint of service {service.name} names no program")
    whose = f"of service {service.name}"
    numbers = [part for part in service.user.split(":") if part.isdecimal()]
    possible = USER.fullmatch(service.user) and all(int(n) <= MAX_USER for n in numbers)
    if service.user and not possible:
        place.fail(f"the user {whose}, {service.user!r:.60}, is none")
    if service.stop and service.stop not in SIGNALS:
        place.fail(f"the stop signal {whose}, {service.stop!r:.60}, is none")
    for key, _ in service.sysctls:
        if not SYSCTL.fullmatch(key) or ".." in key:
            place.fail(f"the sysctl {key!r:.60} {whose} is not an instance's own")
    ports = dict(service.options).get("publish")
    if ports is not None and not all(map(PUBLISHED.fullmatch, ports.split(";"))):
        place.fail(f"the published ports {whose}, {ports!r:.60}, are none")
    for path in ([service.cwd] if service.cwd else []) + [each.target for each in service.mounts]:
        if not plain_path(path) or path[0] != "/":
            place.fail(f"the path {path!r:.60} {whose} is not absolute and plain")
    _files(service.files, whose, place)


def _files(files: Sequence[types.PlanFile], whose: str, place: Place) -> None:
    last = ""
    for file in files:
        if not plain_path(file.path) or file.path <= last:
            place.fail(f"the file {file.path!r:.60} {whose} is not plain, or not in order")
        if file.mode not in FILE_MODES or not _DIGEST.fullmatch(file.digest):
            place.fail(f"the file {file.path!r:.60} {whose} has no mode or digest of a file")
        last = file.path


def plain_path(path: str) -> bool:
    """Whether a path has no part that is empty, `.` or `..`, and nothing that no path can have."""
    parts = path.removeprefix("/").split("/")
    return "\0" not in path and not {"", ".", ".."} & set(parts)
