"""What an agent says of an instance becomes what the runner of the timeline asks for: the same as
where this machine starts programs itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from itertools import pairwise
from typing import Any

import pytest

from compiler.plan.types import Node
from runtime.backend.instance import Incarnation, Instance, Joined, ProgramEnd
from runtime.backend.k8s import pod_instances
from runtime.backend.k8s.pod_instances import (
    LET_GO,
    InstanceCallbacks,
    PodInstance,
)
from runtime.backend.k8s.pods import pod
from runtime.coordinator.says import HoldReport, InstanceReport
from tests.doubles.api import shown
from tests.waiting import until

T0 = 1_000_000_000_000
MS = 1_000_000
STATES = (("waiting", False), ("running", False), ("running", True))
NODE = Node("server.0", 0, "10.77.0.1", "fd77:7473::1", ())


class Scene:
    def __init__(self, held: bool) -> None:
        self.ended: list[tuple[ProgramEnd, bool]] = []
        self.killed: list[str] = []
        self.records: list[Mapping[str, Any]] = []
        self.warnings: list[str] = []
        hearers = InstanceCallbacks(
            self._program_ended, self._killed, self.records.append, self.warnings.append
        )
        self.t0_ns = T0
        self.instance = PodInstance(
            0, NODE, ("prog",), held, lambda: self.t0_ns, hearers, 50_000_000
        )
        self._steps = iter(range(100))
        self._line = 0

    def _program_ended(self, instance: Instance, ended: ProgramEnd, asked: bool, more: str) -> None:
        self.ended.append((ended, asked))

    def _killed(self, instance: Instance, what: str) -> None:
        self.killed.append(what)

    def life(self, what: str, ms: int, status: str = "", step: int = -1) -> None:
        step = next(self._steps) if step < 0 else step
        self.instance.lived(InstanceReport(step, 0, what, ms * MS, status))

    def report(self, event: str, ms: int, **more: Any) -> None:
        line = 0 if event == "gone" else self._line
        self._line += event != "gone"
        self.instance.reported(HoldReport(0, line, event, ms * MS, **more))

    async def join(self, life: Incarnation) -> Joined:
        await self.instance.arrive(life)
        return await self.instance.start(life)

    async def joined(self) -> tuple[Incarnation, Joined]:
        life = await self.instance.next_incarnation()
        return life, await asyncio.wait_for(self.join(life), 20)

    async def up(self) -> Incarnation:
        self.life("join", 0)
        self.report("started", 1, pid=7)
        life, joined = await self.joined()
        assert joined == Joined(T0, T0 + MS)
        assert self.instance.present is life and self.instance.started
        return life


Play = Callable[[Scene], Coroutine[Any, Any, None]]


def act(play: Play, *, held: bool = True) -> None:
    async def whole() -> None:
        await asyncio.wait_for(play(Scene(held)), 60)

    asyncio.run(whole())


def played(play: Play, *, held: bool = True) -> Callable[[], None]:
    """The test that plays this where a tstorm-hold keeps the program."""

    def test() -> None:
        act(play, held=held)

    test.__doc__ = play.__doc__
    return test


def played_behind_a_gate(play: Play) -> Callable[[], None]:
    return played(play, held=False)


@played
async def test_a_join_is_when_the_agent_gave_it_and_its_start_when_the_hold_made_it(
    scene: Scene,
) -> None:
    scene.report("held", -50)
    life = await scene.up()
    assert life.port == 0 and not life.gone.done()


@played
async def test_a_start_may_be_reported_after_it_is_waited_for(scene: Scene) -> None:
    life = await scene.instance.next_incarnation()
    waiting = asyncio.create_task(scene.join(life))
    await asyncio.sleep(0)
    scene.life("join", 5)
    await asyncio.sleep(0)
    scene.report("started", 6)
    assert await waiting == Joined(T0 + 5 * MS, T0 + 6 * MS)


@played
async def test_a_program_that_cannot_be_started_is_an_error_of_its_join(scene: Scene) -> None:
    scene.life("join", 0)
    scene.report("failed", 1, program="prog", error="Exec format error")
    _, joined = await scene.joined()
    assert joined == Joined(T0, None, "Exec format error")
    scene.life("join", 10, "its tstorm-hold takes no orders any more")
    _, joined = await scene.joined()
    assert joined.error == "its tstorm-hold takes no orders any more"


@played
async def test_a_leave_ends_when_nothing_is_left(scene: Scene) -> None:
    life = await scene.up()
    scene.life("leave", 10)
    left = await scene.instance.leave()
    assert (left.at_ns, left.incarnation) == (T0 + 10 * MS, life)
    assert scene.instance.present is None
    scene.report("ended", 12, signal=15)
    assert scene.ended == [(ProgramEnd(-1, 15), True)]
    assert not life.gone.done()
    scene.report("left", 13)
    assert life.gone.done()


@played
async def test_who_asks_late_finds_that_the_program_has_left_already(scene: Scene) -> None:
    """Else the network of what has left would never be cut."""
    scene.life("join", 0)
    scene.report("started", 1, pid=7)
    scene.life("leave", 10)
    scene.report("ended", 12, signal=15)
    scene.report("left", 13)
    scene.life("join", 20)
    scene.report("started", 21, pid=8)
    first, joined = await scene.joined()
    assert joined == Joined(T0, T0 + MS)
    assert (await scene.instance.leave()).incarnation is first
    second, _ = await scene.joined()
    assert first.gone.done() and not second.gone.done()


@played
async def test_who_asks_late_is_told_of_a_killed_hold(scene: Scene) -> None:
    scene.life("join", 0)
    scene.report("started", 1, pid=7)
    scene.report("gone", 5)
    assert len(scene.killed) == 1
    life, joined = await scene.joined()
    assert joined.started_ns == T0 + MS and not life.gone.done()


@played
async def test_a_pause_and_a_resume_are_when_the_agent_gave_them(scene: Scene) -> None:
    await scene.up()
    scene.life("pause", 10)
    scene.report("paused", 11)
    assert await scene.instance.signal("pause") == T0 + 10 * MS
    scene.life("resume", 20, "its tstorm-hold takes no orders any more")
    assert await scene.instance.signal("resume") == T0 + 20 * MS
    assert scene.warnings == [
        "server.0: resume was not possible: its tstorm-hold takes no orders any more"
    ]
    assert scene.instance.present is not None


@played
async def test_a_kill_ends_its_program_as_asked_and_leaves_its_host(scene: Scene) -> None:
    await scene.up()
    scene.life("kill", 10)
    assert await scene.instance.signal("kill") == T0 + 10 * MS
    scene.report("ended", 11, signal=9)
    assert scene.ended == [(ProgramEnd(-1, 9), True)]
    assert scene.instance.present is not None and not scene.killed
    scene.life("crash", 20)
    scene.life("join", 20)
    assert await scene.instance.crash() == T0 + 20 * MS
    scene.report("started", 21)
    await scene.joined()
    scene.report("ended", 30, status=3)
    assert scene.ended[1:] == [(ProgramEnd(3, 0), False)]


@played
async def test_a_kill_that_is_not_possible_leaves_the_program_as_it_is(scene: Scene) -> None:
    await scene.up()
    scene.life("kill", 10, "nothing of it was running")
    await scene.instance.signal("kill")
    scene.report("ended", 30, status=3)
    assert scene.ended == [(ProgramEnd(3, 0), False)]
    assert "kill was not possible" in scene.warnings[0]


@played
async def test_a_setup_and_readiness_are_recorded_with_their_times(scene: Scene) -> None:
    scene.life("join", 0)
    scene.report("setup", 1, pid=6)
    scene.report("set_up", 5)
    scene.report("started", 6, pid=7)
    assert (await scene.joined())[1] == Joined(T0, T0 + 6 * MS)
    scene.report("ready", 9)
    setup, ready = scene.records
    assert setup == {
        "kind": "setup",
        "target": "server.0",
        "applied_ns": 5 * MS,
        "took_ns": 4 * MS,
        "status": 0,
    }
    assert ready["kind"] == "ready"
    assert (ready["ready_ns"], ready["took_ns"]) == (9 * MS, 3 * MS)


def test_a_setup_may_take_longer_than_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_instances, "START_SECONDS", 0.01)

    async def play(scene: Scene) -> None:
        scene.life("join", 0)
        scene.report("setup", 1, pid=6)
        waiting = asyncio.create_task(scene.joined())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        scene.report("set_up", 50, status=1)
        scene.report("failed", 51, program="initdb", error="setup ended with 1")
        _, joined = await waiting
        assert joined.error == "setup ended with 1"
        assert scene.records[0]["status"] == 1

    act(play)


@played
async def test_what_is_not_ready_in_time_is_recorded_and_said(scene: Scene) -> None:
    await scene.up()
    scene.report("not_ready", 60_001)
    assert scene.records[0]["kind"] == "not_ready"
    assert scene.warnings == ["server.0 is not ready: not within 60 s (ready-timeout=)"]


@played
async def test_who_is_ended_during_its_setup_was_let_go(scene: Scene) -> None:
    scene.life("join", 0)
    scene.report("setup", 1, pid=6)
    scene.life("crash", 5)
    scene.report("failed", 6, error=LET_GO)
    scene.report("set_up", 6, signal=9)
    scene.report("crashed", 7)
    _, joined = await scene.joined()
    assert joined.error == LET_GO
    await scene.instance.crash()
    assert scene.instance.present is None
    assert scene.records[0]["signal"] == 9


@played
async def test_what_was_started_before_the_start_joins_with_its_first_step(scene: Scene) -> None:
    scene.report("started", -500, pid=7)
    scene.report("ready", -100)
    scene.report("ended", -50)
    assert not scene.records and not scene.ended
    scene.life("join", 1)
    _, joined = await scene.joined()
    assert joined == Joined(T0 + MS, T0 - 500 * MS)
    assert scene.records[0]["ready_ns"] == -100 * MS
    assert scene.ended == [(ProgramEnd(0, 0), False)] and scene.instance.ended == ProgramEnd(0, 0)


def container(state: str, *, ready: bool = False) -> Any:
    return pod(shown("server-0", state={state: {}}, ready=ready))


def test_what_kubelet_has_started_before_the_start_joins_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(scene: Scene) -> None:
        begun_ns = time.monotonic_ns()
        scene.t0_ns = 0
        now = [container(state, ready=ready) for state, ready in STATES]
        for before, after in pairwise(now):
            scene.instance.changed(before, after)
        assert scene.records == []
        scene.t0_ns = time.monotonic_ns()
        scene.life("join", 0)
        _, joined = await scene.joined()
        assert joined.started_ns is not None and begun_ns < joined.started_ns < scene.t0_ns
        [ready] = scene.records
        assert ready["kind"] == "ready" and ready["ready_ns"] < 0 <= ready["took_ns"]

    act(play, held=False)


@played_behind_a_gate
async def test_a_gated_program_that_kubelet_does_not_find_ready_is_recorded(scene: Scene) -> None:
    scene.life("join", 0)
    scene.instance.changed(container("waiting"), container("running"))
    await until(lambda: scene.records, "the end of patience")
    assert scene.records[0]["kind"] == "not_ready"
    assert scene.warnings == ["server.0 is not ready: not within 0.05 s (ready-timeout=)"]


@played
async def test_a_crash_is_no_end_of_a_program(scene: Scene) -> None:
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
    assert scene.ended == [(ProgramEnd(3, 0), False)]
    assert scene.instance.ended == ProgramEnd(3, 0)


@played
async def test_a_program_that_ended_by_itself_has_left_at_once(scene: Scene) -> None:
    life = await scene.up()
    scene.report("ended", 5, status=0)
    assert scene.ended == [(ProgramEnd(0, 0), False)]
    scene.life("leave", 10)
    left = await scene.instance.leave()
    assert left.incarnation is life
    scene.report("ignored", 10, order="leave")
    assert life.gone.done()


@played
async def test_a_rejoin_within_the_grace_has_a_start_of_its_own(scene: Scene) -> None:
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
    assert scene.ended == [(ProgramEnd(-1, 9), True), (ProgramEnd(1, 0), False)]


@played
async def test_what_a_restarted_agent_says_again_is_known(scene: Scene) -> None:
    scene.life("join", 0, step=4)
    scene.report("started", 1)
    await scene.joined()
    scene.report("ended", 2, status=0)
    scene._line = 0
    scene.report("started", 1)
    scene.report("ended", 2, status=0)
    scene.life("join", 0, step=4)
    assert len(scene.ended) == 1
    assert not scene.instance._unasked


@played
async def test_a_dead_container_is_told_once(scene: Scene) -> None:
    await scene.up()
    scene.report("gone", 5)
    scene.report("gone", 5)
    assert scene.killed == ["its first process (tstorm-hold) is dead"]
    assert scene.instance.killed
    scene.life("leave", 10, "nothing of it was running: its container had ended")
    left = await scene.instance.leave()
    assert left.incarnation is not None and left.incarnation.gone.done()
    scene.life("join", 20)
    scene.report("started", 21)
    await scene.joined()
    assert not scene.instance.killed


@played_behind_a_gate
async def test_behind_a_gate_a_program_runs_when_its_container_does(scene: Scene) -> None:
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
    assert scene.ended == [(ProgramEnd(2, 0), False)]


@played_behind_a_gate
async def test_behind_a_gate_a_crash_may_come_before_the_program(scene: Scene) -> None:
    scene.life("join", 0)
    scene.life("crash", 10)
    life, joined = await scene.joined()
    assert joined == Joined(T0, None, LET_GO)
    assert scene.instance.present is not life
    assert await scene.instance.crash() == T0 + 10 * MS
