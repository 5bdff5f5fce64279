"""All there is to say about the paths between two instances at one moment.

Input: a plan, two instances, a time. Output: a `Story`: both directions hop by hop with running
totals, why a direction is unreachable, and which events changed the paths last and will next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from compiler.analysis.history import History, Outcome, RouteWalk
from compiler.analysis.obstacles import Obstacle, obstacles
from compiler.plan.frame_domains import FrameDomains
from compiler.plan.parts import delay_tables, necks
from compiler.plan.parts.traces import Followed, FollowedTraces, of_plan
from compiler.plan.paths import path_properties
from compiler.plan.properties import FlowRate, LinkState, Totals
from compiler.plan.types import Event, end_names, kernel_lans

MOST_EQUAL = 1000  # that are counted
FLOWS_EACH = (1, 2, 4, 8)  # with which a bottleneck is explained


@dataclass(frozen=True, slots=True)
class SharedQueue:
    """Of a bottleneck: its links that are up, and what it has with so many flows on each."""

    name: str
    links: tuple[str, ...]
    capacity_bps: int
    rows: tuple[tuple[int, FlowRate], ...]


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a path, and what the path amounts to up to its end."""

    link: str
    state: LinkState
    total: Totals[int]
    bottleneck: bool  # no other link of the path has a lower rate
    follows: Followed | None = None  # its trace, until something on the paths changes
    shares: SharedQueue | None = None
    delays: str = ""  # the file of measured delays that its jitter is drawn from


@dataclass(frozen=True, slots=True)
class Direction:
    """From `src` to `dst`. Unreachable: no hops, and what is in the way (maybe nothing but links
    that the topology does not have)."""

    src: str
    dst: str
    hops: tuple[Hop, ...]
    obstacles: tuple[Obstacle, ...]
    by_programs: bool = False  # only routers lead from one to the other
    lans: tuple[str, ...] = ()  # of the kernel's, that both are at
    equal: int = 1  # so many paths flows are shared out over, up to MOST_EQUAL

    @property
    def reachable(self) -> bool:
        return bool(self.hops)


@dataclass(frozen=True, slots=True)
class PathDifference:
    """An instant at which the path of a direction, or its properties, become others."""

    at_ns: int
    events: tuple[Event, ...]  # of that instant, those about elements on the paths before or after


@dataclass(frozen=True, slots=True)
class Story:
    at_ns: int  # the time asked for
    there: Direction
    back: Direction
    last: PathDifference | None  # None: the paths are as they were at 0
    next: PathDifference | None
    number: int  # of changes until now
    total: int

    @property
    def rtt_ns(self) -> int | None:
        """None when a direction is unreachable."""
        if not (self.there.reachable and self.back.reachable):
            return None
        return self.there.hops[-1].total.delay_ns + self.back.hops[-1].total.delay_ns


def story(history: History, src: int, dst: int, at_ns: int) -> Story:
    """`src` and `dst` are different instances, by node index."""
    if src == dst:
        raise ValueError("a path needs two different instances")
    epoch = history.epoch_at(at_ns)
    pairs = ((src, dst), (dst, src))
    changes = list(history.changes(pairs))
    number = sum(at <= epoch for at, _ in changes) - 1
    walks = [history.walk(*pair, epoch) for pair in pairs]
    later = number + 1 < len(changes)
    until = history.starts[changes[number + 1][0]] if later else history.plan.end_ns
    span = (history.starts[changes[number][0]], until)
    known = of_plan(history.plan)
    return Story(
        at_ns=at_ns,
        there=_direction(history, src, dst, walks[0], epoch, span, known),
        back=_direction(history, dst, src, walks[1], epoch, span, known),
        last=_change(history, changes, number) if number else None,
        next=_change(history, changes, number + 1) if later else None,
        number=number,
        total=len(changes) - 1,
    )


