"""How often pairs are probed: so rarely that all probes over a link together take at most a
thousandth of the smallest rate that it ever has.

A link that n pairs use gives each an n-th of that; a pair has what the link gives that gives least.
So the sum over a link is within its part, whatever the others of a pair's links give it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runtime.probing.ways import Way

PART = 1_000  # one of so many bits
SLOWEST_NS = 10_000_000_000  # a pair that would have a probe less often has none
PROBE_BITS = {4: 8 * (20 + 8), 6: 8 * (40 + 8)}  # IP header and 8 bytes, by version
_NS = 1_000_000_000
_FASTEST_NS, _APART_NS, _MOST = 100_000_000, 10_000_000, 1_000_000
_VIRTUAL_NS, _VIRTUAL_ROUNDS, _VIRTUAL_MOST = 1_000_000_000, 300, 3_000


def base_ns(pairs: int, duration_ns: int, *, virtual: bool) -> int:
    """How often each is probed where links allow it: ten times a second, but no more than 100
    probes a second and a million in the run. In virtual time, where each takes this machine's time
    and one tells as much as a thousand: once a second, in 300 rounds and 3,000 probes at most."""
    if virtual:
        rounds = max(-(-duration_ns // _VIRTUAL_ROUNDS), -(-pairs * duration_ns // _VIRTUAL_MOST))
        return max(_VIRTUAL_NS, rounds)
    return max(_FASTEST_NS, pairs * _APART_NS, -(-pairs * duration_ns // _MOST))


def intervals(
    ways: Sequence[Way], least_bps: Mapping[int, int], bits: int, base: int
) -> list[int | None]:
    """The time between two probes of each pair, in ns; None: it is not probed. Ways that come first
    go first where a link has not enough for all. `bits`: of a probe."""
    limited = [[link for link in way.links if link in least_bps] for way in ways]
    users: Counter[int] = Counter()

    def needed(link: int, count: int) -> int:
        """The interval with which so many pairs keep within the link's part."""
        return -(-count * bits * PART * _NS // least_bps[link])

    admitted = []
    for links in limited:
        fits = all(needed(link, users[link] + 1) <= SLOWEST_NS for link in links)
        admitted.append(fits)
        if fits:
            users.update(links)
    return [
        max((base, *(needed(link, users[link]) for link in links))) if fits else None
        for links, fits in zip(limited, admitted, strict=True)
    ]
