"""Time in which nobody looked at a pair while the plan had a path for it: what is judged then is
the rest of the run.

Every probe is told of, as arrived or as lost, so a missing one is no matter of the network. Once in
each interval of a pair there is one: an interval without is time that nobody knows of. A hole is
HOLE_NS and HOLE_INTERVALS without a probe.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.certify.judged_probes import JudgedHeader, Met
from runtime.certify.planned_paths import PlannedStretch
from runtime.certify.probing_ends import ProbingEnds

HOLE_NS, HOLE_INTERVALS = 2_000_000_000, 3
LONG_NS, LONG_INTERVALS = 10_000_000_000, 10  # a hole that is told however long the run is
FEW_DUE = 20  # probes, of which a missing one says nothing yet

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PairCoverage:
    """`told` of the `due` probes of a pair are known. `holes` in the order of time."""

    pair: int  # position in the header
    told: int
    due: int
    holes: tuple[Span, ...]
    has_long: bool

    @property
    def unseen_ppm(self) -> int:
        return part(self.told, self.due)


def part(told: int, due: int) -> int:
    """Millionths of the time that nobody looked at; 0 where that would be chance."""
    return max(due - told, 0) * 10**6 // due if due >= FEW_DUE else 0


def looked_at(
    header: JudgedHeader,
    stretches: Sequence[Sequence[PlannedStretch]],
    met: Met,
    lives: ProbingEnds,
) -> list[PairCoverage]:
    """`stretches`: of each pair of the header."""
    found = []
    for number, pair in enumerate(header.pairs[: len(header.intervals_ns)]):
        times, interval_ns = met.sent_ns[number], max(header.intervals_ns[number], 1)
        told = due = 0
        holes: list[Span] = []
        for begin_ns, open_ns in _open(stretches[number], both=header.both):
            end_ns = lives.known_until(pair, begin_ns, open_ns, met.most_ns[number])
            inside = times[bisect_left(times, begin_ns) : bisect_left(times, end_ns)]
            told += len(inside)
            # A span has an interval less in it than fit into it, if it does not begin with one.
            due += max((end_ns - begin_ns) // interval_ns - (begin_ns > 0), 0)
            hole_ns = max(HOLE_NS, HOLE_INTERVALS * interval_ns)
            moments = pairwise([begin_ns, *inside, end_ns])
            holes += [(a, b) for a, b in moments if b - a > hole_ns]
        long_ns = max(LONG_NS, LONG_INTERVALS * interval_ns)
        has_long = any(end - begin > long_ns for begin, end in holes)
        found.append(PairCoverage(number, told, due, tuple(holes), has_long))
    return found


def _open(stretches: Sequence[PlannedStretch], *, both: bool) -> Iterator[Span]:
    """Spans in which there is a path all the time, whatever changes on it."""
    begin_ns: int | None = None
    end_ns = 0
    for stretch in stretches:
        if stretch.there is None or (both and stretch.back is None):
            if begin_ns is not None:
                yield begin_ns, end_ns
            begin_ns = None
            continue
        begin_ns = stretch.begin_ns if begin_ns is None else begin_ns
        end_ns = stretch.end_ns
    if begin_ns is not None:
        yield begin_ns, end_ns
