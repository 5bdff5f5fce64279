"""The coordinator with real agents, as processes: clocks that differ, SIGKILL, SIGSTOP, garbage.

Datapaths are stand-ins in this process, so what agents commit, and for when, is seen on one clock.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.extension import extend
from compiler.pipeline import write
from compiler.plan.reader import read_plan
from runtime.backend.hosts.agent_network import shard_requests
from runtime.coordinator import coordinator as coordinators
from runtime.coordinator.agent_link import AgentError, Host
from runtime.coordinator.says import StepApplied
from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.agent.stage import DEADLINE_SECONDS, MS, Stage, act, act_in_time
from tests.waiting import until

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


async def begin(stage: Stage) -> int:
    """From connecting to the start. Returns T0."""
    await stage.ready()
    return await stage.coordinator.start(lead_ns=2_500 * MS)


def applied(stage: Stage, host: int) -> dict[int, StepApplied]:
    """What a host said of its steps."""
    said = stage.applications(host)
    found = {message.step: message for message in said}
    assert len(found) == len(said), "told twice"
    return found


async def all_applied(stage: Stage) -> Sequence[int]:
    """When each step was due, in ns from T0."""
    steps = Schedule(stage.plan, RunOptions()).steps
    hosts, numbers = range(len(stage.processes)), set(range(len(steps)))
    await until(lambda: all(applied(stage, n).keys() == numbers for n in hosts), "the last step")
    return [step.due_ns for step in steps]


def test_clocks_that_differ_by_50_ms_and_more_change_the_network_together(tmp_path: Path) -> None:
    offsets = (0, 50 * MS, -50 * MS, 3_600_000 * MS)

    async def play(stage: Stage) -> None:
        t0 = await begin(stage)
        elapsed = await all_applied(stage)
        due = [t0 + due_ns for due_ns in elapsed]
        for number, (record, offset) in enumerate(
            zip(stage.coordinator.offsets(), offsets, strict=True)
        ):
            bound = record["largest_bound_ns"]
            assert isinstance(bound, int)
            first = record["first"]
            assert isinstance(first, dict)
            assert abs(first["offset_ns"] - offset) <= bound
            commits = [one for one in stage.datapaths[number].history if one.at_ns]
            asked = {
                min(due, key=lambda moment, at=one.at_ns: abs(moment - at))  # type: ignore[misc]
                for one in commits
            }
            assert {due[0], due[1], due[2]} <= asked
            for one in commits:
                assert min(abs(moment - one.at_ns) for moment in due) <= bound
            for step, message in applied(stage, number).items():
                # Never early, and elapsed counts from the same T0.
                assert message.elapsed_ns >= elapsed[step] - 2 * bound
        stopped = await stage.coordinator.stop()
        assert stopped.missing == {}
        assert [await stage.ended(host) for host in range(4)] == [0] * 4

    other = {host: {"clock_offset_ns": offset} for host, offset in enumerate(offsets)}
    act(tmp_path, TEXT, 4, play, other=other)


def paths_after(
    directory: Path, *, kill: bool
) -> list[dict[tuple[int, int], dict[str, int | str]]]:
    """What the datapaths of two hosts do at the end, one agent of which is killed or not."""
    found: list[dict[tuple[int, int], dict[str, int | str]]] = []

    async def play(stage: Stage) -> None:
        await begin(stage)
        if kill:
            await until(lambda: 1 in applied(stage, 1), "the second step")
            stage.processes[1].kill()
            assert await stage.ended(1) == -signal.SIGKILL
            await until(lambda: stage.lost, "the loss")
            known = len(applied(stage, 1))
            await until(lambda: 3 in applied(stage, 0), "two steps that it misses")
            stage.again(1)
            resume = {"ports": [], "held": [], "applied": known}
            assert await stage.coordinator.rejoin(1, lambda: resume, 60) is not None
        await all_applied(stage)
        late = {step for step, said in applied(stage, 1).items() if said.late}
        assert ({2, 3} <= late) if kill else not late
        assert not any(said.late for said in applied(stage, 0).values())
        status = await stage.coordinator.request(1, {"do": "status"})
        assert status["channel"]["authenticated"] == 1
        found.extend(datapath.told.open_paths() for datapath in stage.datapaths)

    directory.mkdir()
    act(directory, TEXT, 2, play)
    return found


def test_an_agent_that_was_killed_comes_back_to_the_same_network(tmp_path: Path) -> None:
    undisturbed = paths_after(tmp_path / "undisturbed", kill=False)
    assert all(undisturbed)
    assert paths_after(tmp_path / "killed", kill=True) == undisturbed


def test_an_agent_that_hangs_is_lost_and_one_that_goes_on_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.coordinator.agent_link.TIME_SECONDS", 2.5)
    monkeypatch.setattr(coordinators, "MEASURE_SECONDS", 0.1)

    async def play(stage: Stage) -> None:
        await begin(stage)
        await until(lambda: 1 in applied(stage, 1), "the second step")
        stage.processes[1].send_signal(signal.SIGSTOP)
        await until(lambda: stage.lost, "the loss")
        assert stage.lost == [(1, "no answer to `time` within 2.5 s")]
        stage.processes[1].send_signal(signal.SIGCONT)
        assert await stage.coordinator.rejoin(1, dict, 60) is None
        await all_applied(stage)  # what it had to say meanwhile is not lost either
        assert (await stage.coordinator.stop()).missing == {}

    act_in_time(tmp_path, TEXT, 2, play)


def test_agents_go_over_to_a_longer_plan_together_while_they_run(tmp_path: Path) -> None:
    text = TEXT.replace("at 4000ms s1--s2 set latency=1\n", "")

    async def play(stage: Stage) -> None:
        place, before = stage.directory, stage.plan.digest
        await begin(stage)
        await until(lambda: all(1 in applied(stage, n) for n in (0, 1)), "the second step")
        made = extend(stage.plan, 1, "s1--s2 set latency=30ms\nat +700ms a.0 crash", 2_300 * MS)
        write(made, place / "longer.plan")
        stage.plan = read_plan(place / "longer.plan")
        told = {"do": "extend", "base": before, "digest": stage.plan.digest, "left": "longer.plan"}

        with pytest.raises(AgentError, match="has the digest"):
            await stage.coordinator.broadcast({**told, "digest": "0" * 64})
        with pytest.raises(AgentError, match="not made ready"):
            await stage.coordinator.broadcast({"do": "adopt", "digest": stage.plan.digest})
        answers = await stage.coordinator.broadcast(told)
        assert all(answer["left_ns"] > 0 for answer in answers.values())
        await stage.coordinator.broadcast({"do": "forget"})
        answers = await stage.coordinator.broadcast(told)
        assert all(answer["left_ns"] > 0 for answer in answers.values())
        for _ in range(2):  # one of them might not have been heard
            await stage.coordinator.broadcast({"do": "adopt", "digest": stage.plan.digest})
        await all_applied(stage)
        assert not stage.late_steps()
        paths = [datapath.told.open_paths() for datapath in stage.datapaths]
        # From the b of another host, over s1--s2; a.0 is gone.
        delays = {path["delay"] for found in paths for path in found.values()}
        assert (2 + 30 + 3) * MS in delays
        assert (2 + 9 + 3) * MS not in delays
        assert not any(0 in pair for found in paths for pair in found)
        assert (await stage.coordinator.stop()).missing == {}

    act_in_time(tmp_path, text, 2, play)


def test_agents_that_share_no_files_get_a_longer_plan_in_shards(tmp_path: Path) -> None:
    """Also one that is started again: what it finds is the plan of the beginning."""
    text = TEXT.replace("at 4000ms s1--s2 set latency=1\n", "")

    async def play(stage: Stage) -> None:
        before = stage.plan.digest
        await begin(stage)
        await until(lambda: all(1 in applied(stage, n) for n in (0, 1)), "the second step")
        made = extend(stage.plan, 1, "s1--s2 set latency=30ms", 2_300 * MS)
        stage.plan = made.plan
        shards = shard_requests(made.plan)
        told = {"do": "extend", "base": before, "digest": made.plan.digest, "left": ""}
        with pytest.raises(AgentError, match="has no shards"):
            await stage.coordinator.broadcast(told)
        other = extend(stage.plan, 2, "s1--s2 set latency=3ms", 2_300 * MS).plan
        await stage.coordinator.deliver(shard_requests(other), DEADLINE_SECONDS)
        with pytest.raises(AgentError, match="has the digest"):
            await stage.coordinator.broadcast(told)
        await stage.coordinator.deliver(shards, DEADLINE_SECONDS)
        answers = await stage.coordinator.broadcast(told)
        assert all(answer["left_ns"] > 0 for answer in answers.values())
        await stage.coordinator.broadcast({"do": "adopt", "digest": made.plan.digest})
        grown = replace(stage.experiment(), digest=made.plan.digest, shards=shards)
        stage.coordinator.follow(grown)
        stage.processes[1].kill()
        await until(lambda: stage.lost, "the loss")
        resume = {"ports": [], "held": [], "applied": max(applied(stage, 1)) + 1}
        stage.again(1)
        assert await stage.coordinator.rejoin(1, lambda: resume, DEADLINE_SECONDS) is not None
        await all_applied(stage)
        delays = {
            path["delay"]
            for datapath in stage.datapaths
            for path in datapath.told.open_paths().values()
        }
        assert (2 + 30 + 3) * MS in delays
        assert (await stage.coordinator.stop()).missing == {}

    act_in_time(tmp_path, text, 2, play)


def test_agents_whose_coordinator_is_gone_cut_everything_and_end(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage)
        await until(lambda: all(1 in applied(stage, n) for n in (0, 1)), "the second step")
        stage.coordinator._stop_watching()
        for link in stage.coordinator._links:
            assert link._asker is not None
            link.leaving = True
            link._asker.channel.give_up("killed", "test")
        assert [await stage.ended(host) for host in range(2)] == [4, 4]
        assert [datapath.lease_ns for datapath in stage.datapaths] == [1, 1]
        log = (tmp_path / "agents.log").read_text()
        assert log.count("the coordinator is lost: all traffic is cut") == 2

    act(tmp_path, TEXT, 2, play, lost_seconds=4)


def listens(host: Host) -> bool:
    """Whether it takes connections already: it is Python, and may take its time to begin."""
    with socket.socket() as trial:
        return trial.connect_ex((host.address, host.port)) == 0


def test_another_plan_and_another_key(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(bytes(32))

    async def play(stage: Stage) -> None:
        await until(lambda: all(map(listens, stage.coordinator.hosts)), "both agents")
        with pytest.raises(RunError, match=r"1 of 2 agents .* host1: .* this run's key"):
            await stage.coordinator.connect(4)
        stage.processes[1].kill()
        await stage.ended(1)
        key = str(tmp_path / "key")
        stage.processes[1] = stage.start_agent(replace(stage.options(1), key=key))
        await stage.coordinator.connect(30)
        other = stage.experiment()
        object.__setattr__(other, "digest", "0" * 64)
        with pytest.raises(AgentError) as error:
            await stage.coordinator.prepare(other)
        assert error.value.message.startswith("host0 cannot prepare: the plan in ")
        assert stage.plan.digest in error.value.message
        assert "0" * 64 in error.value.message

    act(tmp_path, TEXT, 2, play, other={1: {"key": str(tmp_path / "other")}})


def test_garbage_at_every_door_while_it_runs(tmp_path: Path) -> None:
    """Strangers at the control port and datagrams at the other: first as fast as they go in, then
    some all the time."""

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
            await asyncio.sleep(0 if done[number] < 300 else 0.01)

    async def datagrams(number: int, address: str, enough: asyncio.Event) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
            while not enough.is_set():
                source.sendto(os.urandom(1 + done[number] % 1400), (address, 7473))
                done[number] += 1
                if done[number] % 50 == 0:
                    await asyncio.sleep(0.001 if done[number] < 10_000 else 0.01)

    async def play(stage: Stage) -> None:
        await begin(stage)
        enough = asyncio.Event()
        address = stage.coordinator.hosts[1].address
        noise = [
            asyncio.ensure_future(make(number, address, enough))
            for number, make in enumerate((stranger, stranger, stranger, datagrams))
        ]
        await all_applied(stage)
        await until(lambda: min(done) > 30, "enough garbage")
        enough.set()
        await asyncio.gather(*noise)
        status = (await stage.coordinator.stop()).answers[1]
        counted = status["channel"]
        assert counted["authenticated"] == 1
        assert counted["garbage"] > 10
        assert counted["connections"] > 30
        assert stage.lost == []

    act(tmp_path, TEXT, 2, play)
