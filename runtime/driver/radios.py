"""Who is linked where programs ask for it (`allocate=program`): the rules, without I/O.

Each node that moves has a few radios, each free or joined to one radio of another node; two nodes
have one link at most. Whether it can be is for the plan to say: `see` is told of it. Source:
docs/mobility.md (Radios that programs lead).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BUSY, NOT_VISIBLE = "busy", "not visible"
EXISTS, NO_FREE_RADIO = "exists", "no free radio"


class RadioLink(NamedTuple):
    """Two nodes, of which `a` has asked, and the radio that each of them has for it."""

    a: int
    b: int
    radio_a: int
    radio_b: int

    def other(self, node: int) -> int:
        return self.b if node == self.a else self.a


class Radios:
    def __init__(self, nodes: int, each: int) -> None:
        self.each = each
        self._used: list[dict[int, RadioLink]] = [{} for _ in range(nodes)]  # by radio
        self._seen: list[set[int]] = [set() for _ in range(nodes)]

    def sees(self, node: int) -> list[int]:
        return sorted(self._seen[node])

    def see(self, a: int, b: int, *, sees: bool) -> tuple[bool, RadioLink | None]:
        """From now on they reach each other, or do not: whether that is new, and what it ends."""
        if sees == (b in self._seen[a]):
            return False, None
        if sees:
            self._seen[a].add(b)
            self._seen[b].add(a)
            return True, None
        self._seen[a].discard(b)
        self._seen[b].discard(a)
        lost = next((one for one in self._used[a].values() if b in (one.a, one.b)), None)
        if lost is not None:
            self._free(lost)
        return True, lost

    def request(self, node: int, other: int, radio: int | None) -> RadioLink | str:
        """By this radio of it, or by the lowest that is free: the link, or why there is none."""
        own = next(self._unused(node), None) if radio is None else radio
        if own is None or own in self._used[node]:
            return BUSY
        if other not in self._seen[node]:
            return NOT_VISIBLE
        if any(other in (one.a, one.b) for one in self._used[node].values()):
            return EXISTS
        theirs = next(self._unused(other), None)
        if theirs is None:
            return NO_FREE_RADIO
        found = RadioLink(node, other, own, theirs)
        self._used[node][own] = self._used[other][theirs] = found
        return found

    def links(self, node: int) -> list[RadioLink]:
        """By its radios."""
        return [self._used[node][radio] for radio in sorted(self._used[node])]

    def holds(self, one: RadioLink) -> bool:
        """Whether it is still there."""
        return self._used[one.a].get(one.radio_a) is one

    def release(self, node: int, radio: int) -> RadioLink | None:
        """The link that this ends, if there is one."""
        found = self._used[node].get(radio)
        if found is not None:
            self._free(found)
        return found

    def _unused(self, node: int) -> Iterator[int]:
        return (one for one in range(self.each) if one not in self._used[node])

    def _free(self, one: RadioLink) -> None:
        del self._used[one.a][one.radio_a], self._used[one.b][one.radio_b]
