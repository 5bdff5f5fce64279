"""The coordinator with real agents, as processes: clocks that differ, SIGKILL, SIGSTOP, garbage.

Datapaths are stand-ins in this process, so what agents commit, and for when, is seen on one clock.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress

import pytest

from runtime.coordinator import coordinator as coordinators
from runtime.coordinator.link import AgentError
from runtime.errors import RunError
from tests.coordinator.agents import RealAgent, Scene, act
from tests.waiting import until

MS = 1_000_000
TEXT = """seed 4
service a img=x replicas=3
service b img=x replicas=3
bridge s1
bridge s2
link a--s1 latency=2 up=10Mb down=10Mb
link b--s2 latency=3 up=20Mb down=20Mb
link s1--s2 latency=5 up=50Mb down=50Mb
at 800ms s1--s2 set latency=9
at 1600ms b.1 crash
at 2400ms s1--s2 set up=30Mb down=30Mb
at 3200ms b.1 join
at 4000ms s1--s2 set latency=1
at 4800ms quit
"""


def test_clocks_that_differ_by_50_ms_and_more_change_the_network_together() -> None:
    offsets = (0, 50 * MS, -50 * MS, 3_600_000 * MS)

    async def play(scene: Scene) -> None:
        for agent, offset in zip(scene.agents, offsets, strict=True):
            await agent.start(scene.path, offset_ns=offset)
        t0 = await scene.begin()
        await scene.all_applied()
        due = [t0 + step.due_ns for step in scene.timeline.steps]
        for number, (record, offset) in enumerate(
            zip(scene.coordinator.offsets(), offsets, strict=True)
        ):
            bound = record["largest_bound_ns"]
            assert isinstance(bound, int)
            first = record["first"]
            assert isinstance(first, dict)
            assert abs(first["offset_ns"] - offset) <= bound
            commits = [one for one in scene.agents[number].datapath.history if one.at_ns]
            asked = {
                min(due, key=lambda moment, at=one.at_ns: abs(moment - at))  # type: ignore[misc]
                for one in commits
            }
            assert {due[0], due[1], due[2]} <= asked
            for one in commits:
                assert min(abs(moment - one.at_ns) for moment in due) <= bound
            for step, message in scene.applied(number).items():
                # Never early, and elapsed counts from the same T0.
                assert message["elapsed_ns"] >= scene.timeline.steps[step].due_ns - 2 * bound
        stopped = await scene.coordinator.stop()
        assert stopped.missing == {}
        assert [await agent.ended() for agent in scene.agents] == [0] * 4

    act(TEXT, 4, play)


def paths_after(kill: bool) -> list[dict[tuple[int, int], dict[str, int | str]]]:
    """What the datapaths of two hosts do at the end, one agent of which is killed or not."""
    found: list[dict[tuple[int, int], dict[str, int | str]]] = []

    async def play(scene: Scene) -> None:
        for agent in scene.agents:
            await agent.start(scene.path)
        await scene.begin()
        victim = scene.agents[1]
        if kill:
            await until(lambda: 1 in scene.applied(1), "the second step")
            victim.signal(signal.SIGKILL)
            assert await victim.ended() == -signal.SIGKILL
            await until(lambda: scene.lost, "the loss")
            known = len(scene.applied(1))
            await until(lambda: 3 in scene.applied(0), "two steps that it misses")
            await victim.start(scene.path, resume=True)
            resume = {"ports": [], "held": [], "applied": known}
            assert await scene.coordinator.rejoin(1, lambda: resume, 60) is not None
        await scene.all_applied()
        late = {step for step, said in scene.applied(1).items() if said["late"]}
        assert ({2, 3} <= late) if kill else not late
        assert not any(said["late"] for said in scene.applied(0).values())
        status = await scene.coordinator.request(1, {"do": "status"})
        assert status["channel"]["authenticated"] == 1
        found.extend(agent.datapath.told.open_paths() for agent in scene.agents)

    act(TEXT, 2, play)
    return found


def test_an_agent_that_was_killed_comes_back_to_the_same_network() -> None:
    undisturbed = paths_after(kill=False)
    assert all(undisturbed)
    assert paths_after(kill=True) == undisturbed


def test_an_agent_that_hangs_is_lost_and_one_that_goes_on_is_taken_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.coordinator.link.TIME_SECONDS", 2.5)
    monkeypatch.setattr(coordinators, "MEASURE_SECONDS", 0.1)

    async def play(scene: Scene) -> None:
        for agent in scene.agents:
            await agent.start(scene.path)
        await scene.begin()
        await until(lambda: 1 in scene.applied(1), "the second step")
        scene.agents[1].signal(signal.SIGSTOP)
        await until(lambda: scene.lost, "the loss")
        assert scene.lost == [(1, "no answer to `time` within 2.5 s")]
        scene.agents[1].signal(signal.SIGCONT)
        assert await scene.coordinator.rejoin(1, dict, 60) is None
        await scene.all_applied()  # what it had to say meanwhile is not lost either
        assert (await scene.coordinator.stop()).missing == {}

    act(TEXT, 2, play)


def test_agents_whose_coordinator_is_gone_cut_everything_and_end() -> None:
    async def play(scene: Scene) -> None:
        for agent in scene.agents:
            await agent.start(scene.path, lost_seconds=4)
        await scene.begin()
        await until(lambda: all(1 in scene.applied(n) for n in (0, 1)), "the second step")
        scene.coordinator._stop_watching()
        for link in scene.coordinator._links:
            assert link._asker is not None
            link.leaving = True
            link._asker.channel.give_up("killed", "test")
        assert [await agent.ended() for agent in scene.agents] == [4, 4]
        for agent in scene.agents:
            assert agent.datapath.lease_ns == 1
            assert "the coordinator is lost: all traffic is cut" in agent.log.read_text()

    act(TEXT, 2, play)


def listens(agent: RealAgent) -> bool:
    """Whether it takes connections already: it is Python, and may take its time to begin."""
    with socket.socket() as trial:
        return trial.connect_ex((agent.address, agent.host.port)) == 0


def test_another_plan_and_another_key() -> None:
    async def play(scene: Scene) -> None:
        await scene.agents[0].start(scene.path)
        await scene.agents[1].start(scene.path, key=bytes(32))
        await until(lambda: all(map(listens, scene.agents)), "both agents")
        with pytest.raises(RunError, match=r"1 of 2 agents .* host1: .* this run's key"):
            await scene.coordinator.connect(4)
        scene.agents[1].signal(signal.SIGKILL)
        await scene.agents[1].ended()
        await scene.agents[1].start(scene.path)
        await scene.coordinator.connect(30)
        other = scene.experiment()
        object.__setattr__(other, "digest", "0" * 64)
        with pytest.raises(AgentError) as error:
            await scene.coordinator.prepare(other)
        assert error.value.message.startswith("host0 cannot prepare: the plan in ")
        assert scene.plan.digest in error.value.message
        assert "0" * 64 in error.value.message

    act(TEXT, 2, play)


def test_garbage_at_every_door_while_it_runs() -> None:
    """Strangers at the control port and datagrams at the other, as fast as they go in."""

    done = [0] * 4

    async def stranger(number: int, address: str, enough: asyncio.Event) -> None:
        while not enough.is_set():
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(address, 7474)
                writer.write(os.urandom(300) if done[number] % 2 else b"")
                if done[number] % 3 == 0:
                    await asyncio.wait_for(reader.read(100), 5)
                writer.close()
                done[number] += 1
            await asyncio.sleep(0)

    async def datagrams(number: int, address: str, enough: asyncio.Event) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
            while not enough.is_set():
                source.sendto(os.urandom(1 + done[number] % 1400), (address, 7473))
                done[number] += 1
                if done[number] % 50 == 0:
                    await asyncio.sleep(0.001)

    async def play(scene: Scene) -> None:
        for agent in scene.agents:
            await agent.start(scene.path)
        await scene.begin()
        enough = asyncio.Event()
        address = scene.agents[1].address
        noise = [
            asyncio.ensure_future(make(number, address, enough))
            for number, make in enumerate((stranger, stranger, stranger, datagrams))
        ]
        await scene.all_applied()
        await until(lambda: min(done) > 30, "enough garbage")
        enough.set()
        await asyncio.gather(*noise)
        status = (await scene.coordinator.stop()).answers[1]
        counted = status["channel"]
        assert counted["authenticated"] == 1
        assert counted["garbage"] > 10
        assert counted["connections"] > 30
        assert scene.lost == []

    act(TEXT, 2, play)
