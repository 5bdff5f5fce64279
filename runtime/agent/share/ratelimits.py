"""Which limit a path needs: its rate and queue, and when a new one is worth telling the datapath.

Input: paths of an epoch and shares. Output: limits, as small a number of changes of them as keeps
the error at 1 % where a flow feels it.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from runtime.agent.share.demand import BITS, Meter
from runtime.agent.share.solver import NO_LINK, Share
from runtime.agent.vocabulary import PathChange, View

LEAST_QUEUE_BYTES = 3000  # two full packets
LEAST_RATE_BPS = 1000  # however many share: a rate of 0 would mean unlimited
FELT_PERCENT = 1  # error of a limit that a flow feels
UNFELT_PERCENT = 10  # of one that it does not reach
NEAR_PERCENT = 80  # of its limit: a flow that sends so much feels it
FAR_PERCENT = 25  # a flow that sends less need not be held tighter: it would not notice


class Limit(NamedTuple):
    """What the datapath holds a path to."""

    rate_bps: int
    queue_bytes: int

    def change(self, pair: tuple[int, int]) -> PathChange:
        return PathChange(*pair, self.rate_bps, self.queue_bytes)


class Route(NamedTuple):
    """A path as far as sharing goes."""

    links: tuple[int, ...]  # limited ones only
    places: array[int]  # of the links in Routes.capacities
    rtt_ns: int
    delay_ns: int  # one way
    collapsed: Limit
    narrowest: int  # the first of the links with the least rate


class PathRoutes:
    """Paths of one epoch, each found once; without a view there are none.

    `numbers` and `capacities` are those of the limited links of all paths that were asked for.
    """

    def __init__(self, view: View | None = None) -> None:
        self._view = view
        self._known: dict[tuple[int, int], Route | None] = {}
        self._place: dict[int, int] = {}
        self._queues: list[int] = []
        self.numbers: list[int] = []
        self.capacities = array("Q")

    def of(self, pair: tuple[int, int]) -> Route | None:
        """None: unreachable. Without links: nothing to share."""
        if pair not in self._known:
            self._known[pair] = self._find(*pair)
        return self._known[pair]

    def _find(self, src: int, dst: int) -> Route | None:
        found = self._view.path(src, dst) if self._view else None
        if self._view is None or found is None:
            return None
        for link in found.links:
            capacity = self._view.capacity(link)
            if capacity and link not in self._place:
                self._place[link] = len(self.numbers)
                self.numbers.append(link)
                self.capacities.append(capacity)
                self._queues.append(self._view.queue(link))
        links = tuple([link for link in found.links if link in self._place])
        places = array("I", [self._place[link] for link in links])
        least = min(places, key=self.capacities.__getitem__, default=NO_LINK)
        queue = 0 if least == NO_LINK else self._queues[least]
        narrowest = NO_LINK if least == NO_LINK else self.numbers[least]
        limit = Limit(found.rate_bps, queue)
        return Route(links, places, found.rtt_ns, found.delay_ns, limit, narrowest)

    def capacity(self, link: int) -> int:
        """Of a limited link of a path that was asked for, b/s."""
        return self.capacities[self._place[link]]

    def queue_ns(self, link: int) -> int:
        """How long its full queue delays."""
        place = self._place[link]
        return self._queues[place] * BITS // self.capacities[place]

    def queue(self, link: int, rate_bps: int) -> int:
        """As long in time at this rate as the link's at its own."""
        place = self._place[link]
        return max(self._queues[place] * rate_bps // self.capacities[place], LEAST_QUEUE_BYTES)


def wanted(route: Route, share: Share, routes: PathRoutes) -> Limit:
    """The limit that belongs to a share."""
    collapsed = route.collapsed
    if share.entitlement_bps >= collapsed.rate_bps:
        return collapsed
    rate = max(share.entitlement_bps, min(LEAST_RATE_BPS, collapsed.rate_bps))
    link = route.narrowest if share.bottleneck == NO_LINK else share.bottleneck
    return Limit(rate, routes.queue(link, rate))


def outdated(have: Limit, want: Limit, meter: Meter) -> bool:
    """Whether the difference matters to the flow."""
    demand = have.rate_bps if meter.greedy else meter.demand_bps
    lower = min(have.rate_bps, want.rate_bps)
    if want.rate_bps < have.rate_bps and 100 * demand < FAR_PERCENT * lower:
        return False
    percent = FELT_PERCENT if 100 * demand >= NEAR_PERCENT * lower else UNFELT_PERCENT
    if 100 * abs(want.rate_bps - have.rate_bps) > percent * have.rate_bps:
        return True
    return 100 * abs(want.queue_bytes - have.queue_bytes) > UNFELT_PERCENT * have.queue_bytes
