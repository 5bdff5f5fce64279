"""Brings what probes prove of paths before the judge, and makes the certificate's rows of it.

Each group of probes is judged as a whole and in pieces of CHUNK, so that a fault that lasts for a
part of a run is found, and when. The median of a path without jitter shows nothing of a fault that
lasts for hardly more than half of them: so it is looked for in shorter parts that overlap, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice
from operator import sub, truediv
from typing import Any

from compiler.plan.properties import LinkState, most_queue, most_rate
from runtime import say
from runtime.certify import binomial
from runtime.certify.coverage import Coverage, lack
from runtime.certify.delay_evidence import (
    EXACT,
    DelayEvidence,
    figures,
    late,
)
from runtime.certify.expected_delay import ExpectedDelay
from runtime.certify.judged_probes import (
    JudgedHeader,
    JudgedProbe,
    Visit,
    grouped,
)
from runtime.certify.planned_paths import Planned, PlannedWay
from runtime.certify.traced_way import RunTraces, of_run, serving
from runtime.certify.traffic import Traffic
from runtime.judge.verdict import Judge, milliseconds, quantity
from runtime.nearest_rank import P99, nearest_rank
from runtime.probing.probe_intervals import LARGE_BYTES
from runtime.rundir.runfiles import OPEN_PROBES
from runtime.schedule import PlanClock
from runtime.thresholds import PPB, PPB_WHOLE

CHUNK = 64
PART = 32  # the shortest in which lateness is looked for
TESTS = 6  # of each piece
INVALID_TIMES = 10  # beyond so many thresholds it is no matter of the machine


@dataclass(frozen=True, slots=True)
class _Laid:
    """What is judged: groups with their pieces and parts, `wide` ones of large probes, and the
    chance that each test may fail by chance."""

    wide: Sequence[Sequence[Visit]]
    groups: Sequence[Sequence[Visit]]
    pieces: Sequence[Sequence[Sequence[JudgedProbe]]]
    parts: Sequence[Sequence[slice]]
    alarm: float

    def __iter__(
        self,
    ) -> Iterator[tuple[Sequence[Visit], Sequence[Sequence[JudgedProbe]], Sequence[slice]]]:
        return zip(self.groups, self.pieces, self.parts, strict=True)

    def needed(self, exact: bool) -> int:
        """Probes without which there is no figure of any kind."""
        return binomial.needed(EXACT if exact else self.alarm)


def _lay(visits: Sequence[Visit], large: Sequence[Visit]) -> _Laid:
    wide = [group for group in grouped(large) if any(visit.probes for visit in group)]
    groups = [group for group in grouped(visits) if any(visit.probes for visit in group)]
    pieces = [list(_pieces(group)) for group in groups]
    parts = [_parts(group[0], len(found[0])) for group, found in zip(groups, pieces, strict=True)]
    tests = TESTS * (sum(map(len, pieces)) + len(wide)) + sum(map(len, parts))
    return _Laid(wide, groups, pieces, parts, binomial.each(tests))


def judge_paths(
    judge: Judge, header: JudgedHeader, visits: Sequence[Visit], large: Sequence[Visit] = ()
) -> Coverage:
    """`large`: with probes that were as large as packets can be."""
    laid, exact = _lay(visits, large), judge.virtual
    alarm, needed = laid.alarm, laid.needed(exact)
    for group in laid.wide:
        _judge_large(judge, header.name(group[0].pair), group, alarm)
    judged: list[Visit] = []
    closed: list[Sequence[Visit]] = []  # groups without a path of which something was judged
    lacking: dict[int, tuple[int, str]] = {}  # of each pair the group with the most probes
    probes = 0
    for group, found, more in laid:
        name, planned = header.name(group[0].pair), group[0].expected
        is_judged = False
        if planned is None and not group[0].stretch.ends_up:
            continue  # one of them is not there: what is sent then measures nothing
        if planned is None:
            _judge_closed(judge, name, found[0])
            if len(found[0]) >= needed:
                closed.append(group)
                continue
        elif header.comparable:
            said = [figures(piece, planned, alarm, exact=exact) for piece in found]
            for piece, one in zip(found, said, strict=True):
                _Told(judge, name, planned, piece).judge(one)
            for part in more:
                some = found[0][part]
                _Told(judge, name, planned, some).late(late(some, planned, alarm))
            is_judged = _says_of_packets(said[0], planned)
        if is_judged:
            judged += group
            probes += len(found[0])
        else:
            why = len(found[0]), lack(found[0], planned, needed)
            lacking[group[0].pair] = max(why, lacking.get(group[0].pair, why))
    ever, shown = _with_path(visits), _with_path(judged)
    for group in closed:  # of a pair that had a path, too, it counts only beside that
        if group[0].pair in shown or group[0].pair not in ever:
            judged += group
            probes += sum(len(visit.probes) for visit in group)
    known = {visit.pair for visit in judged}
    whole = {
        pair: lacking[pair][1] if pair in lacking else "no probe of it is known"
        for pair in range(len(header.pairs))
        if pair not in known
    }
    return Coverage(judged, probes, whole)


def _with_path(visits: Sequence[Visit]) -> set[int]:
    """Pairs of which there is a visit with a path."""
    return {visit.pair for visit in visits if visit.expected is not None}


def why_nothing(
    header: JudgedHeader, visits: Sequence[Visit], large: Sequence[Visit], *, exact: bool
) -> tuple[str, bool]:
    """Why `judge_paths` would say of no pair that it was measured ('' if of some), of the pair that
    is nearest to that; whether it is for jitter that no number of probes is enough for."""
    laid = _lay(visits, large)
    needed, best = laid.needed(exact), (0, "there are no probes that meet one network", False)
    ever = _with_path(visits)
    for group, found, _ in laid:
        planned, probes = group[0].expected, found[0]
        if planned is None and (group[0].pair in ever or not group[0].stretch.ends_up):
            continue  # it counts only beside the path, or one of them is not there
        if planned is None:
            is_judged = len(probes) >= needed
        else:
            one = figures(probes, planned, laid.alarm, exact=exact)
            is_judged = _says_of_packets(one, planned)
        if is_judged:
            return "", False
        why = f"{header.name(group[0].pair)}: {lack(probes, planned, needed)}"
        best = max(best, (len(probes), why, planned is not None and planned.cut))
    return best[1:]


def _says_of_packets(found: DelayEvidence, planned: ExpectedDelay) -> bool:
    """Whether a delay was measured; of a path that loses everything, the loss."""
    if planned.loses_all:
        return found.more_loss_ppb is not None
    return found.late_ns is not None


def _pieces(group: Sequence[Visit]) -> Iterator[list[JudgedProbe]]:
    probes = [probe for visit in group for probe in visit.probes]
    yield probes
    varies = group[0].expected is not None and group[0].expected.varies
    if len(probes) >= 2 * CHUNK and not varies:
        for begin in range(0, len(probes) - CHUNK + 1, CHUNK):
            yield probes[begin : begin + CHUNK]


def _parts(visit: Visit, count: int) -> list[slice]:
    """A quarter of them each, but PART to CHUNK; a quarter of that begins before the next one."""
    size = min(max(count // 4, PART), CHUNK)
    last = count - size
    if visit.expected is None or visit.expected.jitter_ns or last <= 0:
        return []
    return [slice(begin, begin + size) for begin in (*range(0, last, size // 4), last)]


def _judge_large(judge: Judge, name: str, group: Sequence[Visit], alarm: float) -> None:
    """Whether they pass at all: how long they take is told by those that are small."""
    planned, probes = group[0].expected, [probe for visit in group for probe in visit.probes]
    if planned is not None:
        found = figures(probes, planned, alarm)
        _Told(judge, f"{name} (packets of {LARGE_BYTES} bytes)", planned, probes).loss(found)


def _judge_closed(judge: Judge, name: str, probes: Sequence[JudgedProbe]) -> None:
    arrived = [probe for probe in probes if probe.delay_ns is not None]
    text = f"{len(arrived)} of {len(probes)} probes from {name} arrived, where there is no path"
    at_ns = arrived[0].sent_ns if arrived else None
    figure = len(arrived) * 10**6 // len(probes)
    judge.measure("path_open", name, figure, at_ns, text, invalid=True)


@dataclass(frozen=True, slots=True)
class _Told:
    """One piece of one pair's probes, before the judge."""

    judge_: Judge
    name: str
    planned: ExpectedDelay
    probes: Sequence[JudgedProbe]

    def judge(self, found: DelayEvidence) -> None:
        self.late(found.late_ns)
        self._early(found.early_ns)
        self._tail(found.tail_ns)
        self._jitter(found.jitter_ppm)
        self.loss(found)

    def _measure(
        self,
        what: str,
        figure: int,
        text: str,
        threshold: int,
        invalid: bool = False,
        at_ns: int | None = None,
    ) -> None:
        at_ns = self.probes[0].sent_ns if at_ns is None else at_ns
        self.judge_.measure(
            what,
            self.name,
            max(figure, 0),
            at_ns,
            f"{self.name}: {text}",
            threshold=threshold,
            invalid=invalid,
        )

    def _wide(self, what: str, percent: int) -> int:
        """The threshold, or a part of the delay if that is more and nobody has said one."""
        bound = self.judge_.threshold(what)
        if what in self.judge_.thresholds:
            return bound
        return max(bound, self.planned.delay_ns * percent // 100)

    def late(self, late_ns: int | None) -> None:
        if late_ns is None:
            return
        bound = self._wide("path_late", 10)
        middle = "on average" if self.planned.jitter_ns else "at the median"
        text = self._delay(late_ns, "later", middle)
        invalid = late_ns > max(INVALID_TIMES * bound, self.planned.delay_ns)
        self._measure("path_late", late_ns, text, bound, invalid, self._first_beyond(bound))

    def _first_beyond(self, bound: int) -> int | None:
        """When the first of them was sent that was later than this, if jitter does not do that."""
        most_ns = self.planned.delay_ns + bound
        return self._first(lambda probe, delay_ns: delay_ns - probe.wait.most_ns > most_ns)

    def _first(self, beyond: Callable[[JudgedProbe, int], bool]) -> int | None:
        if self.planned.jitter_ns:
            return None
        found = (
            probe.sent_ns
            for probe in self.probes
            if probe.delay_ns is not None and beyond(probe, probe.delay_ns)
        )
        return next(found, None)

    def _delay(self, figure_ns: int, how: str, middle: str) -> str:
        figure, planned = milliseconds(max(figure_ns, 0)), milliseconds(self.planned.delay_ns)
        return f"packets came {figure} {how} than planned ({planned}) {middle}"

    def _early(self, early_ns: int | None) -> None:
        if early_ns is not None:
            bound = self._wide("path_early", 5)
            middle = "on average" if self.planned.jitter_ns else "again and again"
            text = self._delay(early_ns, "earlier", middle)
            least_ns = self.planned.delay_ns - bound
            first_ns = self._first(
                lambda probe, delay_ns: delay_ns - probe.wait.least_ns < least_ns
            )
            self._measure("path_early", early_ns, text, bound, True, first_ns)

    def _tail(self, tail_ns: int | None) -> None:
        if tail_ns is not None:
            text = self._delay(tail_ns, "later", "1 time of 100 or more often")
            bound = self._wide("path_tail", 50)
            first_ns = self._first_beyond(bound)
            self._measure("path_tail", tail_ns, text, bound, at_ns=first_ns)

    def _jitter(self, jitter_ppm: int | None) -> None:
        if jitter_ppm is not None:
            planned = milliseconds(round(self.planned.deviation_ns))
            percent = say.digits(jitter_ppm / 1e4)
            text = f"jitter is {percent} % or more off the planned one ({planned})"
            self._measure("path_jitter", jitter_ppm, text, self.judge_.threshold("path_jitter"))

    def loss(self, found: DelayEvidence) -> None:
        more, less = found.more_loss_ppb, found.less_loss_ppb
        if more is None or less is None:
            return
        bound, planned = self.judge_.threshold("path_loss"), self.planned.loss_ppb
        share = quantity(planned, PPB)
        text = f"{quantity(more, PPB)} or more of the packets were lost beyond the planned {share}"
        at_ns = self._since_lost(True, planned)
        self._measure("path_loss", more, text, bound, more > INVALID_TIMES * bound, at_ns)
        if planned:
            text = f"{quantity(less, PPB)} or more of the planned loss of {share} is missing"
            at_ns = self._since_lost(False, PPB_WHOLE - planned)
            self._measure("path_loss", less, text, min(bound, planned // 2), True, at_ns)

    def _since_lost(self, lost: bool, planned_ppb: int) -> int | None:
        """The first one that was lost, or not, of those that were so too often: from there on a
        cumulative sum grows that a share between the planned and the measured one keeps level."""
        counted = [one for one in self.probes if one.tells_loss and not one.wait.may_drop]
        ones = [(one.delay_ns is None) == lost for one in counted]
        level_ppb = (planned_ppb + PPB_WHOLE * sum(ones) // max(len(ones), 1)) // 2
        at_ns, sum_ppb, least_ppb = None, 0, 0
        for probe, is_one in zip(counted, ones, strict=True):
            if is_one and at_ns is None:
                at_ns = probe.sent_ns
            sum_ppb += PPB_WHOLE * is_one - level_ppb
            if sum_ppb <= least_ppb:
                least_ppb, at_ns = sum_ppb, None
        return at_ns


# --- rates ----------------------------------------------------------------------------------------

RATE_WINDOW_NS = 4_000_000_000
SETTLE_NS = 1_000_000_000


def judge_rates(
    judge: Judge, name: Callable[[int], str], planned: Planned, traffic: Traffic
) -> None:
    """No pair gets more over seconds than the slowest link of its path carries. Flows of pairs with
    several paths may carry more together: nothing is said of them."""
    bound = judge.threshold("path_rate")
    delivered = traffic.delivered
    known = of_run(planned)
    windows = _Windows(delivered.bucket_ns, cache(traffic.told_from))  # pairs have the same buckets
    for pair, stretches in planned:
        key = traffic.key(pair)
        for stretch in stretches:
            if stretch.there is None or stretch.there.shared:
                continue
            if not stretch.there.totals.rate_bps:
                continue
            rate: float = min(filter(None, map(most_rate, stretch.there.states)))
            delay_ns = stretch.there.totals.delay_ns
            begin_ns = traffic.told_by(stretch.begin_ns + delay_ns) + SETTLE_NS
            last_ns = stretch.end_ns - delivered.bucket_ns
            at_once = _at_once(stretch.there.states)
            counted = delivered.between(key, begin_ns, last_ns + 1)
            best = windows.busiest(*counted, at_once, rate, _limit(stretch.there, known))
            if best is None:
                continue
            at_ns, bps, later_bps, rate = best
            subject = f"{name(pair[0])} to {name(pair[1])}"
            figure = max(0, round((later_bps / rate - 1) * 1e6))
            went, has = say.digits(bps / 1e6, 4), say.digits(rate / 1e6, 4)
            text = f"{subject}: {went} Mb/s went over a path of {has} Mb/s"
            judge.measure("path_rate", subject, figure, at_ns, text, threshold=bound, invalid=True)


def _at_once(states: Sequence[LinkState]) -> int:
    """What links carry beside their rate, bytes: where others have a part of a link, what fills its
    queue leaves at the link's whole capacity."""
    return max((most_queue(state) for state in states if state.capacity_bps), default=0)


_Limit = Callable[[int, int], float]  # b/s, of what was delivered from one time to another


def _limit(way: PlannedWay, known: RunTraces | None) -> _Limit | None:
    """What the traces of a way let through; None if none of them has a rate. What waited behind
    them at other links comes beside it."""
    traces = serving(way, known)
    if not traces:
        return None
    others = [state for state in way.states if state.rate_bps and not state.trace]
    least = min((float(most_rate(state)) for state in others), default=math.inf)
    waits = 8 * sum(map(most_queue, others))

    def limit(from_ns: int, to_ns: int) -> float:
        bits = min(one.bits(from_ns - way.totals.delay_ns, to_ns) for one in traces)
        return max(min((bits + waits) * 1e9 / (to_ns - from_ns), least), 1.0)

    return limit


class _Windows:
    """Spans of RATE_WINDOW_NS. `since`: from when on the bytes of a bucket may have been counted,
    by its beginning."""

    def __init__(self, bucket_ns: int, since: Callable[[int], int]) -> None:
        self._bucket_ns = bucket_ns
        self._since = since
        self._span_ns = max(RATE_WINDOW_NS, 10 * bucket_ns)
        self._begins: Sequence[int] = ()  # of buckets, of which the others are
        self._firsts: list[int] = []  # of the window that ends with each bucket, its first one
        self._spans_ns: list[int] = []

    def busiest(
        self,
        begins: Sequence[int],
        counts: Sequence[int],
        at_once: int,
        rate: float,
        limit: _Limit | None,
    ) -> tuple[int, float, float, float] | None:
        """When the most was delivered within a window beside what is possible then: at least at
        which rate; at which rate all of it but `at_once` bytes; and what the possible one is, which
        is `rate` unless `limit` tells. The first windows are shorter than the others."""
        if not begins or begins[-1] + self._bucket_ns - begins[0] < self._span_ns:
            return None
        if begins != self._begins:
            self._lay(begins)
        until = [0, *accumulate(counts)]
        before = map(until.__getitem__, self._firsts)
        totals = map(sub, islice(until, 1, None), before)
        found = list(zip(totals, self._spans_ns, strict=True))
        rates = [(total - at_once) * 8e9 / ns for total, ns in found]
        most = [rate] * len(rates)
        if limit is not None:
            ends = (begin + self._bucket_ns for begin in begins)
            most = [limit(end - ns, end) for end, ns in zip(ends, self._spans_ns, strict=True)]
        shares = list(map(truediv, rates, most))
        at = shares.index(max(shares))
        bps = found[at][0] * 8e9 / found[at][1]
        return begins[self._firsts[at]], bps, rates[at], most[at]

    def _lay(self, begins: Sequence[int]) -> None:
        self._begins, self._firsts, self._spans_ns = begins, [], []
        first = 0
        for begin_ns in begins:
            end_ns = begin_ns + self._bucket_ns
            while begins[first] + self._span_ns < end_ns:
                first += 1
            self._firsts.append(first)
            self._spans_ns.append(end_ns - self._since(begins[first]))


# --- rows -----------------------------------------------------------------------------------------


def rows(
    header: JudgedHeader, visits: Sequence[Visit], traffic: Traffic, clock: PlanClock
) -> Iterator[dict[str, Any]]:
    """A row for each pair and stretch; `measured` is null where no probe was under way in it."""
    for visit in visits:
        stretch, planned = visit.stretch, visit.expected
        source, dest = header.names[visit.pair]
        span = {
            "from_ns": clock.plan_time(stretch.begin_ns),
            "to_ns": clock.plan_time(stretch.end_ns),
        }
        there = None
        if planned is not None and stretch.there is not None:
            there = {
                "delay_ns": planned.delay_ns,
                "jitter_ns": planned.jitter_ns,
                "loss_ppb": planned.loss_ppb,
                "rate_bps": stretch.there.totals.rate_bps,
            }
        key = traffic.key(header.pairs[visit.pair])
        yield {
            "from": source,
            "to": dest,
            "epoch": span,
            "measure": header.measure,
            "planned": there,
            "measured": _measured(visit, header.interval_ns(visit.pair), traffic, key),
        }


def _measured(
    visit: Visit, interval_ns: int, traffic: Traffic, key: int
) -> dict[str, int | None] | None:
    probes, begin_ns, end_ns = visit.probes, visit.stretch.begin_ns, visit.stretch.end_ns
    if not probes:
        return None
    _, flowed = traffic.delivered.between(key, begin_ns, end_ns)
    span_ns = traffic.delivered.whole_ns(begin_ns, end_ns)
    is_sampled = span_ns > 0 and traffic.last_ns > 0
    rate = sum(flowed) * 8 * 10**9 // span_ns if is_sampled else None
    delays = sorted(probe.delay_ns for probe in probes if probe.delay_ns is not None)
    mean = sum(delays) // len(delays) if delays else None
    square = sum((delay - mean) ** 2 for delay in delays) if mean is not None else 0
    few = len(delays) < 2
    return {
        "probes": len(probes),
        "lost": len(probes) - len(delays),
        OPEN_PROBES: len(visit.unknown(begin_ns, end_ns, interval_ns)),
        "delay_p50_ns": nearest_rank(delays) if delays else None,
        "delay_p99_ns": nearest_rank(delays, P99) if delays else None,
        "mean_ns": mean,
        "deviation_ns": None if few else int((square / (len(delays) - 1)) ** 0.5),
        "rate_bps": rate,
    }
