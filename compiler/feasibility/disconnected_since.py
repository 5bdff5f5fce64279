"""Since when instances that have no path to each other at the end have had none.

Input: a topology, its events, and the directions whose flap goes on at the end (they count as up).
Output: `Parting`s, each a set of sides with no path between any two of them from an instant on.

Sides are the instances that have paths to the same others at the end (JoinedPairs). Only if
somebody is apart there, time goes backwards: sets of sides between which there was a path are
merged, and the instant at which that was over is since when they are apart (single linkage: it
holds for every pair across). A look at the whole network is needed only where a path may have come
up, and never after all who could ever meet have been merged. Looks are bounded by `WORK`; beyond
that `since_ns` is a bound. Sets of instances are bits of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from compiler.feasibility.connected import Connectivity, JoinedPairs, Toggle
from compiler.plan.types import Event, Topology

WORK = 300_000  # nodes and links looked at, about 0.2 s

Side = tuple[int, ...]  # instances, ascending


@dataclass(frozen=True, slots=True)
class Parting:
    """No pair across two of `sides` has a path each way from `since_ns` to the end."""

    sides: tuple[Side, ...]
    since_ns: int
    never: bool = False  # nor before
    bound: bool = False  # since then at least: further back was not looked


@dataclass(slots=True)
class _Set:
    """Sides that were merged; `could` be joined with these at some time."""

    members: int
    could: int


@dataclass(slots=True)
class _Between:
    """Instances that have paths to several sides; and those to whom they have none."""

    members: int
    others: int
    could: bool  # they ever meet
    since_ns: int = -1


def partings(topology: Topology, events: Sequence[Event], flapping: Iterable[int]) -> list[Parting]:
    """By time; sides by their first instance."""
    network, possible = Connectivity(topology), Connectivity(topology)
    instants: list[tuple[int, list[Toggle]]] = []
    for at_ns, group in groupby(events, key=lambda event: event.at_ns):
        toggles = [toggle for event in group if (toggle := network.apply(event))]
        instants.append((at_ns, toggles))
        for toggle in toggles:
            if not toggle.link:  # links are up before the first event
                possible.nodes[toggle.index] = 1
    for link in flapping:
        network.links[link] = 1
    present = [i for i in range(network.instances) if network.nodes[i] and network.out[i]]
    everyone = sum(1 << i for i in present)
    joined = JoinedPairs(network)
    near = {i: joined.partners(i) & everyone | 1 << i for i in present}
    if all(mask == everyone for mask in near.values()):
        return []
    return _Past(network, instants, near, JoinedPairs(possible)).partings()


class _Past:
    """Goes back from the end and merges sides. `near`: who is joined with each instance at the end,
    and itself; who is near the same is on one side."""

    def __init__(
        self,
        network: Connectivity,
        instants: list[tuple[int, list[Toggle]]],
        near: dict[int, int],
        possible: JoinedPairs,
    ) -> None:
        self._net, self._instants = network, instants
        self._work = WORK
        self._found: list[Parting] = []
        self._sets: list[_Set] = []
        self._between: list[_Between] = []
        self._joined = JoinedPairs(network)
        everyone = sum(1 << i for i in near)
        sides: dict[int, int] = {}
        for i, mask in near.items():
            sides[mask] = sides.get(mask, 0) | 1 << i
        said = 0
        for mask, members in sides.items():
            could = possible.of_all(_bits(members))
            if mask == members:
                self._sets.append(_Set(members, could))
            elif others := everyone & ~mask & ~said:
                self._between.append(_Between(members, others, bool(could & others)))
            said |= members * (mask != members)  # whom these do not reach is on their account

    def partings(self) -> list[Parting]:
        reached = -1
        for at_ns, toggles in reversed(self._instants):
            waiting = self._waiting()
            if not waiting:
                break
            for toggle in reversed(toggles):
                self._net.undo(toggle)
            if any(self._gains(toggle, waiting) for toggle in toggles) and not self._look(at_ns):
                reached = at_ns
                break
        found = [*self._found, *self._rest(reached)]
        found += [_parting(item, reached) for item in self._between]
        return sorted(found, key=lambda parting: (parting.since_ns, parting.sides))

    def _waiting(self) -> int:
        """Those who have not met somebody whom they could meet."""
        everyone = sum(one.members for one in self._sets)
        waiting = 0
        for one in self._sets:
            if one.could & everyone & ~one.members:
                waiting |= one.members
        for item in self._between:
            if item.could and item.since_ns < 0:
                waiting |= item.members | item.others
        return waiting

    def _gains(self, toggle: Toggle, waiting: int) -> bool:
        """Whether somebody may have a path, where this was up, who had none at the last look."""
        if not toggle.before:
            return False
        if toggle.link:
            return self._joined.would_gain(toggle.index, waiting)
        return toggle.index >= self._net.instances or bool(waiting >> toggle.index & 1)

    def _look(self, at_ns: int) -> bool:
        """Merges what is joined just before `at_ns`; False if there was too much work."""
        self._work -= len(self._net.nodes) + len(self._net.ends)
        if self._work < 0:
            return False
        joined = self._joined = JoinedPairs(self._net)
        merged = _linked(self._sets, [joined.of_all(_bits(one.members)) for one in self._sets])
        self._found += [Parting(_sides(group), at_ns) for group in merged if len(group) > 1]
        self._sets = [_whole(group) for group in merged]
        for item in self._between:
            if item.since_ns < 0 and joined.of_all(_bits(item.members)) & item.others:
                item.since_ns = at_ns
        return True

    def _rest(self, reached: int) -> list[Parting]:
        """Sets that were not merged: they never met, or that is longer ago than was looked."""
        bound = reached >= 0
        homes = _linked(self._sets, [one.could for one in self._sets])
        found = [
            Parting(_sides(group), max(reached, 0), never=not bound, bound=bound)
            for group in homes
            if len(group) > 1
        ]
        if len(homes) > 1:
            found.append(Parting(_sides(map(_whole, homes)), 0, never=True))
        return found


def _parting(item: _Between, reached: int) -> Parting:
    sides: tuple[Side, ...] = (tuple(_bits(item.members)), tuple(_bits(item.others)))
    bound = item.since_ns < 0 <= reached and item.could
    never = item.since_ns < 0 and not bound
    return Parting(sides, max(item.since_ns, reached if bound else 0, 0), never, bound)


def _linked(sets: Sequence[_Set], meets: Sequence[int]) -> list[list[_Set]]:
    """The sets that hang together by whom their members meet."""
    owner = {member: number for number, one in enumerate(sets) for member in _bits(one.members)}
    everyone = sum(one.members for one in sets)
    groups: list[list[_Set]] = []
    done = 0
    for number, one in enumerate(sets):
        if one.members & done:
            continue
        group, ahead = [one], meets[number] & everyone
        done |= one.members
        while ahead := ahead & ~done:
            other = owner[ahead.bit_length() - 1]
            group.append(sets[other])
            done |= sets[other].members
            ahead |= meets[other] & everyone
        groups.append(group)
    return groups


def _whole(group: Sequence[_Set]) -> _Set:
    whole = _Set(0, 0)
    for one in group:
        whole.members |= one.members
        whole.could |= one.could
    return whole


def _sides(sets: Iterable[_Set]) -> tuple[Side, ...]:
    return tuple(sorted(tuple(_bits(one.members)) for one in sets))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
