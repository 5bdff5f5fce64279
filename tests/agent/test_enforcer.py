"""Holds, attachments and steps, line by line: what is committed for when."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime.agent.path.enforcer import Enforcer
from runtime.agent.path.path_updates import PathUpdates, StagedPaths
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.agent.share.test_loop import MS, T0, World, plan_with_steps


class Told:
    """An enforcer of instance 0, its world, and what it said. Steps at 0, 100, 200 and 300 ms."""

    def __init__(self) -> None:
        plan = plan_with_steps(100, 200, 300)
        needs = PathUpdates(plan, Schedule(plan, RunOptions()), [0])
        self.world = World()
        self.notices: list[str] = []
        datapath: Any = self.world
        datapath.stage = self.stage
        self.staged: list[str] = []
        self.enforcer = Enforcer(
            datapath, self.world.clock, needs, (), lambda *_: None, self.notices.append
        )
        asyncio.run(self.enforcer.declare())
        self.stages = [found for found in needs.later() if isinstance(found, StagedPaths)]
        asyncio.run(self.enforcer.start(T0))
        self.world.log.clear()

    async def stage(self, lines: list[str]) -> None:
        self.staged += lines

    def tell(self, count: int) -> None:
        for stage in self.stages[:count]:
            asyncio.run(self.enforcer.stage(stage))

    def bind(
        self,
        step: int,
        bound: dict[int, int] | None = None,
        gone: tuple[int, ...] = (),
        hold: tuple[int, ...] = (),
    ) -> None:
        asyncio.run(self.enforcer.bind(step, bound or {}, gone, hold, bound or {}))

    def commits(self) -> list[tuple[int, list[str]]]:
        """Since last asked, without the empty ones: when, and lines without the long figures."""
        found = [(at, lines) for at, lines in self.world.values("commit") if lines]
        self.world.log.clear()
        return [(at, [" ".join(line.split()[:4]) for line in lines]) for at, lines in found]


def test_the_start() -> None:
    told = Told()
    assert [" ".join(line.split()[:3]) for line in told.staged] == ["path 0 1"]


def test_steps_and_attachments_are_for_their_time() -> None:
    told = Told()
    told.bind(2, {0: 4}, gone=(0,))
    told.tell(2)
    assert told.commits() == [
        (200 * MS, ["unbind 0", "bind 0 4"]),
        (100 * MS, ["path 0 1 loss=1"]),
        (200 * MS, ["path 0 1 loss=2"]),
    ]


def test_what_is_held_is_left_alone_until_it_is_cut() -> None:
    told = Told()
    told.bind(1, hold=(1,))
    told.tell(2)
    assert told.commits() == []
    told.world.clock.now += 150 * MS
    told.enforcer.move_on(1)
    asyncio.run(told.enforcer.cut([1, 0]))
    whole = "path 0 1 rate=100000000"
    # The present step at once, the one that is told already at its time.
    assert told.commits() == [(0, [whole]), (200 * MS, [whole])]
    assert told.enforcer.told_again() == {(0, 1)}
    assert told.enforcer.told_again() == set()
    asyncio.run(told.enforcer.cut([1]))
    assert told.commits() == []


def test_a_hold_that_comes_late_takes_the_step_back() -> None:
    told = Told()
    told.tell(2)
    told.commits()
    told.bind(2, hold=(1,))
    assert told.commits() == [(200 * MS, ["path 0 1 rate=100000000"])]
    told.world.clock.now += 250 * MS
    told.enforcer.move_on(2)
    told.tell(3)
    told.commits()
    told.bind(2, hold=(1,))
    assert told.commits() == [(0, ["path 0 1 rate=100000000"])]
    assert told.notices == []


def test_a_hold_of_long_ago_is_told_of() -> None:
    told = Told()
    told.tell(3)
    told.enforcer.move_on(3)
    told.enforcer._states.pop(0, None)
    told.commits()
    told.bind(1, hold=(1,))
    assert told.commits() == []
    assert told.notices == ["nodes [1] were to be held from step 1 on, long ago"]


def test_who_comes_back_is_told_all_about() -> None:
    told = Told()
    told.bind(1, hold=(1,))
    told.tell(1)
    told.bind(3, {0: 2})  # another node: the hold of 1 goes on
    told.tell(2)
    assert told.commits() == [(300 * MS, ["bind 0 2"])]
    asyncio.run(told.enforcer.bind(3, {}, (), (), [1]))
    asyncio.run(told.enforcer.stage(told.stages[2]))
    assert told.commits() == [
        (300 * MS, ["path 0 1 loss=3"]),
        (300 * MS, ["path 0 1 rate=100000000"]),
    ]
    told.world.clock.now += 300 * MS
    told.enforcer.move_on(3)
    assert told.enforcer.told_again() == {(0, 1)}
    assert told.enforcer.holds.held(3) == frozenset()
