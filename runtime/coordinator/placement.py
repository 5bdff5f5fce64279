"""Where the instances of a run are: on which host, and which addresses they have there.

A backend that starts instances elsewhere learns both. Where hosts are local, they follow from the
plan: instances in its order (service by service, then by index) go to hosts in turn, so every
service is spread evenly and no host has more than one instance more than another; addresses are
those that the plan states.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network

from compiler.plan.types import Topology
from runtime.errors import RunError
from runtime.options import MAX_HOSTS
from runtime.system.network.interface import IPV4_PREFIX, IPV6_PREFIX

NO_HOST = -1  # a bridge is nowhere


@dataclass(frozen=True, slots=True)
class Placement:
    """What agents are told of it. Nodes are the plan's; instances come first there."""

    hosts: tuple[int, ...]  # of each node, from 0; NO_HOST for bridges
    addresses: tuple[tuple[str, str], ...]  # of each instance, IPv4 and IPv6; '' if it has none
    networks: tuple[str, ...]  # in which all of them are; what goes there is the experiment's


def planned(topology: Topology, hosts: int) -> Placement:
    """By rule, with the plan's addresses. Raises RunError."""
    instances = [node for node in topology.nodes if node.service >= 0]
    networks = {f"{node.ipv4}/{IPV4_PREFIX}" for node in instances if node.ipv4}
    networks |= {f"{node.ipv6}/{IPV6_PREFIX}" for node in instances if node.ipv6}
    return Placement(
        place(topology, hosts),
        tuple([(node.ipv4, node.ipv6) for node in instances]),
        tuple(sorted({str(ip_network(one, strict=False)) for one in networks})),
    )


def place(topology: Topology, hosts: int) -> tuple[int, ...]:
    """The host of each node by its index, from 0; NO_HOST for bridges. Raises RunError."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise RunError(
            f"a run cannot have {hosts} hosts", f"give a whole number from 1 to {MAX_HOSTS}"
        )
    found: list[int] = []
    instances = 0
    for node in topology.nodes:
        if node.service < 0:
            found.append(NO_HOST)
        else:
            found.append(instances % hosts)
            instances += 1
    return tuple(found)
