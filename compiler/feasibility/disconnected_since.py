"""Since when instances that have no path to each other at the end have had none.

Input: a topology, its events, and the directions whose flap goes on at the end (they count as up).
Output: `Parting`s, each a set of sides with no path between any two of them from an instant on.

The end is looked at once (connected.py). Only if somebody is apart there, time goes
backwards: sides that somebody of both could talk across are merged, and the instant at which that
was over is since when they are apart (single linkage: it holds for every pair across). A look at
the whole network is needed only where a path may have come up, and never after everybody has been
merged who can be. Looks are bounded by `WORK`; beyond that `since_ns` is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from compiler.feasibility.connected import (
    NOWHERE,
    Components,
    Connectivity,
    Look,
    Reach,
    Toggle,
    look,
)
from compiler.plan.types import Event, Topology

WORK = 300_000  # nodes and links looked at, about 0.2 s
FEW = 64  # others to whom a single member is compared without a look at everything

Side = tuple[int, ...]  # instances, ascending


@dataclass(frozen=True, slots=True)
class Parting:
    """No pair across two of `sides` has a path each way from `since_ns` to the end."""

    sides: tuple[Side, ...]
    since_ns: int
    never: bool = False  # nor before
    bound: bool = False  # since then at least: further back was not looked


class _Sets:
    """Disjoint sets of numbers (union by size, path halving)."""

    def __init__(self, count: int) -> None:
        self._up = list(range(count))
        self._size = [1] * count

    def root(self, item: int) -> int:
        up = self._up
        while up[item] != item:
            up[item] = up[up[item]]
            item = up[item]
        return item

    def union(self, a: int, b: int) -> bool:
        a, b = self.root(a), self.root(b)
        if a == b:
            return False
        if self._size[a] < self._size[b]:
            a, b = b, a
        self._up[b] = a
        self._size[a] += self._size[b]
        return True


@dataclass(slots=True)
class _Between:
    """Instances that talk to several sides and are on none of them; and whom they do not reach."""

    members: Side
    others: Side
    since_ns: int = -1


def partings(topology: Topology, events: Sequence[Event], flapping: Iterable[int]) -> list[Parting]:
    """By time; sides by their first instance."""
    network = Connectivity(topology)
    instants: list[tuple[int, list[Toggle]]] = []
    possible = _Possible(network)
    for at_ns, group in groupby(events, key=lambda event: event.at_ns):
        toggles = [toggle for event in group if (toggle := network.apply(event))]
        instants.append((at_ns, toggles))
        possible.add(toggles)
    for link in flapping:
        network.links[link] = 1
    linked = (i for i in range(network.instances) if network.nodes[i] and network.out[i])
    found = look(network, Components(network), linked)
    sides, between = _sides(found)
    if len(sides) < 2 and not between:
        return []
    return _Past(network, instants, sides, between, possible).partings()


def _sides(found: Look) -> tuple[list[Side], list[_Between]]:
    """Who is together at the end. All members of a group are in the same position."""
    odd = [reach for reach in found.groups if not reach.simple]
    across = {
        reach
        for reach in odd
        if any(other != reach and found.joined(reach, other) for other in found.groups)
    }
    sides = [tuple(found.groups[reach]) for reach in found.groups if reach.simple]
    between: list[_Between] = []
    said: set[Reach] = set()  # of `across`: whom these do not reach is on their account
    for reach in odd:
        members = found.groups[reach]
        together = found.joined(reach, reach)
        if reach in across:
            said.add(reach)
            apart = [r for r in found.groups if r not in said and not found.joined(reach, r)]
            others = [i for r in apart for i in found.groups[r]]
            others += [] if together else members
            if len(others) > (not together and len(members) == 1):
                between.append(_Between(tuple(members), tuple(sorted(others))))
        elif together:
            sides.append(tuple(members))
        else:
            sides += [(member,) for member in members]
    return sorted(sides), between


class _Possible:
    """What could ever be joined: everything that was up at some instant, all at once."""

    def __init__(self, network: Connectivity) -> None:
        self._network = network
        self._down = {i for i, up in enumerate(network.nodes) if not up}

    def add(self, toggles: Iterable[Toggle]) -> None:
        self._down.difference_update(t.index for t in toggles if not t.link)

    def sets(self) -> _Sets:
        """Links count as up: they are, before the first event. Instances forward nothing."""
        net = self._network
        sets = _Sets(len(net.nodes))
        for a, b in net.ends[::2]:
            if min(a, b) >= net.instances and a not in self._down and b not in self._down:
                sets.union(a, b)
        return sets

    def homes(self, sets: _Sets, side: Side) -> set[int]:
        """The sets that the bridges and instances beside a side's members are in."""
        net = self._network
        around = {net.ends[link][1] for member in side for link in net.out[member]}
        return {sets.root(node) for node in around | set(side)}


