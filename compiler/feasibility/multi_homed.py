"""Services of which every instance is at several bridges, though nothing says that this is meant.

A link of a service is made for each instance, so three links to three places put every replica
into every place, where one in each was more likely meant. A network with dual-homed servers is
written just the same; what tells them apart is an event that treats one of the links as a whole
(`a--s1`, or a tag of it): whoever fails one of two uplinks knows of the other. So does who asks for
an interface for each of them. TS0921, once a service.

TS0963: services that ask for that, and have one link or none. TS0983: routers among them.

Input: the declarations and the final number of instances. Linear in links and events.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.declare.declared import Declared
from compiler.declare.model import Model
from compiler.phrases import number
from tdl import ast
from tdl.diagnostics import Sink

_SHOWN = 3  # bridges that the message names


def warn(model: Model, sink: Sink) -> None:
    declared = model.declared
    homes: dict[str, dict[str, None]] = {}
    for link in declared.links:
        for name, bridge in _home(declared, link):
            homes.setdefault(name, {})[bridge] = None
    known = {name for name, service in declared.services.items() if service.own_interfaces}
    known.update(_known(declared))
    for name, bridges in homes.items():
        replicas = model.topology.services[model.layout.service_of[name]].replicas
        if replicas > 1 and len(bridges) > 1 and name not in known:
            _report(declared.services[name], list(bridges), replicas, sink)


def warn_of_interfaces(model: Model, sink: Sink) -> None:
    owners = {node.service for node in model.planned.nodes if node.owner >= 0}
    for service, statement in enumerate(model.declared.services.values()):
        word = statement.own_interfaces
        name = statement.name.text
        links = list(model.declared.links_at(name))
        linked = bool(links)
        # In an air a router sends on by the very device that it has heard it with.
        in_air = any(at.air for one in links if (at := model.declared.bridges.get(one.b.text)))
        forwards = statement.gateway or (statement.forwards and in_air)
        if word is None or service in owners or (forwards and linked):
            continue
        message = f"'{name}' has {'one link' if linked else 'no link'}, and eth0 in any case"
        hint = "`interfaces` is for services with several links: leave it out, or add one"
        if statement.forwards is None:
            sink.warning("TS0963", word.span, message, hint)
            continue
        message = (
            f"the router '{name}' has {'one link' if linked else 'no link'}: it forwards nothing"
        )
        sink.warning("TS0983", word.span, message, "add a link, or leave `router` out")


def _home(declared: Declared, link: ast.LinkStatement) -> Iterator[tuple[str, str]]:
    """The service and the bridge of a link between all of one and the other."""
    ends = ((link.a.text, link.a_index), (link.b.text, link.b_index))
    for (name, index), (other, _) in (ends, ends[::-1]):
        if name in declared.services and index is None and other in declared.bridges:
            yield name, other


def _known(declared: Declared) -> Iterator[str]:
    """Services of which an event names a link as a whole."""
    tags: set[str] = set()
    called: set[str] = set()
    for statement in declared.dynamics:
        selector = ast.drawn_from(statement.selector)
        if isinstance(selector, ast.LinkSelector):
            for end in (selector.a, selector.b):
                if end.index is None:
                    yield end.name.text
        elif isinstance(selector, ast.Tagged):
            tags.update(tag.text for tag in selector.tags)
        elif isinstance(selector, ast.Element):
            called.add(selector.name.text)
    for link in declared.links:
        named = link.name is not None and link.name.text in called
        if named or not tags.isdisjoint(tag.text for tag in link.tags):
            yield from (link.a.text, link.b.text)


def _report(service: ast.ServiceStatement, bridges: list[str], replicas: int, sink: Sink) -> None:
    name = service.name.text
    places = ", ".join(repr(bridge) for bridge in bridges[:_SHOWN])
    if len(bridges) > _SHOWN:
        places += f" and {number(len(bridges) - _SHOWN, 'more bridge')}"
    message = f"each of the {replicas:,} instances of {name!r} is attached to all of {places}"
    hint = f"for one place each write `link {name}.0--{bridges[0]}`, `link {name}.1--{bridges[1]}`"
    sink.warning("TS0921", service.name.span, message, hint)
