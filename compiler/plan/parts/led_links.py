"""Links that programs ask for (`mobility … allocate=program`): which they are, and whose programs.

A plan has such a link up while its nodes reach each other; whether it is used a run decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.plan.types import Topology, owner_of


def led_links(topology: Topology) -> Mapping[int, tuple[int, int]]:
    """Each direction, with the nodes that move at its ends."""
    led = {node for one in topology.mobility if one.transceivers for node in one.nodes}
    found = {
        number: (owner_of(topology.nodes, link.src), owner_of(topology.nodes, link.dst))
        for number, link in enumerate(topology.links if led else ())
    }
    return {number: ends for number, ends in found.items() if led.issuperset(ends)}


def askers(topology: Topology) -> Mapping[int, tuple[str, tuple[int, ...]]]:
    """By node that moves: what programs call it, and the instances whose programs ask: those of its
    machine, or itself."""
    machines = {
        member: (one.name, one.members) for one in topology.machines for member in one.members
    }
    return {
        node: machines.get(node, (topology.nodes[node].name, (node,)))
        for one in topology.mobility
        if one.transceivers
        for node in one.nodes
    }
