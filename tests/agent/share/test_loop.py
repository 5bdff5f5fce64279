"""The sharing loop on a clock of the test: when it ticks, what it does, and in which order."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from compiler.plan.reader import Plan, decode
from compiler.plan.types import Event
from compiler.plan.writer import encode
from runtime.agent.metadata.interest import Interest
from runtime.agent.path.datapath import OnApplied
from runtime.agent.path.enforcer import Enforcer
from runtime.agent.path.path_updates import PathUpdates, StagedPaths
from runtime.agent.path.prefetcher import PreparedStep, Scenes
from runtime.agent.share.loop import GAP_NS, LEAD_NS, ShareLoop
from runtime.agent.vocabulary import LocalFlow, Moved, PathChange, RemoteFlow, Usage, View
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.doubles.clock import FakeClock
from tests.plan.networks import PLAIN, build, contents, timeline

MS = 1_000_000
PERIOD = 25 * MS
T0 = 1_000 * MS


@dataclass
class Result:
    changes: list[PathChange]
    flows: list[LocalFlow]
    next_ns: int


@dataclass
class World:
    """All parts around a loop, in one: notes what is asked of them, with the time."""

    clock: FakeClock = field(default_factory=partial(FakeClock, T0))
    log: list[tuple[int, str, Any]] = field(default_factory=list)
    usage_now: list[Usage] = field(default_factory=list)
    pairs: list[bytes] = field(default_factory=list)
    changes: list[PathChange] = field(default_factory=list)
    idle: bool = False
    busy_ns: int = 0  # how long the datapath takes to answer
    arrivals: list[bytes] = field(default_factory=list)
    watcher: Callable[[], None] | None = None
    samples: list[tuple[int, Moved]] = field(default_factory=list)

    def note(self, what: str, value: Any = None) -> None:
        self.log.append((self.clock.now - T0, what, value))

    def times(self, what: str) -> list[int]:
        return [at for at, name, _ in self.log if name == what]

    def values(self, what: str) -> list[Any]:
        return [value for _, name, value in self.log if name == what]

    # the datapath
    async def usage(self, *, everything: bool = False) -> list[Usage]:
        self.note("usage")
        self.clock.now += self.busy_ns
        return self.usage_now

    async def moved(self) -> Moved:
        return Moved(await self.usage(), self.pairs, [])

    async def commit(
        self, lines: Sequence[str], at_ns: int = 0, on_applied: OnApplied | None = None
    ) -> None:
        self.note("commit", (at_ns - T0 if at_ns else 0, list(lines)))

    # sharing
    def epoch(self, view: View | int, *rest: Any) -> None:
        if isinstance(view, int):
            self.note("metadata epoch", view)
        else:
            self.note("epoch", view.epoch)

    def declared(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.note("declared", sorted(pairs))

    def passed_over(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.note("passed over", sorted(pairs))

    def tick(self, now_ns: int, usage: Sequence[Usage], remote: Sequence[RemoteFlow]) -> Result:
        self.note("tick", now_ns - T0)
        changes, self.changes = self.changes, []
        flow = LocalFlow(0, 1, 5, False, 5, -1)
        return Result(changes, [flow], now_ns + (4 * PERIOD if self.idle else PERIOD))

    def restore(self, now_ns: int, usage: Sequence[Usage]) -> None:
        raise NotImplementedError

    def counters(self) -> dict[str, int]:
        return {}

    # metadata and its socket
    def outgoing(self, now_ns: int, flows: Sequence[LocalFlow]) -> list[tuple[int, bytes]]:
        return [(1, b"%d flows" % len(flows))]

    def incoming(self, now_ns: int, datagram: bytes) -> None:
        self.note("incoming", datagram)

    def remote(self, now_ns: int) -> list[RemoteFlow]:
        return []

    def drain(self, take: Callable[[int, bytes], None]) -> None:
        arrivals, self.arrivals = self.arrivals, []
        for datagram in arrivals:
            take(self.clock.now, datagram)

    def send(self, host: int, datagram: bytes) -> None:
        self.note("send", (host, datagram))

    def watch(self, on_arrival: Callable[[], None]) -> None:
        self.note("watch")
        if self.arrivals:
            on_arrival()

    def look_away(self) -> None:
        self.note("look away")


def plan_with_steps(*at_ms: int) -> Plan:
    """Two instances, and a change of a link at each of these times."""
    topology = build([("a", 2)], ["s"], [("a", "s", PLAIN, PLAIN)])
    events = list(timeline(topology))
    for count, at in enumerate(at_ms, 1):
        args = {"loss_ppb": count}
        events.append(Event(len(events), at * MS, "set", "a.0->s", args, 1))
    return decode(encode(contents(topology, tuple(events))))


class Setting:
    """A loop in a world, and the scenes of a plan."""

    def __init__(self, *at_ms: int) -> None:
        plan = plan_with_steps(*at_ms)
        self.world = world = World()
        needs = PathUpdates(plan, Schedule(plan, RunOptions()), [0])
        assert list(needs.begin())
        placement = (0, 1, -1)
        scenes = Scenes(placement, 2)
        self.scenes: list[PreparedStep] = [scenes.make(StagedPaths(0, needs.state, ()))]
        self.scenes += [scenes.make(one) for one in needs.later() if isinstance(one, StagedPaths)]
        datapath: Any = world
        self.enforcer = Enforcer(datapath, world.clock, needs, (), lambda *_: None, lambda _: None)
        self.enforcer.t0_ns = T0
        self.loop = ShareLoop(
            world.clock,
            world,
            self.enforcer,
            world,  # type: ignore[arg-type]  # the protocols share names
            world,  # type: ignore[arg-type]
            world,
            lambda at, moved: world.samples.append((at - T0, moved)),
            PERIOD,
        )
        self.loop.begin(self.scenes[0])

    def run_until(self, elapsed_ns: int) -> World:
        """Runs the loop from T0 until that time has passed."""

        async def whole() -> None:
            task = asyncio.ensure_future(self.loop.run(T0))
            while self.world.clock.now - T0 < elapsed_ns and not task.done():
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

        asyncio.run(whole())
        return self.world


def test_ticks_come_at_the_period() -> None:
    setting = Setting()
    world = setting.run_until(500 * MS)
    assert world.times("usage") == [n * PERIOD for n in range(len(world.times("usage")))]
    assert len(world.times("usage")) >= 20
    assert world.values("send")[0] == (1, b"1 flows")
    assert world.log[0] == (0, "epoch", 0)


def test_a_slow_datapath_does_not_make_the_loop_slower() -> None:
    setting = Setting()
    setting.world.busy_ns = 10 * MS
    world = setting.run_until(500 * MS)
    assert world.times("usage") == [n * PERIOD for n in range(len(world.times("usage")))]
    assert world.values("tick")[0] == 5 * MS  # counters are of the middle of question and answer
    assert setting.loop.counters()["overruns"] == 0


def test_a_tick_that_takes_longer_than_the_period() -> None:
    setting = Setting()
    setting.world.busy_ns = 30 * MS
    world = setting.run_until(500 * MS)
    times = world.times("usage")
    assert {b - a for a, b in itertools.pairwise(times)} == {30 * MS + GAP_NS}
    counters = setting.loop.counters()
    assert counters["overruns"] == counters["ticks"]
    assert counters["late_max_ns"] == 0


def test_an_idle_loop_takes_its_time() -> None:
    setting = Setting()
    setting.world.idle = True
    world = setting.run_until(1000 * MS)
    times = world.times("usage")
    assert {b - a for a, b in itertools.pairwise(times)} == {4 * PERIOD}
    assert setting.loop.counters()["idle_ticks"] == setting.loop.counters()["ticks"]


def test_a_datagram_wakes_an_idle_loop_at_the_next_period() -> None:
    setting = Setting()
    world = setting.world
    world.idle = True
    world.arrivals = [b"x"]
    drain = world.drain

    def refill(take: Callable[[int, bytes], None]) -> None:
        drain(take)
        world.arrivals = [b"again"]  # a flood: there is always another one

    world.drain = refill  # type: ignore[method-assign]
    setting.run_until(500 * MS)
    times = world.times("usage")
    assert {b - a for a, b in itertools.pairwise(times)} == {PERIOD}
    assert len(world.times("watch")) == len(world.times("look away"))
    assert b"x" in world.values("incoming")


@pytest.mark.parametrize("idle", [False, True])
@pytest.mark.parametrize("at_ms", [110, 117, 120, 126, 133])
def test_a_step_is_met_a_little_before_it(at_ms: int, idle: bool) -> None:
    setting = Setting(at_ms)
    world = setting.world
    world.idle = idle
    setting.loop.expect(setting.scenes[1])
    change = PathChange(0, 1, 5_000_000, 6000)
    tick = world.tick

    def solving(now_ns: int, usage: Sequence[Usage], remote: Sequence[RemoteFlow]) -> Result:
        if world.values("epoch")[-1] == 1 and not world.values("commit"):
            world.changes = [change]
        return tick(now_ns, usage, remote)

    world.tick = solving  # type: ignore[method-assign]
    setting.run_until(300 * MS)
    (at, _), *_ = [(at, v) for at, what, v in world.log if (what, v) == ("epoch", 1)]
    assert at == at_ms * MS - LEAD_NS
    assert world.values("metadata epoch") == [0, 1]
    # The limit for the new network takes effect with it, not before.
    assert world.values("commit") == [(at_ms * MS, ["path 0 1 rate=5000000 queue=6000"])]
    times = world.times("usage")
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert min(gaps) >= PERIOD // 2
    assert at in times
    assert setting.enforcer.present == 1


def test_limits_take_effect_at_once_between_steps() -> None:
    setting = Setting(500)
    setting.loop.expect(setting.scenes[1])
    setting.world.changes = [PathChange(0, 1, 7, 8), PathChange(1, 0, 9, 10)]
    world = setting.run_until(100 * MS)
    wanted = ["path 0 1 rate=7 queue=8", "path 1 0 rate=9 queue=10"]
    assert world.values("commit") == [(0, wanted)]


def test_many_limits_are_told_in_parts() -> None:
    setting = Setting()
    setting.world.changes = [PathChange(0, n, 7, 8) for n in range(1, 1201)]
    world = setting.run_until(50 * MS)
    assert [len(lines) for _, lines in world.values("commit")] == [500, 500, 200]


def test_steps_that_pass_together_are_met_as_one() -> None:
    """A loop that was held up goes on with the network that is there."""
    setting = Setting(100, 110, 120)
    for scene in setting.scenes[1:]:
        setting.loop.expect(scene)
    world = setting.world
    usage = world.usage

    async def stalled(*, everything: bool = False) -> list[Usage]:
        if world.times("usage") == [0, PERIOD]:
            world.clock.now += 200 * MS
        return await usage()

    world.usage = stalled  # type: ignore[method-assign]
    setting.run_until(400 * MS)
    assert world.values("epoch") == [0, 3]
    assert world.values("passed over") == [[(0, 1)]], "the path of this host, said once"
    assert setting.enforcer.present == 3
    counters = setting.loop.counters()
    assert (counters["switches"], counters["switches_late"]) == (1, 1)


def test_steps_close_to_each_other() -> None:
    setting = Setting(100, 101, 102, 130)
    for scene in setting.scenes[1:]:
        setting.loop.expect(scene)
    world = setting.run_until(300 * MS)
    assert world.values("epoch")[-1] == 4
    assert world.values("epoch") == sorted(world.values("epoch"))
    times = world.times("usage")
    assert min(b - a for a, b in itertools.pairwise(times)) >= GAP_NS


def test_sharing_hears_of_what_was_told_once_more() -> None:
    setting = Setting()
    setting.enforcer._told[0] = {(0, 1), (0, 2)}
    world = setting.run_until(100 * MS)
    assert world.values("declared") == [[(0, 1), (0, 2)]]


def test_samples_come_ten_times_a_second() -> None:
    setting = Setting()
    setting.world.pairs = [b"0 1 2 3"]
    world = setting.run_until(1000 * MS)
    assert 9 <= len(world.samples) <= 11
    assert world.samples[0][1].pairs == [b"0 1 2 3"]


def test_a_datapath_that_is_gone_ends_the_loop() -> None:
    setting = Setting()

    async def gone(*, everything: bool = False) -> list[Usage]:
        raise RuntimeError("gone")

    setting.world.usage = gone  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="gone"):
        setting.run_until(100 * MS)


def test_interest_is_found_again_only_when_links_change() -> None:
    setting = Setting(100)
    first, second = setting.scenes
    assert isinstance(first.interest, Interest)
    assert second.interest is not first.interest
    scenes = Scenes((0, 1, -1), 2)
    assert scenes.make(first.stage).interest is scenes.make(first.stage).interest
