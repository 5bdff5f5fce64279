"""How long links that others fill make a flow wait that wants less than its share.

Input: the greedy flows with the links that hold them, what they get and how long their own queues
are; the own paths that have moved. Output: delays of those paths.

Every path has a queue of its own, so nobody waits for others there, while at a real link all stand
in one queue. That queue would hold what the queues of its greedy flows hold together, so a link's
wait is the sum of their waits, each weighted with its part of the link. Flows rise and back off one
by one, so a queue that n equal ones share is fuller than each one's own: what is free of it on
average is less by the root of n (Appenzeller, Keslassy, McKeown: Sizing Router Buffers, SIGCOMM
2004). The owner of a flow allows for that. Who is greedy, or was a
short while ago, waits in its own queue already and is never delayed here: twice would cost it its
share.

A path that nobody used before is not delayed at once: a connection that begins there is greedy
soon, and has to find out first what it can get. A path that has been silent stays delayed, so that
whoever speaks now and then waits too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import isqrt
from typing import NamedTuple

from runtime.agent.share.ratelimits import PathRoutes
from runtime.agent.share.solver import NO_LINK, Share
from runtime.agent.vocabulary import PathDelay

WAIT_PARTS = 2  # the wait follows the queue's length by one of so many parts in every tick
PEAK_TICKS = 256  # and its peak is forgotten by one of so many
ROOT_UNIT = 1000
YOUNG_TICKS = 40  # a second at 25 ms: so long a path is new
MOST_PATHS = 512  # that are delayed; beyond that those that have been silent longest are not
FELT_NS = 200_000  # a smaller difference is not enforced,
FELT_PERCENT = 2  # nor one of so much of the wait
MOST_NS = 3600 * 10**9  # whatever is told, and however slow a link is

Pair = tuple[int, int]


class Filler(NamedTuple):
    """A flow that fills a link."""

    pair: Pair
    link: int
    share_bps: int


class QueueTime:
    """How long what a greedy flow sends waits in its own queue: lately, and at most."""

    __slots__ = ("_lately_ns", "_peak_ns")

    def __init__(self) -> None:
        self._lately_ns = self._peak_ns = 0

    def see(self, now_ns: int) -> None:
        """In every tick; 0 when it is not greedy."""
        self._lately_ns += (now_ns - self._lately_ns) // WAIT_PARTS
        self._peak_ns = max(now_ns, self._peak_ns - self._peak_ns // PEAK_TICKS)

    def forget(self) -> None:
        """It is greedy no more."""
        self._lately_ns = self._peak_ns = 0

    def shared_ns(self, root: int) -> int:
        """What it would be in a queue that flows share; `root` as roots() has it."""
        free = max(self._peak_ns - self._lately_ns, 0)
        return max(self._peak_ns, self._lately_ns) - free * ROOT_UNIT // max(root, ROOT_UNIT)


def roots(filling: Iterable[Filler]) -> dict[int, int]:
    """Of the number of flows that fill a link, each counted by its part, in units of 1/1000."""
    sums: dict[int, tuple[int, int]] = {}
    for filler in filling:
        total, squares = sums.get(filler.link, (0, 0))
        sums[filler.link] = total + filler.share_bps, squares + filler.share_bps**2
    return {
        link: isqrt(ROOT_UNIT**2 * total**2 // squares)
        for link, (total, squares) in sums.items()
        if squares
    }


class _Delayed:
    """An own path: the delay of its links, and what it has beside it. `unsure`: whether the
    datapath has that."""

    __slots__ = ("base_ns", "more_ns", "unsure", "young_ticks")

    def __init__(self, base_ns: int, young_ticks: int) -> None:
        self.base_ns = base_ns
        self.more_ns = 0
        self.unsure = False
        self.young_ticks = young_ticks


def fillers(
    asked: Iterable[tuple[Pair, int]], shares: Iterable[Share], greedy: int
) -> list[Filler]:
    """Of flows with their demands and shares, those that want `greedy` and are held by a link."""
    return [
        Filler(pair, share.bottleneck, share.allocation_bps)
        for (pair, demand), share in zip(asked, shares, strict=True)
        if demand == greedy and share.bottleneck != NO_LINK
    ]


class Waits:
    """One agent's."""

    def __init__(self, young_ticks: int = YOUNG_TICKS) -> None:
        self._young_ticks = young_ticks
        self._paths: dict[Pair, _Delayed] = {}  # those that moved last come last
        self._is_settled = False  # nothing changes as long as no link is full

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def delayed(self) -> int:
        """Paths that are delayed now."""
        return sum(path.more_ns > 0 for path in self._paths.values())

    def moved(self, pair: Pair, base_ns: int) -> None:
        """This own path over limited links has sent something."""
        known = self._paths.pop(pair, None)
        self._is_settled &= known is not None
        self._paths[pair] = known or _Delayed(base_ns, self._young_ticks)

    def declared(self, pairs: Iterable[Pair]) -> None:
        """The datapath was told the delay of the links of these paths once more."""
        for pair in pairs:
            if pair in self._paths:
                self._paths[pair].more_ns = 0

    def doubt(self, pairs: Iterable[Pair]) -> None:
        """The datapath was told something of these paths, nobody knows what."""
        self._is_settled = False
        for pair in pairs:
            if pair in self._paths:
                self._paths[pair].unsure = True

    def epoch(self, routes: PathRoutes) -> None:
        """The network is another one: it has told delays that it changes, and no others."""
        for pair, path in list(self._paths.items()):
            route = routes.of(pair)
            if route is None:
                del self._paths[pair]  # all is told of it when it is back
            elif route.delay_ns != path.base_ns:
                self._paths[pair] = _Delayed(route.delay_ns, path.young_ticks)

    def forget(self) -> None:
        """All paths are to be declared anew."""
        self._paths.clear()

    def changes(
        self,
        routes: PathRoutes,
        filling: Iterable[Filler],
        waits_ns: Mapping[Pair, int],
        elastic: Collection[Pair],
    ) -> list[PathDelay]:
        """What the datapath has to be told, in every tick. `waits_ns` are of the fillers."""
        links = link_waits(routes, filling, waits_ns)
        found: list[PathDelay] = []
        while len(self._paths) > MOST_PATHS:
            pair = next(iter(self._paths))
            path = self._paths.pop(pair)
            if path.more_ns:
                found.append(PathDelay(*pair, path.base_ns))
        if self._is_settled and not links:
            return found
        for pair, path in self._paths.items():
            route = routes.of(pair)
            want, young = 0, path.young_ticks > 0
            path.young_ticks -= young
            if links and route is not None and not young and pair not in elastic:
                want = min(sum(links.get(link, 0) for link in route.links), MOST_NS)
            if path.unsure or (want != path.more_ns and _is_felt(want, path.more_ns)):
                path.more_ns, path.unsure = want, False
                found.append(PathDelay(*pair, path.base_ns + want))
        self._is_settled = not any(p.more_ns or p.young_ticks for p in self._paths.values())
        return found


def link_waits(
    routes: PathRoutes, filling: Iterable[Filler], waits_ns: Mapping[Pair, int]
) -> dict[int, int]:
    """How long the queues of full links are in time: at most what there is room for."""
    found: dict[int, int] = {}
    for filler in filling:
        wait = waits_ns.get(filler.pair, 0)
        if wait:
            part = wait * filler.share_bps // routes.capacity(filler.link)
            found[filler.link] = found.get(filler.link, 0) + part
    return {link: min(wait, routes.queue_ns(link), MOST_NS) for link, wait in found.items()}


def _is_felt(want_ns: int, have_ns: int) -> bool:
    if want_ns == 0:
        return True
    return abs(want_ns - have_ns) > max(FELT_NS, have_ns * FELT_PERCENT // 100)
