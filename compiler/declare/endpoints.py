"""Instances with an interface for each of their links: `interfaces`.

Input: a topology in which an instance is one node, whatever its links. Output: the plan's, in which
each link of such an instance after the first ends at a node of its own, which the instance owns.
Links keep their indexes and names. The model, and the walk through time, know the first form only:
events are about instances and links. Source: docs/tdl.md, "Interfaces".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.plan.types import Link, Node, Topology

_End = tuple[int, int]  # an instance, and one of its pairs of link directions


def endpoint(name: str, service: int, node: int, tags: tuple[str, ...], owner: int = -1) -> Node:
    """With the addresses that its number gives."""
    number = node + 1
    ipv4 = f"10.77.{number >> 8}.{number & 255}"
    return Node(name, service, ipv4, f"fd77:7473::{number:x}", tags, owner)


def with_interfaces(topology: Topology) -> Topology:
    wanted = [bool(service.interfaces_at[1]) for service in topology.services]
    if not any(wanted):
        return topology
    nodes = topology.nodes
    asking = [node.service >= 0 and wanted[node.service] for node in nodes]
    further: dict[int, list[int]] = {}  # of instances, their pairs of directions after the first
    met: set[int] = set()
    for pair, link in enumerate(topology.links[::2]):
        for end in (link.src, link.dst):
            if asking[end] and end in met:
                further.setdefault(end, []).append(pair)
            met.add(end)
    instances = sum(node.service >= 0 for node in nodes)
    found = list(nodes[:instances])
    node_of: dict[_End, int] = {}
    for owner in sorted(further):
        own = nodes[owner]
        for number, pair in enumerate(further[owner], 1):
            node_of[owner, pair] = len(found)
            name = f"{own.name}.eth{number}"
            found.append(endpoint(name, own.service, len(found), own.tags, owner))
    taken = {node.ipv4 for node in found}
    shift = len(found) - instances
    for bridge in nodes[instances:]:
        found.append(replace(bridge, ipv4="" if bridge.ipv4 in taken else bridge.ipv4))
    bridges = {node: node + shift for node in range(instances, len(nodes))}
    links = tuple(
        _moved(link, index // 2, node_of, bridges) for index, link in enumerate(topology.links)
    )
    mobility = tuple(
        replace(one, nodes=tuple(bridges.get(node, node) for node in one.nodes))
        for one in topology.mobility
    )
    machines = tuple(
        replace(one, bridges=tuple(bridges[node] for node in one.bridges))
        for one in topology.machines
    )
    return replace(topology, nodes=tuple(found), links=links, mobility=mobility, machines=machines)


def _moved(link: Link, pair: int, node_of: Mapping[_End, int], bridges: Mapping[int, int]) -> Link:
    src, dst = (node_of.get((end, pair), bridges.get(end, end)) for end in (link.src, link.dst))
    return replace(link, src=src, dst=dst)
