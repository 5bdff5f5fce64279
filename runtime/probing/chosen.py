"""What a run probes, how often and when: one way on this machine, in a cluster echoes.

Input: the plan and what is to be carried out of it. Pure, so that who judges a plan before its run
knows of the same probes as the prober.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.plan import numbered_draws
from compiler.plan.parts.led_links import led_links
from compiler.plan.reader import Plan
from runtime.options import VIRTUAL
from runtime.probing import probe_intervals
from runtime.probing.probe_record import EACH_CLOCK, ONE_CLOCK, ONE_WAY, ROUND_TRIP, ProbesHeader
from runtime.probing.probed_pairs import PairChoice, choose, most_pairs, wanted
from runtime.probing.ways import ConnectedPair, Pair, Ways
from runtime.schedule import Schedule

# When which pair is probed: once in each interval of a pair, at a moment that the seed draws, so
# that no timer of a program can be in step with it (RFC 2330, section 11.1). Pure: the same
# arguments give the same moments, and any part of the timetable can be asked for.

_PROBE = 0x70726F6265  # `probe`


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
    key = numbered_draws.mix(seed ^ _PROBE) ^ numbered_draws.mix(pair)
    span_ns = interval_ns if spread_ns is None else min(spread_ns, interval_ns)
    for number in range(first, -(-to_ns // interval_ns)):
        at_ns = number * interval_ns + numbered_draws.below(key, number, span_ns)
        if at_ns < to_ns:
            yield at_ns


ECHO_BITS = 84 * 8  # an IP packet of tprobe rtt
VIRTUAL_SPREAD_NS = 100_000_000  # to wake up is what takes this machine's time: all at once
_KEY = 0x6563686F  # `echo`


@dataclass(frozen=True, slots=True)
class Chosen:
    """`ways`, in the order of the header, are probed every `intervals_ns`, and those at the
    positions `large` with large probes, too; `back`: of round trips the ways back. `of`, `sampled`,
    `beyond`: see PairChoice. `seed`: of the moments."""

    seed: int = 0
    ways: tuple[ConnectedPair, ...] = ()
    back: tuple[ConnectedPair, ...] = ()
    intervals_ns: tuple[int, ...] = ()
    large: tuple[int, ...] = ()
    large_intervals_ns: tuple[int, ...] = ()
    not_probed: tuple[ConnectedPair, ...] = ()
    of: int = 0
    sampled: bool = False
    beyond: int = 0
    both: bool = False
    spread_ns: int | None = None

    def header(self, plan: Plan, t0_ns: int) -> ProbesHeader:
        """`t0_ns`: time 0 (CLOCK_MONOTONIC)."""
        return ProbesHeader(
            start_monotonic_ns=t0_ns,
            clock=EACH_CLOCK if self.both else ONE_CLOCK,
            measure=ROUND_TRIP if self.both else ONE_WAY,
            pairs=_names(plan, self.ways),
            interval_ns=min(self.intervals_ns, default=0),
            intervals_ns=self.intervals_ns,
            of=self.of,
            not_probed=_names(plan, self.not_probed),
            large=self.large,
        )

    def left_out(self, plan: Plan) -> Iterator[str]:
        """What is said of pairs that are not probed."""
        if self.beyond:
            led = ", but for those that programs ask for" if led_links(plan.topology) else ""
            yield (
                f"{self.beyond:,} pairs of ends have routers between them: their programs decide,"
                f" and each link is judged alone{led}"
            )
        if self.sampled:
            yield f"{len(self.ways):,} of {self.of:,} pairs of instances are probed"
        if self.not_probed:
            first = " to ".join(_names(plan, self.not_probed[:1])[0])
            yield (
                f"{len(self.not_probed):,} pairs of instances ({first} …) are not probed: a"
                f" {probe_intervals.PART:,}th of the rate of their links is too little for a probe"
                f" in {probe_intervals.SLOWEST_NS // 10**9} s"
            )

    def moments(self, from_ns: int, to_ns: int) -> list[tuple[int, int]]:
        """When a probe is sent, in [from_ns, to_ns) since time 0, and the number of its pair: large
        ones come after the others, in the order of `large`. Ascending."""
        if not self.both:
            intervals = [*self.intervals_ns, *self.large_intervals_ns]
            return between(self.seed, intervals, from_ns, to_ns, self.spread_ns)
        found = [
            (at_ns, pair)
            for pair, interval_ns in enumerate(self.intervals_ns)
            for at_ns in range(self.first_ns(pair), to_ns, interval_ns)
            if at_ns >= from_ns
        ]
        return sorted(found)

    def first_ns(self, pair: int) -> int:
        """When its echoes begin: they come at equal distances."""
        return numbered_draws.below(self.seed ^ _KEY, pair, self.intervals_ns[pair])


def _names(plan: Plan, ways: Sequence[ConnectedPair]) -> tuple[tuple[str, str], ...]:
    nodes = plan.topology.nodes
    return tuple((nodes[way.src].name, nodes[way.dst].name) for way in ways)


def chosen(plan: Plan, schedule: Schedule) -> Chosen:
    """PlanError."""
    choice = choose(plan, schedule, most_pairs(schedule))
    if not schedule.options.on_this_machine:
        return _round_trips(plan, schedule, choice)
    return _one_way(plan, schedule, choice)


def _base_ns(schedule: Schedule, pairs: int, rounds: int = probe_intervals.ROUNDS) -> int:
    virtual, least = schedule.options.time == VIRTUAL, probe_intervals.least(schedule.link_states())
    return probe_intervals.base_ns(
        pairs, schedule.end_due_ns, virtual=virtual, rounds=rounds, least=least
    )


# --- one way --------------------------------------------------------------------------------------


def _one_way(plan: Plan, schedule: Schedule, choice: PairChoice) -> Chosen:
    virtual = schedule.options.time == VIRTUAL
    rounds = (
        probe_intervals.FEW_ROUNDS if _has_no_chance(plan, schedule) else probe_intervals.ROUNDS
    )
    base = _base_ns(schedule, len(choice.ways), rounds)
    bits = probe_intervals.PROBE_BITS[6 if plan.topology.network == "ipv6" else 4]
    found = probe_intervals.intervals(choice.ways, choice.least_bps, bits, base)
    both = sorted(zip(choice.ways, found, strict=True), key=lambda one: (one[0].src, one[0].dst))
    probed = [(way, interval) for way, interval in both if interval is not None]
    ways = [way for way, _ in probed]
    # Where jitter is drawn for each packet, nobody could tell large ones from traffic.
    told = not virtual and not (schedule.options.datapath == "kernel" and _has_jitter(schedule))
    fit = not any(state.mtu_bytes for state in schedule.link_states())
    large = _large(ways, choice.least_bps, base) if told and fit else {}
    return Chosen(
        seed=plan.seed,
        ways=tuple(ways),
        intervals_ns=tuple(interval for _, interval in probed),
        large=tuple(large),
        large_intervals_ns=tuple(large.values()),
        not_probed=tuple(way for way, interval in both if interval is None),
        of=choice.of,
        sampled=choice.sampled,
        beyond=choice.beyond,
        spread_ns=VIRTUAL_SPREAD_NS if virtual else None,
    )


def _large(
    ways: Sequence[ConnectedPair], least_bps: Mapping[int, int], base: int
) -> dict[int, int]:
    """Of those whose links have room for large probes, by position, how often."""
    found = probe_intervals.intervals(
        ways, least_bps, 8 * probe_intervals.LARGE_BYTES, probe_intervals.RARER * base
    )
    return {number: interval for number, interval in enumerate(found) if interval is not None}


def _has_jitter(schedule: Schedule) -> bool:
    return any(state.jitter_ns for state in schedule.link_states())


def _has_no_chance(plan: Plan, schedule: Schedule) -> bool:
    """Whether all probes of a pair tell the same, and nothing asks what each of them told."""
    states = schedule.link_states()
    return not any(state.jitter_ns or state.loss_ppb for state in states) and not wanted(plan)


# --- there and back -------------------------------------------------------------------------------


def _round_trips(plan: Plan, schedule: Schedule, choice: PairChoice) -> Chosen:
    """A pair is probed as often as both of its ways allow."""
    ways = Ways(plan, schedule)
    pairs = _each_once(choice, wanted(plan))
    both = dict.fromkeys(way for src, dst in pairs for way in ((src, dst), (dst, src)))
    found = {(way.src, way.dst): way for way in ways.follow(both)}
    base = _base_ns(schedule, len(pairs))
    # An echo of (a, b) and the answer to one of (b, a) take the same links.
    bits = ECHO_BITS * (2 if any((dst, src) in pairs for src, dst in pairs) else 1)
    spans = probe_intervals.intervals(list(found.values()), ways.least_bps, bits, base)
    intervals = dict(zip(found, spans, strict=True))
    probed: list[tuple[ConnectedPair, ConnectedPair, int]] = []
    not_probed: list[ConnectedPair] = []
    for src, dst in sorted(pairs):
        there, back = found.get((src, dst)), found.get((dst, src))
        if there is None or back is None:
            continue
        first, second = intervals[src, dst], intervals[dst, src]
        if first is None or second is None:
            not_probed.append(there)
        else:
            probed.append((there, back, max(first, second)))
    return Chosen(
        seed=plan.seed,
        ways=tuple(there for there, _, _ in probed),
        back=tuple(back for _, back, _ in probed),
        intervals_ns=tuple(interval for _, _, interval in probed),
        not_probed=tuple(not_probed),
        of=choice.of,
        sampled=choice.sampled,
        beyond=choice.beyond,
        both=True,
    )


def _each_once(choice: PairChoice, expected: Sequence[Pair]) -> dict[Pair, None]:
    """Ordered pairs: those of expectations as they are there, of the others one of both."""
    known = {(way.src, way.dst) for way in choice.ways}
    found = dict.fromkeys(pair for pair in expected if pair in known)
    for way in choice.ways:
        if (way.dst, way.src) not in found:
            found[way.src, way.dst] = None
    return found
