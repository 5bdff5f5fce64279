"""What an agent says of an instance becomes what the runner of the timeline asks for: the same as
where this machine starts programs itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from compiler.plan.types import Node
from runtime.backend.hosts.hosts import AgentLife, AgentReport
from runtime.backend.k8s.podlives import LET_GO, PodInstance, PodLife
from runtime.backend.k8s.pods import pod
from runtime.backend.lives import Ended, Joined, Lives
from tests.runtime.k8s.fakeapi import shown

T0 = 1_000_000_000_000
MS = 1_000_000
NODE = Node("server.0", 0, "10.77.0.1", "fd77:7473::1", ())


class Scene:
    def __init__(self, held: bool) -> None:
        self.ended: list[tuple[Ended, bool]] = []
        self.killed: list[str] = []
        self.instance = PodInstance(
            0, NODE, ("prog",), held, lambda: T0, self._program_ended, self._killed
        )
        self._steps = iter(range(100))
        self._line = 0

    def _program_ended(self, instance: Lives, ended: Ended, asked: bool, more: str) -> None:
        self.ended.append((ended, asked))

    def _killed(self, instance: Lives, what: str) -> None:
        self.killed.append(what)

    def life(self, what: str, ms: int, status: str = "", step: int = -1) -> None:
        step = next(self._steps) if step < 0 else step
        self.instance.lived(AgentLife(step, 0, what, ms * MS, status))

    def report(self, event: str, ms: int, **more: Any) -> None:
        line = 0 if event == "gone" else self._line
        self._line += event != "gone"
        self.instance.reported(AgentReport(0, line, event, ms * MS, **more))

    async def joined(self) -> tuple[PodLife, Joined]:
        life = await self.instance.next_life()
        return life, await asyncio.wait_for(self.instance.join(life, 0), 20)

    async def up(self) -> PodLife:
        self.life("join", 0)
        self.report("started", 1, pid=7)
        life, joined = await self.joined()
        assert joined == Joined(T0, T0 + MS)
        assert self.instance.present is life and self.instance.started
        return life


def act(play: Callable[[Scene], Coroutine[Any, Any, None]], *, held: bool = True) -> None:
    async def whole() -> None:
        await asyncio.wait_for(play(Scene(held)), 60)

    asyncio.run(whole())


def test_a_join_is_when_the_agent_gave_it_and_its_start_when_the_hold_made_it() -> None:
    async def play(scene: Scene) -> None:
        scene.report("held", -50)
        life = await scene.up()
        assert life.port == 0 and not life.gone.done()

    act(play)


def test_a_start_may_be_reported_after_it_is_waited_for() -> None:
    async def play(scene: Scene) -> None:
        life = await scene.instance.next_life()
        waiting = asyncio.create_task(scene.instance.join(life, 0))
        await asyncio.sleep(0)
        scene.life("join", 5)
        await asyncio.sleep(0)
        scene.report("started", 6)
        assert await waiting == Joined(T0 + 5 * MS, T0 + 6 * MS)

    act(play)


def test_a_program_that_cannot_be_started_is_an_error_of_its_join() -> None:
    async def play(scene: Scene) -> None:
        scene.life("join", 0)
        scene.report("failed", 1, program="prog", error="Exec format error")
        _, joined = await scene.joined()
        assert joined == Joined(T0, None, "Exec format error")
        scene.life("join", 10, "its tstorm-hold takes no orders any more")
        _, joined = await scene.joined()
        assert joined.error == "its tstorm-hold takes no orders any more"

    act(play)


def test_a_leave_ends_when_nothing_is_left() -> None:
    async def play(scene: Scene) -> None:
        life = await scene.up()
        scene.life("leave", 10)
        left = await scene.instance.leave()
        assert (left.at_ns, left.life) == (T0 + 10 * MS, life)
        assert scene.instance.present is None
        scene.report("ended", 12, signal=15)
        assert scene.ended == [(Ended(-1, 15), True)]
        assert not life.gone.done()
        scene.report("left", 13)
        assert life.gone.done()

    act(play)


def test_a_crash_is_no_end_of_a_program() -> None:
    async def play(scene: Scene) -> None:
        await scene.up()
        scene.life("crash", 10)
        assert await scene.instance.crash() == T0 + 10 * MS
        scene.report("ended", 11, signal=9)
        scene.report("crashed", 12)
        assert scene.ended == [] and scene.instance.present is None
        scene.life("join", 20)
        scene.report("started", 21)
        _, joined = await scene.joined()
        assert joined.started_ns == T0 + 21 * MS
        scene.report("ended", 30, status=3)
        assert scene.ended == [(Ended(3, 0), False)]
        assert scene.instance.ended == Ended(3, 0)

    act(play)


def test_a_program_that_ended_by_itself_has_left_at_once() -> None:
    async def play(scene: Scene) -> None:
        life = await scene.up()
        scene.report("ended", 5, status=0)
        assert scene.ended == [(Ended(0, 0), False)]
        scene.life("leave", 10)
        left = await scene.instance.leave()
        assert left.life is life
        scene.report("ignored", 10, order="leave")
        assert life.gone.done()

    act(play)


def test_a_rejoin_within_the_grace_has_a_start_of_its_own() -> None:
    async def play(scene: Scene) -> None:
        first = await scene.up()
        scene.life("leave", 10)
        await scene.instance.leave()
        scene.life("join", 20)
        scene.report("ended", 21, signal=9)
        scene.report("left", 22)
        scene.report("started", 23)
        second, joined = await scene.joined()
        assert first.gone.done() and not second.gone.done()
        assert joined == Joined(T0 + 20 * MS, T0 + 23 * MS)
        scene.report("ended", 40, status=1)
        assert scene.ended == [(Ended(-1, 9), True), (Ended(1, 0), False)]

    act(play)


def test_what_a_restarted_agent_says_again_is_known() -> None:
    async def play(scene: Scene) -> None:
        scene.life("join", 0, step=4)
        scene.report("started", 1)
        await scene.joined()
        scene.report("ended", 2, status=0)
        scene._line = 0
        scene.report("started", 1)
        scene.report("ended", 2, status=0)
        scene.life("join", 0, step=4)
        assert len(scene.ended) == 1
        assert scene.instance._joins.empty()

    act(play)


def test_a_dead_container_is_told_once() -> None:
    async def play(scene: Scene) -> None:
        await scene.up()
        scene.report("gone", 5)
        scene.report("gone", 5)
        assert scene.killed == ["its first process (tstorm-hold) is dead"]
        assert scene.instance.killed
        scene.life("leave", 10, "nothing of it was running: its container had ended")
        left = await scene.instance.leave()
        assert left.life is not None and left.life.gone.done()
        scene.life("join", 20)
        scene.report("started", 21)
        await scene.joined()
        assert not scene.instance.killed

    act(play)


def test_behind_a_gate_a_program_runs_when_its_container_does() -> None:
    async def play(scene: Scene) -> None:
        waits = pod(shown("server-0", state={"waiting": {"reason": "PodInitializing"}}))
        runs = pod(shown("server-0"))
        ends = pod(shown("server-0", state={"terminated": {"exitCode": 2}}))
        scene.life("join", 0)
        before = time.monotonic_ns()
        scene.instance.changed(waits, runs)
        _, joined = await scene.joined()
        assert joined.at_ns == T0 and joined.started_ns is not None
        assert joined.started_ns >= before
        scene.instance.changed(runs, ends)
        assert scene.ended == [(Ended(2, 0), False)]

    act(play, held=False)


def test_behind_a_gate_a_crash_may_come_before_the_program() -> None:
    async def play(scene: Scene) -> None:
        scene.life("join", 0)
        scene.life("crash", 10)
        life, joined = await scene.joined()
        assert joined == Joined(T0, None, LET_GO)
        assert scene.instance.present is not life
        assert await scene.instance.crash() == T0 + 10 * MS

    act(play, held=False)
