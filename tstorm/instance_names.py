"""Names of instances on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.plan.types import Node, Service


def one_instance(services: Sequence[Service], nodes: Sequence[Node], name: str, option: str) -> int:
    """The node that `name` stands for: an instance, a further interface of one, or a service that
    has just one.

    Anything else is a wrong use of `option`, with what was probably meant.
    """
    first = 0
    for service in services:
        if name == service.name and service.replicas == 1:
            return first
        if name == service.name:
            raise click.BadParameter(_how_many(service), param_hint=f"'{option}'")
        first += service.replicas
    for index in range(first):
        if nodes[index].name == name:
            return index
    for index in range(first, len(nodes)):
        if nodes[index].name == name and nodes[index].service >= 0:
            return index
    if any(node.name == name for node in nodes[first:]):
        message = f"'{name}' is a bridge; paths lead from instance to instance."
        raise click.BadParameter(message, param_hint=f"'{option}'")
    known = [service.name for service in services] + [node.name for node in nodes[:first]]
    raise unknown(name, known, option)


def stands_for(name: str, instance: str) -> bool:
    """Whether it is the instance, its service, or of one in a machine (`sat.3.app.1`) the machine,
    all machines of the node, or the part of each."""
    service, _, index = instance.rpartition(".")
    node, _, inside = service.partition(".")
    machine, _, part = inside.partition(".")
    of_nodes = (node, f"{node}.{machine}", f"{node}.{part}", f"{node}.{part}.{index}")
    return name in (instance, service, *(of_nodes if part else ()))


def unknown(name: str, known: Iterable[str], option: str) -> click.BadParameter:
    """That `name` is neither a service nor an instance, and which of `known` may be meant."""
    from tdl.suggest import did_you_mean

    hint = did_you_mean(name, known)
    said = f" {hint[0].upper()}{hint[1:]}" if hint else ""
    return click.BadParameter(f"no service or instance '{name}'.{said}", param_hint=f"'{option}'")


def _how_many(service: Service) -> str:
    if not service.replicas:
        return f"service '{service.name}' has no instances."
    return (
        f"service '{service.name}' has {service.replicas:,} instances; "
        f"name one of them, such as '{service.name}.0'."
    )
