"""The sharing loop of an agent, without its clock and sockets: counters in, limits out.

At every tick: what did the own flows send (runtime.agent.share.demand), what do others tell of
theirs, who gets how much of each link (runtime.agent.share.solver), and which paths need another
limit for it.

The limit of a flow is its entitlement: for a greedy one its share; for one that wants less, what it
may take at once if it wanted more, so that nobody waits for a tick to grow. A path that sends
nothing has its collapsed rate, so that a newcomer starts like on an idle network and has its share
after the first tick that sees it. The queue of a limited path is as long in time as that of the
link that limits it. Flows that are not greedy are delayed by what others' queues at full links
would make them wait (runtime.agent.share.waits).

Whoever uses this must know:
- A path is taken to be at its collapsed rate, queue and delay until a change says otherwise. After
  an epoch that changes one of them, and after `declared`, the next tick says it again, whatever the
  datapath has in between.
- `usage` counts from a path's first declaration; lines of paths that did not move may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runtime.agent.share.demand import BITS, Meter, PathCounters
from runtime.agent.share.ratelimits import PathRoutes, Route, outdated, wanted
from runtime.agent.share.solver import UNLIMITED, Question, Share
from runtime.agent.share.waits import Filler, QueueTime, Waits, fillers, roots
from runtime.agent.vocabulary import Change, LocalFlow, PathDelay, RemoteFlow, Usage, View

IDLE_AFTER_TICKS = 40  # a second at 25 ms
RESTORE_TICKS = 5
LINGER_TICKS = 40
ELASTIC_TICKS = 200  # 5 s: who was greedy so lately fills its own queue, or soon does again
IDLE_PERIODS = 2  # an idle agent looks half as often: the first tick after that is late by one

Pair = tuple[int, int]  # source, destination


class Tick(NamedTuple):
    """What follows from a tick."""

    changes: list[Change]
    flows: list[LocalFlow]  # the own active flows over limited links, to be told to others
    next_ns: int  # when to tick again


class _Path:
    """An own path that has moved, and is limited or active."""

    __slots__ = (
        "counters",
        "elastic_ticks",
        "limit",
        "meter",
        "queue",
        "route",
        "seen",
        "told",
        "unsure",
        "wait_ns",
    )

    def __init__(self, route: Route, meter: Meter) -> None:
        self.route = route
        self.meter = meter
        self.limit = route.collapsed
        self.counters = PathCounters(0, 0, 0)
        self.unsure = False  # whether the datapath has this limit
        self.seen: tuple[Share, bool, int] | None = None  # what the limit was found for
        self.told: LocalFlow | None = None
        self.queue = QueueTime()
        self.wait_ns = 0  # what it adds to that of the link that it fills
        self.elastic_ticks = 0  # it still counts as greedy for so long

    def note_wait(self) -> None:
        """After its meter has seen a tick; the limit is the one that was in force."""
        if self.meter.greedy:
            self.queue.see(self.counters.backlog_bytes * BITS // self.limit.rate_bps)
            self.elastic_ticks = ELASTIC_TICKS
        else:
            self.queue.forget()
            self.elastic_ticks = max(self.elastic_ticks - 1, 0)


class Sharing:
    """One agent's. `epoch` comes first."""

    def __init__(self, period_ns: int = 25_000_000) -> None:
        self._period_ns = period_ns
        self._routes = PathRoutes()
        self._totals: dict[Pair, PathCounters] = {}  # of every own path that ever moved
        self._paths: dict[Pair, _Path] = {}  # active ones, by source and destination
        self._last_ns = -1
        self._active = 0
        self._silent_ticks = 0
        self._unknown_ticks = 0
        self._asked: list[tuple[Pair, int]] = []  # demands of the last solution
        self._answer: list[Share] = []
        self._filling: list[Filler] = []
        self._roots: dict[int, int] = {}  # see waits.roots
        self._waits = Waits()
        self._counted = dict.fromkeys(("ticks", "solved", "changes", "resets", "overruns"), 0)

    @property
    def active(self) -> bool:
        """Whether an own flow over a limited link has sent something lately."""
        return self._active > 0

    def counters(self) -> dict[str, int]:
        """Since the start: ticks, how often shares were computed, limits changed, counters that
        went backwards (resets), flows that sent more than their limit (overruns); and now: flows,
        how many of them are greedy, limited paths, delayed paths."""
        paths = self._paths.values()
        return {
            **self._counted,
            "flows": self._active,
            "greedy": sum(path.meter.greedy for path in paths),
            "limited": sum(path.limit != path.route.collapsed for path in paths),
            "delayed": self._waits.delayed,
        }

    def epoch(self, view: View, now_ns: int) -> None:
        """The network is another one since now."""
        if self._last_ns < 0:
            self._last_ns = now_ns
        self._routes = PathRoutes(view)
        self._asked, self._filling = [], []
        self._waits.epoch(self._routes)
        for pair, path in list(self._paths.items()):
            route = self._routes.of(pair)
            if route is None or not route.links:
                del self._paths[pair]
            else:
                if route.collapsed != path.route.collapsed:
                    path.unsure = True
                    path.queue.forget()  # how long it was says nothing about the new one
                path.route, path.seen = route, None

    def declared(self, pairs: Iterable[Pair]) -> None:
        """The datapath was told the collapsed figures of these paths once more."""
        pairs = list(pairs)
        self._waits.declared(pairs)
        for pair in pairs:
            if pair in self._paths:
                self._paths[pair].unsure = True

    def passed_over(self, pairs: Iterable[Pair]) -> None:
        """The datapath was told something of these paths for a time before the present epoch, and
        `epoch` was not called for it: what was changed and changed back looks unchanged."""
        pairs = list(pairs)
        self._waits.doubt(pairs)
        for pair in pairs:
            if pair in self._paths:
                self._paths[pair].unsure = True

    def restore(self, now_ns: int, usage: Sequence[Usage]) -> None:
        """After a restart: paths had sent this much before, and have limits that nobody knows.

        What the next ticks find (RESTORE_TICKS - 1 at most) is to be told after all paths were
        declared anew.
        """
        self._last_ns = now_ns
        self._unknown_ticks = RESTORE_TICKS
        self._paths.clear()
        self._waits.forget()
        self._asked, self._filling = [], []
        for line in usage:
            self._totals[line.src, line.dst] = _counters(line)

    def tick(self, now_ns: int, usage: Sequence[Usage], remote: Sequence[RemoteFlow]) -> Tick:
        """Counters since the last tick and the flows of other agents as they are known now."""
        self._counted["ticks"] += 1
        self._take(usage)
        known = self._unknown_ticks == 0
        self._unknown_ticks -= not known
        for path in self._paths.values():
            limit_bps, rtt_ns = path.limit.rate_bps, path.route.rtt_ns
            path.meter.update(now_ns, path.counters, limit_bps, rtt_ns, known=known)
            path.note_wait()
        changes: list[Change] = self._release()
        own = sorted(pair for pair, path in self._paths.items() if not path.meter.quiet)
        self._active = len(own)
        shares = self._solve(own, remote)
        changes += self._enforce(own, shares)
        changes += self._delay(remote)
        self._counted["changes"] += len(changes)
        self._last_ns = now_ns
        self._silent_ticks = 0 if own else self._silent_ticks + 1
        idle = self._silent_ticks >= IDLE_AFTER_TICKS
        next_ns = now_ns + self._period_ns * (IDLE_PERIODS if idle else 1)
        told = [told for pair in own if (told := self._paths[pair].told) is not None]
        return Tick(changes, told, next_ns)

    def _take(self, usage: Sequence[Usage]) -> None:
        """The counters of every active path, those that became active now included."""
        for line in usage:
            pair, now = (line.src, line.dst), _counters(line)
            before = self._totals.get(pair, PathCounters(0, 0, 0))
            if now.sent_bytes < before.sent_bytes or now.drops < before.drops:
                self._counted["resets"] += 1
                before = PathCounters(0, 0, 0)
                self._paths.pop(pair, None)
            self._totals[pair] = now
            if pair not in self._paths:
                route = self._routes.of(pair)
                if route is None or not route.links or now == before:
                    continue
                meter = Meter(self._last_ns, before.sent_bytes, before.drops, self._period_ns)
                self._paths[pair] = _Path(route, meter)
            self._paths[pair].counters = now
            self._waits.moved(pair, self._paths[pair].route.delay_ns)

    def _release(self) -> list[Change]:
        """Paths that are quiet again get their collapsed rate back, and are forgotten later: one
        that only pauses is to be known by its pauses."""
        changes: list[Change] = []
        for pair, path in sorted(self._paths.items()):
            if not path.meter.quiet:
                continue
            if path.unsure or path.limit != path.route.collapsed:
                path.limit, path.unsure = path.route.collapsed, False
                changes.append(path.limit.change(pair))
            path.seen = None
            if path.meter.quiet_ticks >= LINGER_TICKS:
                del self._paths[pair]
        return changes

    def _solve(self, own: Sequence[Pair], remote: Sequence[RemoteFlow]) -> list[Share]:
        """Shares of the own flows. Not computed again as long as the question is the same, nor for
        an agent without flows that could feel it."""
        concerned = bool(own or self._waits)
        asked = [(pair, self._demand(pair)) for pair in own]
        for flow in remote:
            pair = flow.src, flow.dst
            demand = UNLIMITED if flow.greedy else flow.demand_bps
            if concerned and demand and pair not in self._totals:
                asked.append((pair, demand))
        if concerned and asked != self._asked:
            question, over = Question(), []
            for pair, demand in asked:
                route = self._routes.of(pair)
                if route is not None and route.links:
                    question.add(route.places, route.rtt_ns, demand)
                    over.append((pair, demand))
            answer = question.ask(self._routes.capacities, self._routes.numbers) if over else None
            self._answer = answer.shares if answer else []
            self._filling = fillers(over, self._answer, UNLIMITED)
            self._roots = roots(self._filling)
            self._asked = asked
            self._counted["solved"] += 1
        return self._answer[: len(own)]

    def _demand(self, pair: Pair) -> int:
        meter = self._paths[pair].meter
        return UNLIMITED if meter.greedy else meter.demand_bps

    def _enforce(self, own: Sequence[Pair], shares: Sequence[Share]) -> list[Change]:
        """What has to be told to the datapath; where nothing is new there is nothing to decide."""
        changes: list[Change] = []
        for pair, share in zip(own, shares, strict=True):
            path = self._paths[pair]
            meter = path.meter
            seen = (share, meter.greedy, meter.demand_bps)
            over = meter.overrun
            before = path.wait_ns
            path.wait_ns = path.queue.shared_ns(self._roots.get(share.bottleneck, 0))
            if seen != path.seen or path.wait_ns != before:
                path.told = LocalFlow(
                    *pair, meter.demand_bps, meter.greedy, *share[:2], path.wait_ns
                )
            if seen == path.seen and not (path.unsure or over):
                continue
            path.seen = seen
            self._counted["overruns"] += over
            limit = wanted(path.route, share, self._routes)
            if over or path.unsure or outdated(path.limit, limit, meter):
                path.limit, path.unsure = limit, False
                changes.append(limit.change(pair))
        return changes

    def _delay(self, remote: Sequence[RemoteFlow]) -> list[PathDelay]:
        """Of the paths that are to wait as others' queues are long."""
        if not self._waits:
            return []
        waits = {(flow.src, flow.dst): flow.wait_ns for flow in remote if flow.wait_ns}
        waits.update((pair, path.wait_ns) for pair, path in self._paths.items() if path.wait_ns)
        elastic = {pair for pair, path in self._paths.items() if path.elastic_ticks}
        return self._waits.changes(self._routes, self._filling, waits, elastic)


def _counters(line: Usage) -> PathCounters:
    return PathCounters(line.sent_bytes, line.drop_queue, line.backlog_bytes)
