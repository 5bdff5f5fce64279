"""What flows get over time, by the fluid model: shares of the links, as if nothing took any time.

Input: a plan and flows. Output: of each flow the stretches of time in which its rate is one, and
what limits it there. Algorithm: time is cut wherever a flow begins or ends or the path of one
changes (compiler/analysis/history.py); in each part the flows share the links as agents have them
do (runtime/agent/share/solver.py), and parts in which a flow has the same are one stretch.

A flow of weight w counts as w connections: it rises w times as fast as another of its round trip,
and for links of which more is left the more flows there are (tables of measured paths, backgrounds
that give way, bottlenecks) it is w of them. Source: docs/sharing.md (Model).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from compiler.analysis.history import History, Outcome
from compiler.plan.format import PPB
from compiler.plan.parts import necks, traces
from compiler.plan.paths.flows import PROBES
from compiler.plan.properties import PROPERTIES, Along, LinkState, flow_table, with_flows
from compiler.plan.reader import Plan
from runtime.agent.share.solver import LEAST_RTT_NS, NO_LINK, UNLIMITED, Flow, Share, solve
from tstorm.exit_codes import CommandError
from tstorm.predicting.listed_flow import FlowProblem, ListedFlow

SECOND = 10**9
MOST_PARTS = 5_000_000  # of all flows together; to find their rates takes a minute
_FINEST = 1 << 63  # of round trips, as the solver takes them

LINK, DEMAND, PATH, LOST, NOTHING = "link", "rate", "no path", "all packets lost", "nothing"
_LOSSES = (*(row.field for row in PROPERTIES if row.along is Along.SHARES), "reject_ppb")


def lost(state: LinkState) -> list[int]:
    """Which parts of the packets a link loses, or refuses."""
    return [getattr(state, name) for name in _LOSSES]


class RateStretch(NamedTuple):
    from_ns: int
    to_ns: int
    rate_bps: int | None  # rounded down; None: nothing limits it
    limit: str  # LINK, DEMAND, PATH, LOST or NOTHING
    at: str  # LINK: the link, or the bottleneck that several share


@dataclass(frozen=True, slots=True)
class PredictedRates:
    """`stretches`: of each flow, in their order."""

    flows: Sequence[ListedFlow]
    stretches: Sequence[Sequence[RateStretch]]
    links: frozenset[int]  # that flows ever lead over
    lossy: frozenset[int]  # of these, those that lose some of the packets
    partly: frozenset[int]  # those that have a further class of packets
    traced: frozenset[int]  # those that follow a trace
    shared: int  # flows with several equal paths of which it is not stated which one they take


@dataclass(slots=True)
class _Way:
    """The paths of a flow there and back, from a time on."""

    from_ns: int
    there: Outcome
    back: Outcome

    def rtt_ns(self, *, answered: bool) -> int | None:
        """None: there is no way, or none back where it is `answered`."""
        if not self.there.links or (answered and not self.back.links):
            return None
        ways = (self.there, self.back if self.back.links else self.there)
        return max(sum(one.delay_ns for way in ways for one in way.states), LEAST_RTT_NS)

    @property
    def passes(self) -> bool:
        return all(PPB not in lost(one) for one in self.there.states)


@dataclass(slots=True)
class _Part:
    """What flows ask of the links between two cuts, and who asks."""

    asked: list[tuple[int, _Way, int]] = field(default_factory=list)  # flow, way, round trip
    refused: list[tuple[int, str]] = field(default_factory=list)


def paths_of(plan: Plan, flows: Sequence[ListedFlow]) -> list[list[_Way]]:
    """Of each flow, through the whole plan. PlanError."""
    history, known = History(plan), dict[tuple[object, ...], list[_Way]]()
    found = []
    for one in flows:
        key = (one.src, one.dst, one.packets)
        if key not in known:
            pair, packets = (one.src, one.dst), one.packets or PROBES
            mine = history.with_flows({pair: packets, pair[::-1]: packets.back()})
            changes = mine.changes((pair, pair[::-1]))
            known[key] = [_Way(history.starts[at], *both) for at, both in changes]
        found.append(known[key])
    return found


def never(
    plan: Plan, flows: Sequence[ListedFlow], ways: Sequence[Sequence[_Way]]
) -> list[FlowProblem]:
    """Flows that have no path at any time of the plan."""
    nodes, found = plan.topology.nodes, []
    for one, mine in zip(flows, ways, strict=True):
        if not any(way.there.links for way in mine):
            src, dst = nodes[one.src].name, nodes[one.dst].name
            hint = f"'tstorm explain … --from {src} --to {dst}' says what is in the way"
            message = f"there is no path from {src} to {dst} at any time"
            found.append(FlowProblem(one.line, message, hint))
    return found


def predict(
    plan: Plan, flows: Sequence[ListedFlow], ways: Sequence[Sequence[_Way]]
) -> PredictedRates:
    """PlanError, CommandError."""
    stretches: list[list[RateStretch]] = [[] for _ in flows]
    links, network = set[int](), _Network(plan)
    met: dict[str, set[int]] = defaultdict(set)
    cuts = sorted(_cuts(flows, ways))
    for (from_ns, to_ns), active in zip(pairwise(cuts), _active(flows, cuts), strict=True):
        part = _part(flows, ways, from_ns, active)
        for number, reason in part.refused:
            _put(stretches[number], RateStretch(from_ns, to_ns, 0, reason, ""))
        shares = network.shares(flows, part, from_ns, to_ns)
        for (number, way, _), (share, at) in zip(part.asked, shares, strict=True):
            _put(stretches[number], _stretch(from_ns, to_ns, share, at))
            links.update(way.there.links)
            _meet(met, way.there)
    shared = sum(
        one.packets is None and any(way.there.shared for way in mine)
        for one, mine in zip(flows, ways, strict=True)
    )
    lossy, partly, traced = (frozenset(met[kind]) for kind in ("lossy", "partly", "traced"))
    return PredictedRates(flows, stretches, frozenset(links), lossy, partly, traced, shared)


def _meet(met: dict[str, set[int]], way: Outcome) -> None:
    for link, state in zip(way.links, way.states, strict=True):
        if any(lost(state)):
            met["lossy"].add(link)
        if state.only:
            met["partly"].add(link)
        if state.trace:
            met["traced"].add(link)


def _cuts(flows: Sequence[ListedFlow], ways: Sequence[Sequence[_Way]]) -> set[int]:
    """Where anything may change; of links that follow a trace at each second."""
    found = {at for one in flows for at in (one.start_ns, one.end_ns)}
    begin, end = min(found, default=0), max(found, default=0)
    every = {id(mine): mine for mine in ways}.values()
    found |= {way.from_ns for mine in every for way in mine if begin < way.from_ns < end}
    if any(one.trace for mine in every for way in mine for one in way.there.states):
        found |= set(range(begin - begin % SECOND + SECOND, end, SECOND))
    return found


def _active(flows: Sequence[ListedFlow], cuts: Sequence[int]) -> Iterator[list[int]]:
    """The flows of each part, by number."""
    begins: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(flows):
        begins[one.start_ns].append(number)
    now: list[int] = []
    parts = 0
    for at_ns in cuts[:-1]:
        now = sorted([number for number in now if flows[number].end_ns > at_ns] + begins[at_ns])
        parts += len(now)
        if parts > MOST_PARTS:
            said = f"error: the flows' rates may change {MOST_PARTS:,} times and more"
            raise CommandError(f"{said}\nhint: ask about fewer flows, or a shorter time")
        yield now


def _part(
    flows: Sequence[ListedFlow], ways: Sequence[Sequence[_Way]], at_ns: int, active: Iterable[int]
) -> _Part:
    part = _Part()
    for number in active:
        mine = ways[number]
        way = mine[bisect_right(mine, at_ns, key=lambda one: one.from_ns) - 1]
        rtt_ns = way.rtt_ns(answered=flows[number].demand_bps == UNLIMITED)
        if rtt_ns is None:
            part.refused.append((number, PATH))
        elif not way.passes:
            part.refused.append((number, LOST))
        else:
            part.asked.append((number, way, rtt_ns))
    return part


def _stretch(from_ns: int, to_ns: int, share: Share, at: str) -> RateStretch:
    if share.allocation_bps == UNLIMITED:
        return RateStretch(from_ns, to_ns, None, NOTHING, "")
    limit = LINK if at else DEMAND
    return RateStretch(from_ns, to_ns, share.allocation_bps, limit, at)


def _put(stretches: list[RateStretch], one: RateStretch) -> None:
    if stretches and stretches[-1][2:] == one[2:] and stretches[-1].to_ns == one.from_ns:
        one = one._replace(from_ns=stretches.pop().from_ns)
    stretches.append(one)


class _Network:
    """What links have for flows. The links of a bottleneck are one, numbered behind all links."""

    def __init__(self, plan: Plan) -> None:
        self._links = plan.topology.links
        self._traces = traces.of_plan(plan) if plan.topology.traces else None
        names = sorted({link.state.neck for link in self._links} - {""})
        self._neck = {name: len(self._links) + at for at, name in enumerate(names)}
        self._names = {number: name for name, number in self._neck.items()}

    def shares(
        self, flows: Sequence[ListedFlow], part: _Part, from_ns: int, to_ns: int
    ) -> Iterator[tuple[Share, str]]:
        """Of those that ask, with the name of what limits them."""
        states: dict[int, LinkState] = {}
        counts: Counter[int] = Counter()
        for number, way, _ in part.asked:
            for link, state in zip(way.there.links, way.there.states, strict=True):
                states[link] = state
                counts[link] += flows[number].weight
        capacities = self._capacities(self._followed(states, from_ns, to_ns), counts)
        rising = _rising([(rtt_ns, flows[number].weight) for number, _, rtt_ns in part.asked])
        asked = []
        for (number, way, _), rtt_ns in zip(part.asked, rising, strict=True):
            places = [self._place(link, states[link]) for link in way.there.links]
            asked.append(Flow(tuple(places), rtt_ns, flows[number].demand_bps))
        for share in solve(asked, capacities).shares:
            yield share, self._name(share.bottleneck)

    def _followed(
        self, states: Mapping[int, LinkState], from_ns: int, to_ns: int
    ) -> Mapping[int, LinkState]:
        known = self._traces
        if known is None:
            return states
        return {link: known.means(state, from_ns, to_ns) for link, state in states.items()}

    def _place(self, link: int, state: LinkState) -> int:
        return self._neck.get(state.neck, link)

    def _name(self, place: int) -> str:
        if place == NO_LINK:
            return ""
        return self._names[place] if place in self._names else self._links[place].name

    def _capacities(
        self, states: Mapping[int, LinkState], counts: Mapping[int, int]
    ) -> dict[int, int]:
        found: dict[int, int] = {}
        shared: dict[int, list[tuple[LinkState, int]]] = defaultdict(list)
        for link, state in states.items():
            if state.neck:
                shared[self._neck[state.neck]].append((state, counts[link]))
            else:
                found[link] = with_flows(flow_table(state), counts[link]).rate_bps
        return found | {place: necks.available(some).rate_bps for place, some in shared.items()}


def _rising(asked: Sequence[tuple[int, int]]) -> list[int]:
    """Round trips by which flows rise as their weights have them: exact, but for weights without a
    small common multiple, where they are as fine as the solver takes them."""
    common = lcm(*(weight for _, weight in asked))
    finest = _FINEST // max((rtt_ns for rtt_ns, _ in asked), default=1)
    scale = min(common, finest)
    return [rtt_ns * scale // weight for rtt_ns, weight in asked]
