"""A run's agents from gathering them to the end, all going well, or refused before the start."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest

from runtime.coordinator import coordinator as coordinators
from runtime.coordinator.agent_link import AgentError, Host, LostError
from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.rpc import calls, jsonobject
from tests.coordinator.stage import EXPERIMENT, Stage, act, played
from tests.doubles.agent import HERE, FakeAgent, SlowLink, refuse
from tests.waiting import until

MS = 1_000_000


@played
async def test_a_run_from_the_beginning_to_the_end(stage: Stage) -> None:
    coordinator = stage.coordinator()
    await coordinator.connect(30)
    facts = await coordinator.prepare(EXPERIMENT)
    assert facts == [{"digest": "d1", "datapath": "fake"}] * 2
    assert stage.agents[1].requests == [
        {
            "do": "prepare",
            "run": "run1",
            "digest": "d1",
            "host": 1,
            "hosts": [
                {"name": "host0", "address": HERE},
                {"name": "host1", "address": HERE},
            ],
            "starts": [1, 1],
            "placement": [0, 1, 0, -1],
            "addresses": [["10.1.0.1", ""], ["", "fd01::1"], ["10.1.0.2", ""]],
            "networks": ["10.1.0.0/24", "fd01::/64"],
            "options": RunOptions().to_record(),
        }
    ]
    before = time.monotonic_ns()
    t0 = await coordinator.start(lead_ns=30_000 * MS)
    assert coordinator.t0_ns == t0
    assert before + 30_000 * MS <= t0
    assert await coordinator.request(1, {"do": "status"}) == {"did": "status"}
    answers = await coordinator.broadcast({"do": "cut", "nodes": [2]})
    assert answers == {0: {"did": "cut"}, 1: {"did": "cut"}}
    stage.agents[0].say(say="applied", step=0, elapsed_ns=-5, late=False)
    stage.agents[1].say(say="notice", text="hello")
    stage.agents[1].say(say="sample", elapsed_ns=7, pairs=[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
    await until(lambda: len(stage.said) == 3, "what they say")
    assert sorted(host for host, _ in stage.said) == [0, 1, 1]
    stopped = await coordinator.stop()
    assert stopped.answers == {0: {"did": "stop"}, 1: {"did": "stop"}}
    assert stopped.missing == {}
    await coordinator.close()
    assert stage.lost == []
    assert [agent.channels[0].reason for agent in stage.agents] == ["closed"] * 2


def test_what_all_agents_get_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preparation has the addresses of all instances, and there may be a thousand agents."""
    encoded: list[Mapping[str, object]] = []

    def encode(message: Mapping[str, object]) -> bytes:
        encoded.append(message)
        return jsonobject.encode(message)

    monkeypatch.setattr(calls, "encode", encode)

    async def play(stage: Stage) -> None:
        coordinator = await stage.ready()
        (shared,) = [message for message in encoded if "addresses" in message]
        assert "host" not in shared
        for agent in stage.agents:
            (prepared,) = agent.asked("prepare")
            assert prepared.pop("host") == agent.number
            assert prepared == shared
        encoded.clear()
        await coordinator.broadcast({"do": "bind", "step": 1, "bind": [[1, 2]]})
        assert [message for message in encoded if message.get("do") == "bind"] == [
            {"do": "bind", "step": 1, "bind": [[1, 2]]}
        ]
        assert [agent.asked("bind")[0]["bind"] for agent in stage.agents] == [[[1, 2]]] * 3

    act(play, 3)


def test_clocks_that_differ_start_at_the_same_moment() -> None:
    """±50 ms and an hour: T0 is the same moment for all, within what was measured."""
    offsets = [0, 50 * MS, -50 * MS, 3_600_000 * MS]

    async def play(stage: Stage) -> None:
        coordinator = await stage.ready()
        found = await coordinator.measure()
        for offset, measured in zip(offsets, found, strict=True):
            assert abs(measured.offset_ns - offset) <= measured.bound_ns <= 5 * MS
        t0 = await coordinator.start(lead_ns=30_000 * MS)
        for agent, record in zip(stage.agents, coordinator.offsets(), strict=True):
            (start,) = agent.asked("start")
            assert abs(start["t0_ns"] - agent.offset_ns - t0) <= record["largest_bound_ns"]
            # What an agent calls elapsed on its own clock is what has elapsed here.
            before = time.monotonic_ns()
            elapsed = agent.clock() - start["t0_ns"]
            after = time.monotonic_ns()
            bound = record["largest_bound_ns"]
            assert isinstance(bound, int)
            assert before - t0 - bound <= elapsed <= after - t0 + bound

    act(play, [FakeAgent(n, offset) for n, offset in enumerate(offsets)])


