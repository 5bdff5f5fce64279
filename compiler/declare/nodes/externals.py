"""Real machines behind network cards (`external`): what must hold of them, TS0722 to TS0725.

An external is a service without a program, of one instance, whose node leads to the addresses
behind its card. Input: the declarations and a statement's targets. Source: docs/nodes.md.
"""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network
from typing import TYPE_CHECKING

from compiler.plan.types import PlannedExternal
from tdl import ast
from tdl.diagnostics import Sink

if TYPE_CHECKING:
    from compiler.declare.declared import Declared
    from compiler.declare.selectors import Selection
    from compiler.declare.topology import Layout

# What the plan gives addresses of, and ways to the outside (docs/tdl.md, docs/nodes.md).
_TAKEN = {
    IPv4Network("10.77.0.0/16"): "the experiment's own addresses",
    IPv4Network("10.78.0.0/15"): "those of `addresses auto`",
    IPv4Network("10.76.0.0/24"): "those of gateways",
}
_OF_PROGRAMS = (ast.Join, ast.Leave, ast.Crash, ast.Kill, ast.Restart, ast.Churn, ast.Pause,
                ast.SetClock, ast.SetDisk)  # fmt: skip

_OTHER_VERBS: dict[type, str] = {
    ast.SetClock: "set the clock of",
    ast.SetDisk: "set the disk of",
}


def planned_external(statement: ast.ServiceStatement) -> PlannedExternal | None:
    said = statement.external
    if said is None:
        return None
    file, line = statement.span.place
    return PlannedExternal(said.card, said.behind, said.own, said.gateway, file, line)


def check(declared: Declared, sink: Sink) -> None:
    cards: dict[str, str] = {}
    networks: dict[IPv4Network, str] = {}
    for name, statement in declared.services.items():
        said = statement.external
        if said is None or not said.card or not said.behind:
            continue
        other = cards.setdefault(said.card, name)
        if other != name:
            message = f"{said.card} is the card of {other!r}, too"
            hint = "one card is one end: write a prefix= that has the addresses of both"
            sink.error("TS0723", statement.span, message, hint)
        _addresses(name, statement, said, networks, sink)
        _links(declared, name, sink)


def _addresses(
    name: str,
    statement: ast.ServiceStatement,
    said: ast.External,
    networks: dict[IPv4Network, str],
    sink: Sink,
) -> None:
    behind = IPv4Network(said.behind)
    own = [IPv4Interface(said.own).network] if said.own else []
    for network in (behind, *own):
        whose = [what for taken, what in _TAKEN.items() if network.overlaps(taken)]
        if whose:
            message = f"{network} overlaps with {whose[0]}"
            hint = f"machines outside have others than {', '.join(map(str, _TAKEN))}"
            sink.error("TS0722", statement.span, message, hint)
            return
    other = networks.setdefault(behind, name)
    if other != name:
        message = f"{said.behind} is behind {other!r}, too"
        sink.error("TS0722", statement.span, message, "of two the longer prefix leads to a machine")


def _links(declared: Declared, name: str, sink: Sink) -> None:
    from compiler.declare.nodes.frames import carries_frames

    for link in declared.links_at(name):
        if carries_frames(declared, link):
            message = f"{name!r} is sent packets by the plan's routes, and this link carries frames"
            hint = "link it to a bridge or a service, and that to the router by another interface"
            sink.error("TS0725", link.span, message, hint)


def refuse_programs(statement: ast.Dynamic, chosen: Selection, layout: Layout, sink: Sink) -> None:
    """What needs a process or ends one: a machine outside has its own power switch."""
    if not isinstance(statement.action, (*_OF_PROGRAMS, ast.Resume)):
        return
    services = {*chosen.services, *(layout.topology.nodes[one].service for one in chosen.instances)}
    for number in sorted(services):
        service = layout.topology.services[number]
        if service.external is not None:
            verb = _OTHER_VERBS.get(type(statement.action), type(statement.action).__name__.lower())
            message = f"{service.name!r} is a machine outside, which the run cannot {verb}"
            hint = f"name others, or write `{service.name} disconnect`: that takes its links down"
            sink.error("TS0724", statement.span, message, hint)
            return