class _Past:
    """Goes back from the end and merges sides."""

    def __init__(
        self,
        network: Connectivity,
        instants: list[tuple[int, list[Toggle]]],
        sides: list[Side],
        between: list[_Between],
        possible: _Possible,
    ) -> None:
        self._net, self._instants = network, instants
        self._sides, self._between = sides, between
        self._merged = _Sets(len(sides))
        self._possible = self._who_could_meet(possible)
        self._side_of = {member: i for i, side in enumerate(sides) for member in side}
        self._members = sorted(
            {*self._side_of, *(i for item in between for i in (*item.members, *item.others))}
        )
        self._waiting = self._who_waits()
        self._components = Components(network)
        self._fresh = True  # the components are those of now
        self._work = WORK
        self._found: list[Parting] = []

    def _who_could_meet(self, possible: _Possible) -> _Sets:
        """Sides in different sets never had a path, at any instant."""
        nodes, met = possible.sets(), _Sets(len(self._sides))
        first: dict[int, int] = {}
        for number, side in enumerate(self._sides):
            for home in possible.homes(nodes, side):
                met.union(first.setdefault(home, number), number)
        return met

    # --- time ----------------------------------------------------------------------------------

    def partings(self) -> list[Parting]:
        reached = -1
        for at_ns, toggles in reversed(self._instants):
            if not self._waiting:
                break
            gain = self._back(toggles)
            if gain and not self._look(at_ns):
                reached = at_ns
                break
        self._found += self._rest(reached)
        self._found += self._of_between(reached)
        return sorted(self._found, key=lambda p: (p.since_ns, p.sides))

    def _who_waits(self) -> set[int]:
        """Members who have not met somebody whom they could meet."""
        merged: dict[int, set[int]] = {}
        for side in range(len(self._sides)):
            merged.setdefault(self._possible.root(side), set()).add(self._merged.root(side))
        waiting = {
            member
            for side, members in enumerate(self._sides)
            if len(merged[self._possible.root(side)]) > 1
            for member in members
        }
        for item in self._between:
            if item.since_ns < 0:
                waiting.update(item.members, item.others)
        return waiting

    def _back(self, toggles: Sequence[Toggle]) -> bool:
        """Takes one instant back; whether somebody may have a path then who has none after it."""
        net, gain = self._net, False
        came: set[int] = set()  # members who, or whose own links, came up
        for toggle in reversed(toggles):
            net.undo(toggle)
        for toggle in toggles:
            ends = net.ends[toggle.index] if toggle.link else (toggle.index,)
            if min(ends) < net.instances:
                came.update(end for end in ends if toggle.before and end < net.instances)
            elif toggle.link:
                gain = self._core_link_is_back(toggle, *ends) or gain
            else:
                gain = gain or bool(toggle.before)
                self._fresh = False
        return gain or self._meets(came & self._waiting)

    def _core_link_is_back(self, toggle: Toggle, src: int, dst: int) -> bool:
        of = self._components.of
        same = self._fresh and of[src] == of[dst] != NOWHERE
        if toggle.before:
            return not same
        # Without a link inside it a component stays one if there is another way.
        if same and not leads_to(self._net, src, dst):
            self._fresh = False
        return False

    def _meets(self, came: set[int]) -> bool:
        """Whether any of them may be joined now with a member it is not merged with."""
        if not came or not self._fresh or self._between:
            return bool(came)
        net, components = self._net, self._components
        for member in came:
            root = self._merged.root(self._side_of[member])
            others = [
                other
                for side, members in enumerate(self._sides)
                if self._merged.root(side) != root
                for other in members
            ]
            if len(others) > FEW:
                return True
            found = look(net, components, [member, *others])
            if any(member in group and len(group) > 1 for group in _joined(found)):
                return True
        return False

    # --- looks ---------------------------------------------------------------------------------

    def _look(self, at_ns: int) -> bool:
        """Merges what is joined just before `at_ns`; False if there was too much work."""
        self._work -= len(self._net.nodes) + len(self._net.ends)
        if self._work < 0:
            return False
        self._components = Components(self._net)
        self._fresh = True
        found = look(self._net, self._components, self._members)
        before = [self._merged.root(side) for side in range(len(self._sides))]
        for group in _joined(found):
            numbers = [self._side_of[i] for i in group if i in self._side_of]
            for number in numbers[1:]:
                self._merged.union(numbers[0], number)
        self._note(before, at_ns)
        for item in self._between:
            if item.since_ns < 0 and _met(found, item):
                item.since_ns = at_ns
        self._waiting = self._who_waits()
        return True

    def _note(self, before: list[int], at_ns: int) -> None:
        """Partings of the sets that are one now and were several."""
        parts: dict[int, dict[int, list[int]]] = {}
        for side, old in enumerate(before):
            parts.setdefault(self._merged.root(side), {}).setdefault(old, []).extend(
                self._sides[side]
            )
        for sets in parts.values():
            if len(sets) > 1:
                self._found.append(Parting(_sorted_sides(sets.values()), at_ns))

    # --- what is left --------------------------------------------------------------------------

    def _rest(self, reached: int) -> list[Parting]:
        """Sides that were not merged: they never met, or that is longer ago than was looked."""
        found: list[Parting] = []
        homes: dict[int, dict[int, list[int]]] = {}
        for side, members in enumerate(self._sides):
            home = homes.setdefault(self._possible.root(side), {})
            home.setdefault(self._merged.root(side), []).extend(members)
        for sets in homes.values():
            if len(sets) > 1:
                sides = _sorted_sides(sets.values())
                bound = reached >= 0
                found.append(Parting(sides, max(reached, 0), never=not bound, bound=bound))
        if len(homes) > 1:
            whole = [[i for part in sets.values() for i in part] for sets in homes.values()]
            found.append(Parting(_sorted_sides(whole), 0, never=True))
        return found

    def _of_between(self, reached: int) -> list[Parting]:
        found: list[Parting] = []
        for item in self._between:
            others = tuple(i for i in item.others if i not in item.members)
            sides: tuple[Side, ...] = (item.members, others)
            if not others or set(item.members) & set(item.others):
                sides = tuple((i,) for i in item.members) + ((others,) if others else ())
            since, bound = item.since_ns, item.since_ns < 0 <= reached
            never = item.since_ns < 0 and not bound
            found.append(Parting(sides, max(since, reached if bound else 0, 0), never, bound))
        return found


