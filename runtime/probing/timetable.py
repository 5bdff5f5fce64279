"""When which pair is probed: once in each interval of a pair, at a moment that the seed draws, so
that no timer of a program can be in step with it (RFC 2330, section 11.1). Pure: the same arguments
give the same moments, and any part of the timetable can be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.probing import probe_draws

_KEY = 0x70726F6265  # `probe`


def between(
    seed: int, intervals_ns: Sequence[int], from_ns: int, to_ns: int, spread_ns: int | None = None
) -> list[tuple[int, int]]:
    """The moments in [from_ns, to_ns), since time 0, each with the number of its pair; ascending.

    `spread_ns`: draw only from the beginning of each interval, so that pairs of one interval are
    probed soon after each other.
    """
    found = [
        (at_ns, pair)
        for pair, interval_ns in enumerate(intervals_ns)
        for at_ns in _of_pair(seed, pair, interval_ns, spread_ns, from_ns // interval_ns, to_ns)
        if at_ns >= from_ns
    ]
    return sorted(found)


def _of_pair(
    seed: int, pair: int, interval_ns: int, spread_ns: int | None, first: int, to_ns: int
) -> Iterator[int]:
    """From interval number `first` on."""
    key = probe_draws.mix(seed ^ _KEY) ^ probe_draws.mix(pair)
    span_ns = interval_ns if spread_ns is None else min(spread_ns, interval_ns)
    for number in range(first, -(-to_ns // interval_ns)):
        at_ns = number * interval_ns + probe_draws.below(key, number, span_ns)
        if at_ns < to_ns:
            yield at_ns