def test_unequal_directions_are_within_the_bound() -> None:
    """40 ms there, nothing back: the offset is wrong by some 20 ms, and the bound says so."""

    async def play(stage: Stage) -> None:
        slow = SlowLink(stage.agents[0].port, 0.040, 0.0)
        await slow.open()
        hosts = [Host("host0", HERE, slow.port)]
        coordinator = await stage.ready(hosts=hosts, clock_budget_ns=500 * MS)
        (found,) = await coordinator.measure()
        assert 20 * MS <= found.bound_ns < 500 * MS
        assert abs(found.offset_ns - 50 * MS) <= found.bound_ns
        await coordinator.close()
        await slow.close()

    act(play, [FakeAgent(0, 50 * MS)])


def test_a_clock_that_is_not_known_well_enough_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinators, "PATIENCE_SECONDS", 0.5)

    async def play(stage: Stage) -> None:
        slow = SlowLink(stage.agents[1].port, 0.06, 0.06)
        await slow.open()
        hosts = [stage.agents[0].host, Host("host1", HERE, slow.port)]
        coordinator = await stage.ready(hosts=hosts, clock_budget_ns=50 * MS)
        with pytest.raises(AgentError) as error:
            await coordinator.start()
        assert error.value.host == 1
        words = error.value.message
        assert words.startswith("the clock of host1 is not known well enough: it is ")
        found = re.search(r"give or take ([\d.]+) ms; the budget is 50\.000 ms$", words)
        assert found
        assert float(found[1]) >= 60
        assert "--clock-budget" in error.value.remedy
        assert all(agent.asked("start") == [] for agent in stage.agents)
        await coordinator.close()
        await slow.close()

    act(play)


def test_a_clock_that_is_only_unknown_for_a_moment_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The agent is busy at first: its answers take 30 ms each, of which it does not know."""
    monkeypatch.setattr(coordinators, "PATIENCE_SECONDS", 30.0)

    async def play(stage: Stage) -> None:
        agent = stage.agents[1]
        coordinator = await stage.ready()

        def slow(_request: dict[str, Any]) -> dict[str, object]:
            if agent.times < 20:
                time.sleep(0.03)
            now = agent.clock()
            return {"t2": now, "t3": now}

        agent.behave["time"] = slow
        found = await coordinator.measure()
        assert agent.times > 20
        assert max(offset.bound_ns for offset in found) <= 5 * MS

    act(play)


# -- who does not come --------------------------------------------------------------------------


def test_all_agents_that_are_late_are_named() -> None:
    async def play(stage: Stage) -> None:
        await stage.agents[1].die()
        await stage.agents[3].die()
        coordinator = stage.coordinator()
        with pytest.raises(RunError) as error:
            await coordinator.connect(3)
        words = error.value.message
        assert words.startswith("2 of 4 agents did not come within 3 s: host1: cannot connect")
        assert "; host3: cannot connect" in words
        assert "host0" not in words
        assert "host2" not in words

    act(play, 4)


@pytest.mark.parametrize(
    "count, end",
    [
        (3, "Connection refused"),
        (4, "; nor did host3"),
        (11, "; nor did host3, host4, host5, host6, host7, host8, host9, host10"),
        (64, "; nor did host3, host4, host5, host6, host7, host8, host9, host10 and 53 more"),
    ],
)
def test_many_that_are_late_do_not_fill_the_screen(count: int, end: str) -> None:
    async def play(stage: Stage) -> None:
        port = stage.agents[0].port
        await stage.agents[0].die()
        hosts = [Host(f"host{n}", HERE, port) for n in range(count)]
        with pytest.raises(RunError) as error:
            await stage.coordinator(hosts=hosts).connect(1)
        words = error.value.message
        assert words.startswith(f"{count} of {count} agents did not come within 1 s: host0: ")
        assert words.count("Connection refused") == 3
        assert words.endswith(end)

    act(play, 1)


@played
async def test_an_agent_may_come_a_little_later(stage: Stage) -> None:
    await stage.agents[1].die()
    coordinator = stage.coordinator()
    waiting = asyncio.ensure_future(coordinator.connect(30))
    await until(lambda: coordinator.lost.keys() == {1}, "the one that is there")
    await stage.agents[1].listen()
    await waiting
    assert coordinator.lost == {}


@played
async def test_another_key_is_refused(stage: Stage) -> None:
    with pytest.raises(RunError, match=r"2 of 2 agents .* this run's key") as error:
        await stage.coordinator(key=bytes(32)).connect(1.5)
    assert error.value.remedy == "is it an agent of this run?"
    assert all(agent.channels == [] for agent in stage.agents)


@played
async def test_two_coordinators(stage: Stage) -> None:
    """The second one is told; when the first has ended it is welcome."""
    first = await stage.ready()
    second = stage.coordinator()
    with pytest.raises(RunError, match="another coordinator is connected") as error:
        await second.connect(1.5)
    assert error.value.remedy == "end the other run first"
    assert await first.request(0, {"do": "status"}) == {"did": "status"}
    waiting = asyncio.ensure_future(second.connect(30))
    await first.close()
    await waiting
    assert await second.request(0, {"do": "status"}) == {"did": "status"}


# -- who is not ready ---------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["d2", "", None, 7, ["d1"]])
def test_another_plan_is_refused_with_both_digests(digest: object) -> None:
    async def play(stage: Stage) -> None:
        stage.agents[1].behave["prepare"] = lambda _request: {"digest": digest}
        coordinator = stage.coordinator()
        await coordinator.connect(30)
        with pytest.raises(AgentError) as error:
            await coordinator.prepare(EXPERIMENT)
        expected = f"host1 has another plan: its digest is {digest!r}, the run's is 'd1'"
        assert (error.value.host, error.value.message) == (1, expected)

    act(play)


@played
async def test_a_refusal_names_the_host_and_keeps_the_words(stage: Stage) -> None:
    stage.agents[0].behave["prepare"] = refuse
    coordinator = stage.coordinator()
    await coordinator.connect(30)
    with pytest.raises(AgentError) as error:
        await coordinator.prepare(EXPERIMENT)
    assert error.value.message == "host0 cannot prepare: no room"
    assert error.value.remedy == "make some"
    assert not isinstance(error.value, LostError)


@played
async def test_an_agent_that_does_not_get_ready_in_time(stage: Stage) -> None:
    stage.agents[0].hangs.add("prepare")
    coordinator = stage.coordinator()
    await coordinator.connect(30)
    with pytest.raises(LostError, match=r"host0 is lost: no answer to `prepare` within 1\.5 s"):
        await coordinator.prepare(EXPERIMENT, seconds=1.5)
    await until(lambda: stage.lost, "the loss")
    assert stage.lost == [(0, "no answer to `prepare` within 1.5 s")]


def test_a_long_preparation_is_not_taken_for_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks are asked for meanwhile; those answers have their time from the one before."""
    monkeypatch.setattr(coordinators, "MEASURE_SECONDS", 0.02)
    monkeypatch.setattr("runtime.coordinator.agent_link.TIME_SECONDS", 1.2)

    async def play(stage: Stage) -> None:
        stage.agents[0].delays["prepare"] = 2.5
        coordinator = stage.coordinator()
        await coordinator.connect(30)
        await coordinator.prepare(EXPERIMENT)
        assert stage.lost == []
        assert stage.agents[1].times > 8

    act(play)


