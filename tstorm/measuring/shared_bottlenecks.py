"""Which directions of paths share a bottleneck, from flows on two of them at once.

Input: what is available on each direction by itself, by flows, and what n flows on each of two that
begin or end at one host got together. If each has a queue of its own, they get the sum of what n
flows get on either; if they share one, what 2 n flows get in it, the mean of both tables ("the load
on the bottleneck is the sum of the load on all paths", section 2.3 of "Modeling and Emulation of
Internet Paths"). What is in the lower third between the two is shared, in the upper third apart;
what is between these, or where the two are not far enough apart, is not known. Output: groups that
share one, united from the clearest case on; nothing is united against a case that was found apart.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tdl.tokens.words import MAX_NAME
from tstorm.measuring.measure_state import REPETITIONS, MeasureState

Way = tuple[str, str]  # from, to
SHARED, APART, UNKNOWN = "shared", "apart", "unknown"
_LONGEST_END = len("-out-2")
_FAR_PERCENT = 90  # more than so much of what is apart cannot be told from it


class SharedTest(NamedTuple):
    one: Way
    other: Way
    flows: int  # on each

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset((*self.one, *self.other))


class SharedVerdict(NamedTuple):
    test: SharedTest
    bps: int | None  # together; None: not measured, since it would tell nothing
    if_apart_bps: int
    if_shared_bps: int
    found: str

    @property
    def clearness(self) -> float:
        """0 where it is as if they shared one, 1 as if they did not."""
        span = self.if_apart_bps - self.if_shared_bps
        return 1.0 if self.bps is None else (self.bps - self.if_shared_bps) / span


def tests(names: Sequence[str], flows: int) -> list[SharedTest]:
    """Of all directions that begin or end at one host, two by two. `flows`: of the longest row."""
    found = []
    for host in names:
        others = [name for name in names if name != host]
        for place, first in enumerate(others):
            for second in others[place + 1 :]:
                found.append(SharedTest((host, first), (host, second), flows // 2))
                found.append(SharedTest((first, host), (second, host), flows // 2))
    return found


def rounds(left: Sequence[SharedTest]) -> Iterator[tuple[SharedTest, ...]]:
    """Each test once; those of a round have no host in common."""
    waiting = list(left)
    while waiting:
        busy: set[str] = set()
        now: list[SharedTest] = []
        later: list[SharedTest] = []
        for test in waiting:
            free = busy.isdisjoint(test.hosts)
            (now if free else later).append(test)
            busy |= test.hosts if free else set()
        yield tuple(now)
        waiting = later


def verdict(state: MeasureState, test: SharedTest) -> SharedVerdict:
    """From what has been measured so far."""
    ways, n = (test.one, test.other), test.flows
    apart = sum(state.rate_bps(*way, n) for way in ways)
    shared = sum(state.rate_bps(*way, 2 * n) for way in ways) // 2
    rates = [one.bps for one in state.together(test.one, test.other)]
    together = round(statistics.median(rates)) if rates else None
    found = UNKNOWN
    if 100 * shared <= _FAR_PERCENT * apart and together is not None:
        third = (apart - shared) / 3
        if together <= shared + third:
            found = SHARED
        elif together >= apart - third:
            found = APART
    return SharedVerdict(test, together, apart, shared, found)


def next_repetition(state: MeasureState, test: SharedTest) -> int | None:
    """The number of a measurement that may tell more; None: it is known, or cannot be."""
    now = verdict(state, test)
    if 100 * now.if_shared_bps > _FAR_PERCENT * now.if_apart_bps or now.found != UNKNOWN:
        return None
    done = len(state.together(test.one, test.other))
    return done if done < REPETITIONS else None


def groups(verdicts: Sequence[SharedVerdict]) -> list[tuple[Way, ...]]:
    """What shares a bottleneck; each direction is in one at most, and never both of a path, which
    wait in two queues."""
    apart = {frozenset((v.test.one, v.test.other)) for v in verdicts if v.found == APART}
    group: dict[Way, tuple[Way, ...]] = {}
    shared = [v for v in verdicts if v.found == SHARED]
    for v in sorted(shared, key=lambda v: (v.clearness, v.test)):
        sides = [group.get(way, (way,)) for way in (v.test.one, v.test.other)]
        if sides[0] == sides[1]:
            continue
        whole = tuple(sorted((*sides[0], *sides[1])))
        against = any(
            frozenset((a, b)) in apart or a == b[::-1] for a in sides[0] for b in sides[1]
        )
        if not against:
            group |= dict.fromkeys(whole, whole)
    return sorted(set(group.values()))


def name(ways: Sequence[Way], taken: set[str]) -> str:
    """Of a bottleneck: that of the host where all begin or end. Nothing in `taken` has it."""
    ends = [{way[end] for way in ways} for end in (0, 1)]
    word = "shared"
    for found, side in zip(ends, ("out", "in"), strict=True):
        if len(found) == 1 and len(next(iter(found))) + _LONGEST_END <= MAX_NAME:
            word = f"{next(iter(found))}-{side}"
    number, chosen = 1, word
    while chosen in taken:
        number += 1
        chosen = f"{word}-{number}"
    taken.add(chosen)
    return chosen
