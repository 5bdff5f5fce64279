"""Names of hosts that would stand for two of them: `alias=`, and what is declared as `localhost`.

Resolvers take the first line of /etc/hosts that has a name, in capitals or not, and an address for
what it says. Several services may have the same alias, which then is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from compiler.declare.declared import Declared
from compiler.plan.parts.host_names import LOOPBACK, own_names
from compiler.plan.types import Node, Topology
from tdl import ast
from tdl.diagnostics import Sink

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
_LOOPBACK = "the name of the loopback address"
_OF_LOOPBACK = {name for _, names in LOOPBACK for name in names}


class _Owner(NamedTuple):
    name: str
    what: str
    service: int  # whose instances it stands for, each of them; -1: another thing


def check(declared: Declared, topology: Topology, sink: Sink) -> None:
    """`topology` has all instances and their interfaces."""
    bridges = [bridge.name for bridge in declared.bridges.values()]
    for name in (*(service.name for service in declared.services.values()), *bridges):
        if name.text.lower() in _OF_LOOPBACK:
            sink.error("TS0139", name.span, f"{name.text!r} is {_LOOPBACK}", "take another name")
    if any(service.aliases for service in declared.services.values()):
        owners = _owners(topology)
        for number, statement in enumerate(declared.services.values()):
            for alias in statement.aliases:
                _check(alias, number, owners, sink)


def _check(alias: ast.Name, service: int, owners: Mapping[str, _Owner], sink: Sink) -> None:
    if _is_address(alias.text):
        hint = "an alias is a further name of a host, such as db.internal"
        sink.error("TS0139", alias.span, f"{alias.text!r} is an address and no name", hint)
        return
    owner = owners.get(alias.text.lower())
    if owner is None or (owner.service == service and owner.name != alias.text):
        return
    hint = "an alias is a further name of a host: take one that nobody has"
    if owner.service == service:
        hint = "leave it out: it has this name without it"
    sink.error("TS0139", alias.span, f"{alias.text!r} is {owner.what} already", hint)


def _is_address(name: str) -> bool:
    """Whether resolvers take it for one, as `10.1` and `0x7f000001` (inet_aton(3), which is not
    asked: a compiler has no sockets, and what it says does not depend on the C library)."""
    parts = name.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return False
    *first, last = map(_number, parts)
    return all(one < 256 for one in first) and last < 256 ** (5 - len(parts))


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part, 16)
    return int(part, 8 if part[0] == "0" else 10)


def _owners(topology: Topology) -> dict[str, _Owner]:
    """By name in small letters."""
    found = [_Owner(name, _LOOPBACK, -1) for name in _OF_LOOPBACK]
    for node, (own, *hosts) in own_names(topology):
        service = node.service if _is_alone(topology, node) else -1
        found.append(_Owner(own, f"the name of {_kind(node)}", service))
        found += [_Owner(host, f"the host name of {own}", service) for host in hosts]
    for number, one in enumerate(topology.services):
        found.append(_Owner(one.name, "the name of a service", number))
    return {one.name.lower(): one for one in found}


def _is_alone(topology: Topology, node: Node) -> bool:
    return node.is_instance and topology.services[node.service].replicas == 1


def _kind(node: Node) -> str:
    if node.is_instance:
        return "an instance"
    return "a bridge" if node.service < 0 else "an interface"
