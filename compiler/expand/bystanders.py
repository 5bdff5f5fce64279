"""Who is cut off from whom by a partition, beside its groups from each other.

Input: a topology, which of its pairs of links carry packets, which of these are cut, the groups.
Output: `CutOff`s, of instances that lose a path though they are not of two different groups.

Bridges that reach each other are one *place*, and so is each link between two instances, which
forward nothing: two instances have a path where they have a place in common. Instances with the
same places, before and after, and on the same side lose the same others; they are looked at
together. Whoever is left in one place with a bridge that a group names is meant with that group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from compiler.plan.types import Topology

MOST_KINDS = 500  # of instances in different positions, which are compared with each other

_Places = frozenset[int]
_Kind = tuple[int, _Places, _Places]  # side (-1: of no group), places before and after


@dataclass(frozen=True, slots=True)
class CutOff:
    """Instances by name; `whom` is empty where they lose each other. Without `who`: there are too
    many to be looked at."""

    who: tuple[str, ...]
    whom: tuple[str, ...] = ()


def cut_off(
    topology: Topology, usable: Sequence[int], cut: Collection[int], groups: Sequence[Sequence[int]]
) -> tuple[CutOff, ...]:
    """In the order of the topology; instances of no group first in each."""
    kinds = _kinds(topology, usable, set(cut), groups)
    if len(kinds) > MOST_KINDS:
        return (CutOff(()),)
    found: dict[_Kind, list[int]] = {}
    alone: list[_Kind] = []
    ordered = sorted(kinds, key=lambda kind: (kind[0] >= 0, kinds[kind]))
    for at, one in enumerate(ordered):
        if one[1] and not one[2] and len(kinds[one]) > 1:
            alone.append(one)
        for other in ordered[at + 1 :]:
            if _loses(one, other):
                found.setdefault(one, []).extend(kinds[other])
    names = [node.name for node in topology.nodes]
    told = [CutOff(_named(names, kinds[one])) for one in alone]
    told += [CutOff(_named(names, kinds[one]), _named(names, whom)) for one, whom in found.items()]
    return tuple(told)


def _named(names: Sequence[str], nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(names[node] for node in sorted(nodes))


def _loses(one: _Kind, other: _Kind) -> bool:
    """Not where both are of groups, and different ones: that is what the partition is for."""
    meant = one[0] >= 0 and other[0] >= 0 and one[0] != other[0]
    return not meant and not one[1].isdisjoint(other[1]) and one[2].isdisjoint(other[2])


def _kinds(
    topology: Topology, usable: Sequence[int], cut: set[int], groups: Sequence[Sequence[int]]
) -> dict[_Kind, list[int]]:
    side = {node: number for number, group in enumerate(groups) for node in group}
    whole = [i for i, carries in enumerate(usable) if carries]
    before, _ = _places(topology, whole)
    after, place_of = _places(topology, [i for i in whole if i not in cut])
    bridges = (node for node in side if topology.nodes[node].service < 0)
    meant = {place_of(bridge): side[bridge] for bridge in bridges}
    found: dict[_Kind, list[int]] = {}
    for node, places in before.items():
        left = frozenset(after.get(node, ()))
        sides = {meant[place] for place in left if place in meant}
        own = sides.pop() if len(sides) == 1 else -1
        kind = side.get(node, own), frozenset(places), left
        found.setdefault(kind, []).append(node)
    return found


def _places(
    topology: Topology, pairs: Sequence[int]
) -> tuple[dict[int, set[int]], Callable[[int], int]]:
    """The places of each instance that has one, over these pairs of links, and of a bridge."""
    nodes, links = topology.nodes, topology.links
    up = list(range(len(nodes)))

    def root(node: int) -> int:
        while up[node] != node:
            up[node] = up[up[node]]
            node = up[node]
        return node

    ends = [(pair, links[2 * pair].src, links[2 * pair].dst) for pair in pairs]
    for _, a, b in ends:
        if nodes[a].service < 0 and nodes[b].service < 0:
            up[root(a)] = root(b)
    found: dict[int, set[int]] = {}
    for pair, a, b in ends:
        for node, other in ((a, b), (b, a)):
            if nodes[node].service >= 0:
                place = ~pair if nodes[other].service >= 0 else root(other)
                found.setdefault(node, set()).add(place)
    return found, root
