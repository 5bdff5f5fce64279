"""How often pairs are probed: so rarely that all probes over a link together take at most a
thousandth of the smallest rate that it ever has.

A link that n pairs use gives each an n-th of that; a pair has what the link gives that gives least.
So the sum over a link is within its part, whatever the others of a pair's links give it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from compiler.plan.parts.delay_tables import measured
from compiler.plan.properties import LinkState
from runtime.probing.ways import ConnectedPair

PART = 1_000  # one of so many bits, and as many again for large probes
SLOWEST_NS = 10_000_000_000  # a pair that would have a probe less often has none
PROBE_BITS = {4: 8 * (20 + 8), 6: 8 * (40 + 8)}  # IP header and 8 bytes, by version
LARGE_BYTES = 1500  # of a packet: what instances' devices take (docs/pktd.md, mtu)
_HEAVY = ("pareto", "paretonormal")
_HEAVY_KURTOSIS = 9.0  # of measured delays; that of an exponential distribution
RARER = 5  # large probes than others
_NS = 1_000_000_000
_FASTEST_NS, _APART_NS, _MOST = 100_000_000, 10_000_000, 1_000_000
CLOSEST_NS = 2_000_000  # between two probes of a short run
_LEAST, _LEAST_JITTER, _LEAST_HEAVY = 40, 60, 200  # of a pair then: twice what a mean takes
_VIRTUAL_NS, _VIRTUAL_MOST = 1_000_000_000, 3_000
ROUNDS, FEW_ROUNDS = 300, 20  # at most in virtual time; where none has anything of chance in it


def least(states: Iterable[LinkState]) -> int:
    """Probes of a pair without which nothing is proved of it, with some to spare: more where links
    have jitter. `states`: that they ever have."""
    kinds = {state.distribution for state in states if state.jitter_ns}
    if not kinds:
        return _LEAST
    return _LEAST_HEAVY if any(map(is_heavy, kinds)) else _LEAST_JITTER


def is_heavy(distribution: str) -> bool:
    """Whether it has a long tail."""
    table = measured(distribution)
    return distribution in _HEAVY if table is None else table.kurtosis > _HEAVY_KURTOSIS


def base_ns(
    pairs: int, duration_ns: int, *, virtual: bool, rounds: int = ROUNDS, least: int = _LEAST
) -> int:
    """How often each is probed where links allow it: ten times a second, but no more than 100
    probes a second and a million in the run. A run in which a pair would have less than `least` has
    up to 500 a second. In virtual time, where each takes this machine's
    time and one tells as much as a thousand: once a second, in so many rounds and 3,000 probes at
    most."""
    if virtual:
        apart_ns = max(-(-duration_ns // rounds), -(-pairs * duration_ns // _VIRTUAL_MOST))
        return max(_VIRTUAL_NS, apart_ns)
    apart_ns = min(pairs * _APART_NS, max(duration_ns // least, pairs * CLOSEST_NS))
    return max(_FASTEST_NS, apart_ns, -(-pairs * duration_ns // _MOST))


def intervals(
    ways: Sequence[ConnectedPair], least_bps: Mapping[int, int], bits: int, base: int
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