def _sorted_sides(sides: Iterable[Iterable[int]]) -> tuple[Side, ...]:
    return tuple(sorted(tuple(sorted(side)) for side in sides))


def _joined(found: Look) -> Iterable[list[int]]:
    """Groups of instances that are to be merged; not all pairs of one need be joined."""
    for reach, members in found.groups.items():
        if reach.simple or found.joined(reach, reach):
            yield members
    odd = [reach for reach in found.groups if not reach.simple]
    for reach in odd:
        for other in found.groups:
            if other != reach and found.joined(reach, other):
                yield [*found.groups[reach], *found.groups[other]]


def _met(found: Look, item: _Between) -> bool:
    members, others = set(item.members), set(item.others)
    held = [
        (reach, members.intersection(group), others.intersection(group))
        for reach, group in found.groups.items()
    ]
    theirs = [reach for reach, _, them in held if them]
    return any(
        found.joined(reach, other) and (reach != other or len(us | them) > 1)
        for reach, us, them in held
        if us
        for other in theirs
    )


def leads_to(network: Connectivity, src: int, dst: int) -> bool:
    """Whether bridge `src` reaches bridge `dst`; searched from both ends in turn."""
    ahead, behind = {src}, {dst}
    fronts = ([src], [dst])
    while fronts[0] and fronts[1]:
        forward = len(fronts[0]) <= len(fronts[1])
        front, seen, goal = (fronts[0], ahead, behind) if forward else (fronts[1], behind, ahead)
        following: list[int] = []
        for node in front:
            for link in network.out[node]:
                far = network.ends[link][1]
                if far < network.instances or far in seen or not network.nodes[far]:
                    continue
                if not network.links[link if forward else link ^ 1]:
                    continue
                if far in goal:
                    return True
                seen.add(far)
                following.append(far)
        front[:] = following
    return src == dst