def _direction(
    history: History,
    src: int,
    dst: int,
    walk: RouteWalk,
    epoch: int,
    span: tuple[int, int],
    known: FollowedTraces,
) -> Direction:
    nodes = history.topology.nodes
    hops: tuple[Hop, ...] = ()
    found: tuple[Obstacle, ...] = ()
    equal = 1
    if walk.arrives:
        if walk.shared:
            equal = sum(1 for _ in islice(history.equal_routes(src, dst, epoch), MOST_EQUAL))
        hops = tuple(_hops(history, walk, epoch, span, known))
    else:
        links = history.topology.links
        domains = FrameDomains(nodes, ((link.src, link.dst) for link in links))
        if domains.by_programs(src, dst):
            return Direction(nodes[src].name, nodes[dst].name, (), (), by_programs=True)
        found = obstacles(history, src, dst, epoch)
    lans = tuple(
        lan.name
        for lan in kernel_lans(history.topology.machines)
        if {src, dst} <= {end.node for end in lan.ends}
    )
    return Direction(nodes[src].name, nodes[dst].name, hops, found, lans=lans, equal=equal)


def _hops(
    history: History, walk: RouteWalk, epoch: int, span: tuple[int, int], known: FollowedTraces
) -> Iterable[Hop]:
    states = [history.link(link, epoch) for link in walk.links]
    least = path_properties.of_links(states).rate_bps
    stretch = path_properties.NOTHING
    for link, state in zip(walk.links, states, strict=True):
        stretch = path_properties.joined(stretch, path_properties.of_link(state))
        yield Hop(
            link=history.topology.links[link].name,
            state=state,
            total=path_properties.totals(stretch),
            bottleneck=bool(least) and state.rate_bps == least,
            follows=known.between(state, *span),
            shares=_shared(history, state, epoch) if state.neck else None,
            delays=_file(history, state) if state.jitter_ns else "",
        )


def _file(history: History, state: LinkState) -> str:
    return delay_tables.file_of(state.distribution, history.topology.delays)


def _shared(history: History, state: LinkState, epoch: int) -> SharedQueue:
    links = history.topology.links
    members = necks.members(links)[state.neck]
    numbers = [number for number in members if history.link(number, epoch).up]
    states = [history.link(number, epoch) for number in numbers]
    rows = ((each, necks.available((one, each) for one in states)) for each in FLOWS_EACH)
    names = tuple(links[number].name for number in numbers)
    return SharedQueue(state.neck, names, state.capacity_bps, tuple(rows))


def _change(
    history: History, changes: Sequence[tuple[int, tuple[Outcome, ...]]], number: int
) -> PathDifference:
    """The events of the epoch that concern a link or node on a path before or after it.

    There always are some: where a path becomes another, its links have become worse or those of
    the other better. Where links to the destination count before all others, a node on either path
    may also have got or lost such a link, and be worth going to less or more.
    """
    (_, before), (index, after) = changes[number - 1], changes[number]
    topology, epoch = history.topology, history.epochs[index]
    concerned: set[str] = set()
    for old, new in zip(before, after, strict=True):
        paths = (old.links, new.links) if old != new else ()
        for link in (link for path in paths for link in (*path, *_direct(history, path))):
            ends = topology.links[link]
            concerned |= {ends.name, *end_names(topology.nodes, ends)}
    events = history.plan.events[epoch.first_seq : epoch.last_seq]
    return PathDifference(
        epoch.at_ns, tuple(event for event in events if event.target in concerned)
    )


def _direct(history: History, path: tuple[int, ...]) -> Iterable[int]:
    """With `routing direct`, links from the nodes of a path to its destination's anchor."""
    links, core = history.topology.links, history.core
    if not path or history.topology.routing != "direct":
        return ()
    nodes = {links[link].src for link in path} & set(core.rows)
    anchor = core.anchor[links[path[-1]].dst]
    out = (link for node in nodes for link in core.out[core.row_of[node]])
    return (link for link in out if links[link].dst == anchor)
