"""Pairs that were probed and fell silent while the plan had a path for them: what is judged then is
the part of the run in which somebody looked.

Every probe is told of, as arrived or as lost, so a gap is no matter of the network. One is that
lasts for LONG_NS and for ten intervals, or if less than half of the probes were sent that were due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.certify.lives import Lives
from runtime.certify.planned import Stretch
from runtime.certify.probed import Header

LONG_NS = 10_000_000_000
LONG_INTERVALS = 10
FEW_DUE = 20  # of which less than half say nothing yet


@dataclass(frozen=True, slots=True)
class Silence:
    """`since_ns`: the last probe before the gap, or the first moment at which they were too few."""

    pair: int  # position in the header
    since_ns: int
    told: int
    due: int


def silent(
    header: Header,
    stretches: Sequence[Sequence[Stretch]],
    sent_ns: Sequence[Sequence[int]],
    lives: Lives,
) -> list[Silence]:
    """`stretches` and `sent_ns`: of each pair of the header. Those of which nothing was ever told
    are left out: that they were not measured is said anyway."""
    found = []
    for number, pair in enumerate(header.pairs):
        times = sent_ns[number]
        if not times or number >= len(header.intervals_ns):
            continue
        interval_ns = max(header.intervals_ns[number], 1)
        long_ns = max(LONG_NS, LONG_INTERVALS * interval_ns)
        told = due = 0
        since_ns: int | None = None
        for begin_ns, open_ns in _open(stretches[number], both=header.both):
            end_ns = lives.known_until(pair, begin_ns, open_ns)
            inside = times[bisect_left(times, begin_ns) : bisect_left(times, end_ns)]
            told += len(inside)
            due += max(end_ns - begin_ns, 0) // interval_ns
            gap = _gap([begin_ns, *inside, end_ns], long_ns)
            since_ns = gap if since_ns is None else since_ns
        if since_ns is None and due >= FEW_DUE and 2 * told < due:
            since_ns = times[0]
        if since_ns is not None:
            found.append(Silence(number, since_ns, told, due))
    return found


def _open(stretches: Sequence[Stretch], *, both: bool) -> Iterator[tuple[int, int]]:
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


def _gap(moments: Sequence[int], long_ns: int) -> int | None:
    """Where the first one begins."""
    return next((a for a, b in pairwise(moments) if b - a > long_ns), None)
