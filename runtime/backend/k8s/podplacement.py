"""On which node each instance is, and which addresses it has there: learnt from its pod.

Input: the topology of a plan and its pods. Output: a Placement whose hosts are the nodes that have
instances, in the order of their names. Networks are prefixes around the pods of a node, so that a
pod that gets another address on its node is still in one of them; what is sent to an address in
them that no instance has passes unshaped (docs/tcal.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from compiler.plan.types import Topology
from runtime.backend.k8s.pods import Pod
from runtime.coordinator.placement import NO_HOST, Placement
from runtime.errors import RunError
from runtime.options import MAX_HOSTS

MAX_NETWORKS = 32  # of one `attach` (docs/tcal.md)
SHORTEST_FIRST = {4: 24, 6: 64}  # what a node usually has of the cluster's network

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Placed:
    """`nodes` are names, in the order of the placement's hosts."""

    nodes: tuple[str, ...]
    placement: Placement


def placed(topology: Topology, pods: Mapping[str, Pod]) -> Placed:
    """`pods` by the name of their instance, for each instance of the plan. RunError if a pod cannot
    be used where it is."""
    instances = [node.name for node in topology.nodes if node.service >= 0]
    nodes = tuple(sorted({pods[name].node for name in instances}))
    if not 1 <= len(nodes) <= MAX_HOSTS:
        raise RunError(
            f"the instances are on {len(nodes)} nodes, and a run has 1 to {MAX_HOSTS}",
            "choose nodes with --nodes",
        )
    number = {name: host for host, name in enumerate(nodes)}
    hosts = [number[pods[name].node] for name in instances]
    hosts += [NO_HOST] * (len(topology.nodes) - len(instances))
    addresses = [addresses_of(pods[name]) for name in instances]
    for name, pair in zip(instances, addresses, strict=True):
        if not any(of_family(pair, topology.network)):
            raise RunError(
                f"pod {pods[name].name} has no address for `network {topology.network}`",
                "write `network dual`, which is whatever the cluster has",
            )
    return Placed(nodes, Placement(tuple(hosts), tuple(addresses), networks(addresses)))


def addresses_of(pod: Pod) -> tuple[str, str]:
    """IPv4 and IPv6, '' for the one that it has not. RunError if it has none."""
    found = {4: "", 6: ""}
    for text in pod.addresses:
        try:
            address = ip_address(text)
        except ValueError as error:
            raise RunError(f"pod {pod.name} has {text!r:.60} for an address") from error
        found[address.version] = found[address.version] or str(address)
    if not any(found.values()):
        raise RunError(f"pod {pod.name} has no address")
    return found[4], found[6]


def of_family(pair: tuple[str, str], network: str) -> tuple[str, str]:
    """The addresses that names stand for."""
    ipv4, ipv6 = pair
    return ("" if network == "ipv6" else ipv4, "" if network == "ipv4" else ipv6)


def networks(addresses: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """At most MAX_NETWORKS prefixes that all of the addresses are in, shorter ones the more the
    addresses are apart."""
    every = [ip_address(text) for pair in addresses for text in pair if text]
    families = [[one for one in every if one.version == version] for version in (4, 6)]
    used = [family for family in families if family]
    found: list[str] = []
    for family in used:
        found += _covering(family, MAX_NETWORKS // len(used))
    return tuple(found)


def _covering(addresses: list[Address], most: int) -> list[str]:
    length = SHORTEST_FIRST[addresses[0].version]
    while True:
        found = {ip_network((address, length), strict=False) for address in addresses}
        if len(found) <= most:
            return sorted(map(str, found))
        length -= 1
