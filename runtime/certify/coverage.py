"""Which pairs could be judged, why others could not, and whether what programs sent is among it.

A pair that nobody sends over proves little of one that carries the traffic: where most of what a
pair carried went while its delay was not judged, the run has no verdict of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.certify.delay_evidence import (
    FEW_OF_HEAVY_MEAN,
    FEW_OF_MEAN,
    moments,
)
from runtime.certify.expected_delay import PROBE_BYTES, ExpectedDelay, ways
from runtime.certify.judged_probes import JudgedHeader, JudgedProbe, Met, Visit
from runtime.certify.traffic import Traffic
from runtime.probing.probe_intervals import LARGE_BYTES

BUSY_BYTES = 20_000  # less is no traffic that a run is about
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Coverage:
    """`judged`: visits of which something could be said; `probes` in them. `lacking`: of each pair
    that has none of these, by its position in the header, why."""

    judged: Sequence[Visit]
    probes: int
    lacking: Mapping[int, str]

    @property
    def pairs(self) -> int:
        return len({visit.pair for visit in self.judged})

    def links(self, *, both: bool) -> frozenset[int]:
        """On which something was judged."""
        crossed = (ways(visit.stretch, both=both) for visit in self.judged)
        return frozenset(link for found in crossed for way in found for link in way.links)

    def words(self, header: JudgedHeader, most: int = MOST_NAMED) -> str:
        """Which pairs were not judged, and why, of the first ones."""
        names = [f"{header.name(pair)}: {why}" for pair, why in sorted(self.lacking.items())]
        more = f"; and {len(names) - most} more" if len(names) > most else ""
        return "; ".join(names[:most]) + more


def lack(probes: Sequence[JudgedProbe], planned: ExpectedDelay | None, needed: int) -> str:
    """Why nothing could be said of these. `needed`: of any figure."""
    if planned is not None and planned.cut and not planned.loses_all:
        return (
            "a link has less delay than its jitter reaches, and no packet comes before it is sent: "
            "while that is so, no number of probes is enough"
        )
    told = [probe for probe in probes if probe.delay_ns is not None]
    text = f"of {len(probes)} probes that met one network {len(told)} arrived"
    if planned is None or not planned.jitter_ns:
        return f"{text}; it takes {needed}"
    few = FEW_OF_HEAVY_MEAN if planned.heavy else FEW_OF_MEAN
    crowded = sum(probe.wait.crowded for probe in told)
    if crowded:
        text += f", beside {crowded} of these traffic kept the order in spite of jitter"
    calm = moments([probe for probe in told if not probe.wait.crowded], planned)
    text += f", {calm} of them {planned.apart} jitters apart"
    return f"{text}; it takes {max(needed, few)} of these"


def blind(header: JudgedHeader, coverage: Coverage, told: Met, traffic: Traffic) -> str:
    """The first pair that carried traffic most of which went unseen, with why; '' if none did."""
    seen = _carried(header, coverage.judged, traffic)
    sent = _carried(header, told.visits, traffic)
    for number in sorted(sent):
        whole = sent[number] - _of_probes(header, told, number)
        if whole > BUSY_BYTES and 2 * (sent[number] - seen[number]) > whole:
            why = coverage.lacking.get(number, "not while most of it went")
            return f"{header.name(number)} carried traffic, and its delay was not judged: {why}"
    return ""


def _of_probes(header: JudgedHeader, told: Met, number: int) -> int:
    """Bytes of probes among those that a pair carried, or a little more. Echoes go both ways, and
    beside them those of the pair the other way."""
    found = len(told.sent_ns[number]) * PROBE_BYTES + told.large_sent[number] * LARGE_BYTES
    if not header.both:
        return found
    back = header.pairs[number][::-1]
    if back in header.pairs:
        found += len(told.sent_ns[header.pairs.index(back)]) * PROBE_BYTES
    return 2 * found


def _carried(header: JudgedHeader, visits: Sequence[Visit], traffic: Traffic) -> Mapping[int, int]:
    """Bytes that programs and probes sent, by pair of the header, while these had a path."""
    found: dict[int, int] = defaultdict(int)
    for visit in visits:
        if visit.expected is not None:
            ends = header.pairs[visit.pair]
            for pair in (ends, ends[::-1]) if header.both else (ends,):
                begin_ns, end_ns = visit.stretch.begin_ns, visit.stretch.end_ns
                found[visit.pair] += sum(
                    traffic.offered.between(traffic.key(pair), begin_ns, end_ns)[1]
                )
    return found
