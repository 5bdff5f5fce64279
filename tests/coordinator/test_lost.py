"""Agents that die, hang, lie, and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.coordinator import coordinator as coordinators
from runtime.coordinator.agent_link import AgentError, LostError
from runtime.coordinator.coordinator import Coordinator
from runtime.errors import RunError
from tests.coordinator.stage import EXPERIMENT, Stage, act, played
from tests.doubles.agent import FakeAgent
from tests.waiting import until

MS = 1_000_000


def resume() -> Mapping[str, object]:
    return {"ports": [[3, 1, "/proc/7/ns/net"]], "held": [2]}


async def lost(stage: Stage, host: int) -> str:
    """Waits for the loss and returns the reason."""
    await until(lambda: stage.lost, "the loss")
    ((number, reason),) = stage.lost
    assert number == host
    return reason


@played
async def test_one_that_dies_before_the_start(stage: Stage) -> None:
    coordinator = await stage.ready()
    await stage.agents[1].die()
    assert "the connection was cut" in await lost(stage, 1)
    assert coordinator.lost.keys() == {1}
    with pytest.raises(LostError, match="host1"):
        await coordinator.start()
    assert stage.agents[0].asked("start") == []
    with pytest.raises(RunError, match="host1 was lost before the start"):
        await coordinator.rejoin(1, resume)


@played
async def test_one_that_dies_while_it_is_asked(stage: Stage) -> None:
    stage.agents[1].hangs.add("prepare")
    coordinator = stage.coordinator()
    await coordinator.connect(30)
    preparing = asyncio.ensure_future(coordinator.prepare(EXPERIMENT))
    await until(lambda: stage.agents[1].requests, "the request")
    await stage.agents[1].die()
    with pytest.raises(LostError, match="host1 is lost: the connection was cut"):
        await preparing
    await lost(stage, 1)


@played
async def test_one_that_dies_while_it_runs_and_is_started_again(stage: Stage) -> None:
    coordinator = await stage.running()
    agent = stage.agents[1]
    await agent.die()
    await lost(stage, 1)
    with pytest.raises(LostError, match=r"host1 \(127\.0\.0\.1:\d+\) is lost: the connection"):
        await coordinator.request(1, {"do": "bind"})
    with pytest.raises(LostError):
        await coordinator.broadcast({"do": "cut", "nodes": [1]})
    answers = await coordinator.broadcast({"do": "cut", "nodes": [1]}, everyone=False)
    assert answers == {0: {"did": "cut"}}
    agent.requests.clear()
    agent.offset_ns = 80 * MS  # as after a restart of the machine
    await agent.listen()
    facts = await coordinator.rejoin(1, resume)
    assert facts == {"digest": "d1", "datapath": "fake"}
    (request,) = agent.requests
    assert request["do"] == "prepare"
    again = request["resume"]
    assert (again["ports"], again["held"]) == ([[3, 1, "/proc/7/ns/net"]], [2])
    assert request["starts"] == [1, 2]
    assert [told["starts"] for told in stage.agents[0].asked("starts")] == [[1, 2]]
    assert abs(again["t0_ns"] - 80 * MS - coordinator.t0_ns) <= 5 * MS
    assert coordinator.lost == {}
    assert await coordinator.request(1, {"do": "status"}) == {"did": "status"}
    assert len(stage.lost) == 1


@played
async def test_a_cut_connection_to_the_same_process_is_only_made_again(stage: Stage) -> None:
    coordinator = await stage.running()
    stage.agents[0].cut()
    await lost(stage, 0)
    assert await coordinator.rejoin(0, resume) is None
    assert len(stage.agents[0].asked("prepare")) == 1
    assert await coordinator.request(0, {"do": "status"}) == {"did": "status"}
    assert [told["starts"] for told in stage.agents[0].asked("starts")] == [[1, 1]]
    stage.agents[0].say(say="notice", text="still here")
    await until(lambda: stage.said, "what it says")


@played
async def test_a_connection_that_nobody_knows_to_be_dead_is_replaced(stage: Stage) -> None:
    """As when a process has ended and its machine is silent: the driver knows first."""
    coordinator = await stage.running()
    assert await coordinator.rejoin(1, resume) is None
    assert await lost(stage, 1) == "another connection takes its place"
    assert coordinator.lost == {}
    assert await coordinator.request(1, {"do": "status"}) == {"did": "status"}
    assert len(stage.agents[1].channels) == 2


@played
async def test_who_is_away_hears_later_of_another_that_was_started_again(stage: Stage) -> None:
    """A start that is not announced would not be believed."""
    coordinator = await stage.running()
    stage.agents[0].cut()
    for start in (2, 3):
        await stage.agents[1].die()
        await until(lambda: coordinator.lost.keys() == {0, 1}, "both losses")
        await stage.agents[1].listen()
        assert await coordinator.rejoin(1, resume) is not None
        assert stage.agents[1].asked("prepare")[-1]["starts"] == [1, start]
    assert stage.agents[0].asked("starts") == []
    assert await coordinator.rejoin(0, resume) is None
    assert [told["starts"] for told in stage.agents[0].asked("starts")] == [[1, 3]]


@played
async def test_nothing_reaches_a_new_process_before_its_preparation(stage: Stage) -> None:
    """And nothing is missed: what is done while it comes back is in `resume`, or comes after."""
    coordinator = await stage.running()
    agent = stage.agents[1]
    await agent.die()
    await lost(stage, 1)
    agent.requests.clear()
    agent.delays["prepare"] = 0.2
    agent.delays["time"] = 0.01
    await agent.listen()
    cuts: list[int] = []

    def now() -> Mapping[str, object]:
        return {"ports": [], "held": list(cuts)}

    async def busy() -> None:
        for n in range(10_000):
            cuts.append(n)
            await coordinator.broadcast({"do": "cut", "nodes": [n]}, everyone=False)
            await asyncio.sleep(0.005)

    working = asyncio.ensure_future(busy())
    await coordinator.rejoin(1, now, seconds=30)
    await until(lambda: len(agent.requests) > 5, "cuts after the preparation")
    working.cancel()
    await asyncio.wait({working})
    first, *later = agent.requests
    assert first["do"] == "prepare"
    held = first["resume"]["held"]
    assert held == list(range(len(held)))
    assert len(held) > 3
    seen = [request["nodes"][0] for request in later]
    assert seen[0] in (len(held) - 1, len(held)), "one may be in both, none in neither"
    assert seen == list(range(seen[0], seen[0] + len(seen)))


@played
async def test_a_restart_with_another_plan_or_none_at_all(stage: Stage) -> None:
    coordinator = await stage.running()
    agent = stage.agents[1]
    await agent.die()
    await lost(stage, 1)
    with pytest.raises(LostError, match="host1: cannot connect to"):
        await coordinator.rejoin(1, resume, seconds=1)
    await agent.listen()
    agent.behave["prepare"] = lambda _request: {"digest": "d7"}
    with pytest.raises(AgentError, match="host1 has another plan"):
        await coordinator.rejoin(1, resume)


def test_one_that_hangs_is_found_by_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "MEASURE_SECONDS", 0.05)
    monkeypatch.setattr("runtime.coordinator.agent_link.TIME_SECONDS", 1.5)

    async def play(stage: Stage) -> None:
        coordinator = await stage.running()
        stage.agents[0].hangs.add("time")
        assert await lost(stage, 0) == "no answer to `time` within 1.5 s"
        assert coordinator.lost.keys() == {0}
        assert await coordinator.request(1, {"do": "status"}) == {"did": "status"}

    act(play)


LYING_CLOCKS: list[Mapping[str, object]] = [
    {},
    {"t2": 1},
    {"t2": "1", "t3": 2},
    {"t2": 1.5, "t3": 2},
    {"t2": True, "t3": 2},
    {"t2": None, "t3": None},
    {"t2": [], "t3": {}},
    {"t2": 5, "t3": 4},
    {"t2": 0, "t3": 10**18},
]


@pytest.mark.parametrize("times", LYING_CLOCKS)
def test_a_clock_that_makes_no_sense(times: Mapping[str, object]) -> None:
    async def play(stage: Stage) -> None:
        coordinator = await stage.ready()
        stage.agents[1].behave["time"] = lambda _request: times
        with pytest.raises(LostError, match="host1 is lost: its clock makes no sense"):
            await coordinator.measure()
        assert "its clock makes no sense" in await lost(stage, 1)

    act(play)


LIES: list[dict[str, Any]] = [
    {"say": None},
    {"say": {}},
    {"say": "welcome", "identity": "again"},
    {"say": "applied"},
    {"say": "applied", "step": -1, "elapsed_ns": 1, "late": False},
    {"say": "applied", "step": "0", "elapsed_ns": 1, "late": False},
    {"say": "applied", "step": 0, "elapsed_ns": 1.0, "late": False},
    {"say": "applied", "step": 0, "elapsed_ns": 1, "late": 0},
    {"say": "applied", "step": True, "elapsed_ns": 1, "late": False},
    {"say": "applied", "step": 0, "elapsed_ns": 1, "late": False, "more": 1},
    {"say": "sample", "elapsed_ns": 1, "pairs": None},
    {"say": "sample", "elapsed_ns": 1, "pairs": [1]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [[1, 2]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [[1, 2, 3, 4, 5, 6, 7, 8, 9, "10"]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [[1, 2, 3, 4, 5, 6, 7, 8, 9, -1]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [], "digests": [[0, 1]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [], "digests": [[0, 1, "x" * 16]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [], "digests": [[0, -1, "0" * 16]]},
    {"say": "sample", "elapsed_ns": 1, "pairs": [], "digests": [[0, 1, 7]]},
    {"say": "life", "step": 0, "node": 0, "what": "dance", "elapsed_ns": 1, "status": ""},
    {"say": "life", "step": 0, "node": 0, "what": ["join"], "elapsed_ns": 1, "status": ""},
    {"say": "life", "step": 0, "node": -1, "what": "join", "elapsed_ns": 1, "status": ""},
    {"say": "life", "step": 0, "node": 0, "what": "join", "elapsed_ns": 1, "status": None},
    {"say": "report", "node": 0, "line": 0, "event": "held"},
    {"say": "report", "node": 0, "line": 0, "event": "danced", "elapsed_ns": 1},
    {"say": "report", "node": 0, "line": 0, "event": ["held"], "elapsed_ns": 1},
    {"say": "report", "node": 0, "line": 0, "event": "started", "elapsed_ns": 1, "pid": "7"},
    {"say": "report", "node": 0, "line": 0, "event": "ended", "elapsed_ns": 1, "status": -1},
    {"say": "report", "node": 0, "line": 0, "event": "held", "elapsed_ns": 1, "more": 1},
    {"say": "notice", "text": 1},
    {"say": "failed"},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_what_nobody_says_gets_no_further(lie: dict[str, Any]) -> None:
    async def play(stage: Stage) -> None:
        await stage.running()
        stage.agents[0].channels[0].send(lie)
        reason = await lost(stage, 0)
        assert reason.startswith(("it sent ", "its `"))
        assert stage.said == []

    act(play)


@played
async def test_an_error_of_ours_in_a_callback_is_a_loss_too(stage: Stage) -> None:
    """A callback that breaks must not leave a run that hears nothing and goes on."""

    def broken(_host: int, _message: object) -> None:
        raise ZeroDivisionError("oops")

    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    hosts = [agent.host for agent in stage.agents]
    losses: list[tuple[int, str]] = []
    coordinator = Coordinator(
        hosts, bytes(range(32)), broken, lambda host, reason: losses.append((host, reason))
    )
    stage.coordinators.append(coordinator)
    await coordinator.connect(30)
    stage.agents[1].say(say="notice", text="x")
    await until(lambda: losses, "the loss")
    assert losses == [(1, "its message could not be handled: ZeroDivisionError('oops')")]


@played
async def test_a_coordinator_that_is_gone_is_seen_by_all_agents(stage: Stage) -> None:
    coordinator = await stage.running()
    for link in coordinator._links:
        assert link._asker is not None
        link._asker.channel.give_up("killed", "unread")
    for agent in stage.agents:
        await until(agent.channels[0].closed.done, "the end")
        assert not agent.channels[0].clean


def test_many_agents_that_come_and_go() -> None:
    """Each of eight dies and comes back twice, side by side."""

    async def play(stage: Stage) -> None:
        coordinator = await stage.running()

        async def suffer(agent: FakeAgent) -> None:
            for turn in range(2):
                losses = [host for host, _ in stage.lost].count(agent.number)
                assert losses == turn
                await agent.die()
                await until(lambda: coordinator.lost.get(agent.number), "the loss")
                await agent.listen()
                assert await coordinator.rejoin(agent.number, resume) is not None

        await asyncio.gather(*map(suffer, stage.agents))
        assert coordinator.lost == {}
        assert len(stage.lost) == 16
        assert len(await coordinator.broadcast({"do": "status"})) == 8

    act(play, 8)


def test_nothing_leaks_however_often_a_connection_is_lost() -> None:
    """Descriptors and tasks after a hundred losses are those after the first few."""

    async def play(stage: Stage) -> None:
        coordinator = await stage.running()
        agent = stage.agents[0]

        async def lose(turn: int) -> None:
            agent.cut()
            await until(lambda: len(stage.lost) == turn, "the loss")
            assert await coordinator.rejoin(0, resume) is None

        def held() -> tuple[int, int]:
            tasks = [task for task in asyncio.all_tasks() if not task.done()]
            return len(list(Path("/proc/self/fd").iterdir())), len(tasks)

        for turn in range(1, 4):
            await lose(turn)
        before = held()
        for turn in range(4, 104):
            await lose(turn)
        await until(lambda: held() == before, f"as much as before: {before}, now {held()}")

    act(play, 1)