@played
async def test_an_agent_that_refuses_to_start(stage: Stage) -> None:
    stage.agents[1].behave["start"] = refuse
    coordinator = await stage.ready()
    with pytest.raises(AgentError, match="host1 cannot start: no room"):
        await coordinator.start()
    assert coordinator.t0_ns == 0
    assert set((await coordinator.stop()).answers) == {0, 1}


@played
async def test_a_start_that_is_confirmed_after_it_is_none(stage: Stage) -> None:
    stage.agents[1].delays["start"] = 0.2
    coordinator = await stage.ready()
    with pytest.raises(RunError, match=r"confirmed by all agents only .* ms after it"):
        await coordinator.start(lead_ns=100 * MS)
    assert coordinator.t0_ns == 0


# -- the end ------------------------------------------------------------------------------------


def test_stop_names_who_does_not_answer() -> None:
    async def play(stage: Stage) -> None:
        stage.agents[0].hangs.add("stop")
        coordinator = await stage.running()
        await stage.agents[2].die()
        await until(lambda: stage.lost, "the loss")
        stopped = await coordinator.stop(seconds=3)
        assert stopped.answers == {1: {"did": "stop"}}
        assert stopped.missing.keys() == {0, 2}
        assert "no answer to `stop` within 3 s" in stopped.missing[0]
        assert "host2" in stopped.missing[2]
        assert [host for host, _ in stage.lost] == [2], "an end that was asked for is no loss"

    act(play, 3)


def test_offsets_are_followed_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "MEASURE_SECONDS", 0.02)

    async def play(stage: Stage) -> None:
        coordinator = await stage.running()

        def records() -> list[dict[str, Any]]:
            return coordinator.offsets()

        await until(lambda: all(r["measurements"] >= 5 for r in records()), "five measurements")
        for record, agent in zip(records(), stage.agents, strict=True):
            assert record["host"] == f"host{agent.number}"
            for which in ("first", "last"):
                found = record[which]
                assert abs(found["offset_ns"] - agent.offset_ns) <= found["bound_ns"]
                assert found["bound_ns"] <= record["largest_bound_ns"]
            assert abs(record["drift_ppb"]) <= record["drift_bound_ppb"] + 1
        assert stage.notices == []
        stage.agents[1].offset_ns += 100 * MS
        await until(lambda: stage.notices, "the notice")
        count = records()[1]["measurements"]
        await until(lambda: records()[1]["measurements"] > count + 5, "more measurements")
        ((host, text),) = stage.notices
        assert host == 1
        assert text.startswith("the clock of host1 has moved by ")
        largest_ns = records()[1]["away_ns"]
        assert 5 * MS < largest_ns <= 100 * MS
        link = coordinator._links[1]
        link.clock.add(coordinator._start[1])  # it is back where it was
        coordinator._check_clock(link)
        assert records()[1]["away_ns"] >= largest_ns
        assert records()[0]["away_ns"] == 0

    act(play, [FakeAgent(0), FakeAgent(1, -70 * MS)])
