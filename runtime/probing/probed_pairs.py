"""Which pairs of end points (instances, and further interfaces of theirs) are probed: all that are
connected at some time where they are few, else those that expectations name, and a sample that the
plan's seed draws. Where not all find room, those of expectations come first. What an instance sends
to itself does not leave it.

The sample has every end point and every link that routes use at the start, as far as MOST_PAIRS are
enough for that: first pairs in which nobody is twice, then a pair for each link that none of them
uses, then pairs that make of each end a beginning as well, then any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compiler.plan import numbered_draws
from compiler.plan.frame_domains import FrameDomains
from compiler.plan.parts.expectations import LOSS, RTT, UNREACHABLE
from compiler.plan.reader import Plan
from compiler.plan.types import Node, owner_of
from runtime.options import VIRTUAL
from runtime.probing import probe_intervals
from runtime.probing.ways import ConnectedPair, Pair, Ways
from runtime.schedule import Schedule, first_incarnations

MOST_PAIRS, FEWEST_PAIRS = 200, 12  # the latter of a run that is too short for more
_SPARE = 100  # more than that are followed, since some may never be connected
_TRIES = 2_000  # links for which a pair is looked for, and pairs that are drawn
_ORDER, _ANY = 0x6F72646572, 0x616E79  # `order`, `any`: of draws


@dataclass(frozen=True, slots=True)
class PairChoice:
    """`ways` in the order of their importance; `of`: how many pairs of end points there ever are;
    `sampled`: not all of them were looked at."""

    ways: tuple[ConnectedPair, ...]
    of: int
    sampled: bool
    least_bps: dict[int, int]  # smallest rate of each link that has one
    beyond: int = 0  # pairs with routers between them, of which a plan says nothing; not in `of`


def most_pairs(schedule: Schedule) -> int:
    """So many that each can have enough probes."""
    if schedule.options.time == VIRTUAL:
        return MOST_PAIRS
    each_ns = probe_intervals.least(schedule.link_states()) * probe_intervals.CLOSEST_NS
    return max(FEWEST_PAIRS, min(MOST_PAIRS, schedule.end_due_ns // each_ns))


def choose(plan: Plan, schedule: Schedule, most: int) -> PairChoice:
    """The pairs to be probed in this run: `most`, or as many as expectations name. PlanError."""
    index = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    nodes = plan.topology.nodes
    present = {index[name] for name in first_incarnations(schedule)}
    there = [node for node in range(len(nodes)) if owner_of(nodes, node) in present]
    own = Counter(owner_of(nodes, node) for node in there)
    domains = FrameDomains.of(plan.topology)
    beyond = domains.pairs_by_programs(there) - _own_beyond(domains, nodes, there)
    of = len(there) ** 2 - sum(count**2 for count in own.values()) - beyond
    ways = Ways(plan, schedule)
    expected = _expected(plan, frozenset(there), MOST_PAIRS)
    most = max(most, len(expected))
    if of <= most:
        pairs = [(src, dst) for src in there for dst in there]
    else:
        pairs = _sample(plan, ways, there, most)
    pairs = [one for one in pairs if owner_of(nodes, one[0]) != owner_of(nodes, one[1])]
    if domains.any:  # an end without an address cannot be asked
        pairs = [one for one in pairs if not domains.by_programs(*one) and _addressed(nodes, one)]
    found = ways.follow(dict.fromkeys([*expected, *pairs]))
    return PairChoice(tuple(found[:most]), of, of > most, ways.least_bps, beyond)


def _addressed(nodes: Sequence[Node], pair: Pair) -> bool:
    return all(nodes[end].ipv4 or nodes[end].ipv6 for end in pair)


def _own_beyond(domains: FrameDomains, nodes: Sequence[Node], there: Sequence[int]) -> int:
    """Pairs of ends of one instance among those between which there are routers."""
    of_owner: dict[int, list[int]] = {}
    for node in there:
        of_owner.setdefault(owner_of(nodes, node), []).append(node)
    return sum(domains.pairs_by_programs(ends) for ends in of_owner.values() if len(ends) > 1)


def wanted(plan: Plan) -> list[Pair]:
    """Pairs of which expectations say something that probes tell, as they are there."""
    kinds = (RTT, LOSS, UNREACHABLE)
    pairs = (pair for one in plan.expectations if one.kind in kinds for pair in one.pairs)
    return list(dict.fromkeys(pairs))


def _expected(plan: Plan, there: frozenset[int], most: int) -> list[Pair]:
    """Of which expectations say what probes tell: both ways, since round trips are composed."""
    wanted: dict[Pair, None] = {}
    for one in plan.expectations:
        for src, dst in one.pairs if one.kind in (RTT, LOSS, UNREACHABLE) else ():
            if len(wanted) >= most or not {src, dst} <= there:
                continue
            wanted[src, dst] = None
            if one.kind == RTT:
                wanted[dst, src] = None
    return list(wanted)


def _sample(plan: Plan, ways: Ways, there: Sequence[int], most: int) -> list[Pair]:
    order = numbered_draws.shuffled(there, plan.seed ^ _ORDER)
    circle = [*pairwise(order), (order[-1], order[0])]
    once, others = circle[::2], circle[1::2]
    found = ways.follow(once[:most])
    used = {link for way in found for link in way.links}
    for way in ways.follow(others[:most]):
        used |= way.links
    wanted: dict[Pair, None] = dict.fromkeys(once)
    wanted.update(dict.fromkeys(_covering(plan, ways, used, most)))
    wanted.update(dict.fromkeys(others))
    for src, dst in _any(plan.seed, there):
        if len(wanted) >= most + _SPARE:
            break
        wanted[src, dst] = None
    return list(wanted)[: most + _SPARE]


def _any(seed: int, there: Sequence[int]) -> Iterator[Pair]:
    for number in range(_TRIES):
        src, dst = (
            there[numbered_draws.below(seed ^ _ANY, 2 * number + side, len(there))]
            for side in (0, 1)
        )
        if src != dst:
            yield src, dst


def _covering(plan: Plan, ways: Ways, used: set[int], most: int) -> Iterator[Pair]:
    """Pairs that use links which are not used yet; `used` grows."""
    core, topology = plan.core, plan.topology
    missing = [
        link
        for link in range(len(topology.links))
        if link not in used and core.is_core_link(topology, link)
    ]
    count = 0
    for link in missing[:_TRIES]:
        if link in used or count == most:
            continue
        pair = _through(plan, ways, link)
        if pair is None:
            continue
        for way in ways.follow([pair]):
            used |= way.links
            count += 1
            yield pair


def _through(plan: Plan, ways: Ways, link: int) -> Pair | None:
    """Two instances whose packets pass this link of the core, if there are any, as it is in the
    epoch that was followed last."""
    core, ends = plan.core, plan.topology.links[link]
    row, width = core.row_of[ends.src], len(core.columns)
    for column, value in enumerate(ways.table[row * width : (row + 1) * width]):
        if value > core.values(row) or link not in core.leads(row, value):
            continue
        src = _upstream(plan, ways, ends.src, column)
        if src is not None:
            return src, core.behind[column][0]
    return None


def _upstream(plan: Plan, ways: Ways, node: int, column: int) -> int | None:
    """An instance whose packets for this column come to this node of the core."""
    core, width = plan.core, len(plan.core.columns)
    into: dict[int, list[int]] = {}
    for row, before in enumerate(core.rows):
        value = ways.table[row * width + column]
        for one in core.leads(row, value) if value <= core.values(row) else ():
            into.setdefault(plan.topology.links[one].dst, []).append(before)
    queue, seen = [node], {node}
    for one in queue:
        behind = core.behind[core.column_of[one]] if core.column_of[one] >= 0 else []
        if behind and core.columns[column] != one:
            return behind[0]
        fresh = [node for node in into.get(one, []) if node not in seen]
        seen.update(fresh)
        queue.extend(fresh)
    return None
