"""The agent's side of the path protocol, and work ahead of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from compiler.plan.reader import decode
from compiler.plan.writer import encode
from runtime.agent.clock import SystemClock
from runtime.agent.path import prefetcher as aheads
from runtime.agent.path.datapath import Datapath, usages
from runtime.agent.path.path_updates import PathLine, StagedPaths
from runtime.agent.path.prefetcher import Prefetcher, Scenes
from runtime.agent.vocabulary import Moved, Usage
from runtime.datapath.pktd import EngineAnswer, EngineError
from runtime.errors import MachineError
from tests.doubles.datapath import FakeDatapath
from tests.plan.networks import PLAIN, build, contents, timeline
from tests.waiting import in_a_loop, until

MS = 1_000_000
Talk = Callable[[FakeDatapath, Datapath, list[str]], Coroutine[Any, Any, None]]


def talk(conversation: Talk, offset_ns: int = 0) -> None:
    async def whole() -> None:
        fake = await FakeDatapath().open()
        events: list[str] = []
        client = Datapath(SystemClock(offset_ns), events.append)
        await client.connect(fake.agent_end.fileno())
        try:
            await conversation(fake, client, events)
        finally:
            fake.agent_end.detach()  # the client's, by now
            fake.close()
            client.engine.close()

    asyncio.run(whole())


def test_greeting() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        assert client.name == "pktd"
        assert client.facts["paths"] == "1"
        assert [line.split(" ")[0] for line in fake.commands] == ["sync", "hello"]

    talk(conversation)


@pytest.mark.parametrize("answer", ["ok pktd 1 version=0", "ok cat 1 paths=1"])
@in_a_loop
async def test_one_that_knows_no_paths_is_refused(answer: str) -> None:
    fake = await FakeDatapath().open()
    fake._do_hello = lambda _words: [answer]  # type: ignore[method-assign, assignment]
    client = Datapath(SystemClock(), lambda _: None)
    with pytest.raises(MachineError, match="does not know collapsed paths"):
        await client.connect(fake.agent_end.fileno())
    fake.agent_end.detach()
    fake.close()
    client.engine.close()


def test_commits_and_when_they_took_effect() -> None:
    offset = 5_000 * MS  # the agent's clock is that far ahead

    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        done: list[int] = []
        await client.commit(["node 0 ip=1 ip6=2", "node 1 ip=3 ip6=4"], 0, done.append)
        await until(lambda: len(done) == 1, "the first")
        assert abs(done[0] - offset - time.monotonic_ns()) < 1_000 * MS
        at_ns = time.monotonic_ns() + offset + 60 * MS
        await client.commit([], at_ns, done.append)
        assert len(done) == 1
        await until(lambda: len(done) == 2, "the second")
        assert done[1] >= at_ns
        assert fake.history[1].at_ns == at_ns - offset
        assert not client.engine._waiting
        assert not client.engine._early

    talk(conversation, offset)


def test_a_past_that_is_before_the_machine_began_means_now() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        await client.commit([], -(10**18))
        assert fake.history[0].at_ns == 1

    talk(conversation)


def test_news_of_somebody_elses_commits_is_none() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, events: list[str]) -> None:
        fake.say("applied 77 5 6")
        fake.say("lease expired")
        await until(lambda: events, "the event")
        assert events == ["lease expired"]
        assert not client.engine._early

    talk(conversation)


def test_a_refusal_is_an_error() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        fake.refuse = "lease"
        with pytest.raises(EngineError, match="refused `lease 5`"):
            await client.lease(5)
        fake.refuse = "node"
        with pytest.raises(EngineError, match="refused `node 0`"):
            await client.commit(["node 0"])
        assert await client.ports() == {}

    talk(conversation)


def test_jitter_counts_from_the_start_where_it_is_of_the_time() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        client.name = "tcald"
        await client.epoch(5)
        assert "epoch" not in " ".join(fake.commands)
        client.name = "pktd"
        await client.epoch(client._clock.agent_ns(7))
        assert fake.commands[-1] == "epoch 7"

    talk(conversation)


def test_digests_are_asked_for_where_they_are_kept() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        assert (await client.moved()).digests == []
        assert "digests" not in fake.commands
        client.facts["digests"] = "times"
        fake.digests = ["1 2 00000000000000ff"]
        assert (await client.moved()).digests == [b"1 2 00000000000000ff"]
        assert (await client.moved()).digests == []

    talk(conversation)


def test_usage() -> None:
    async def conversation(fake: FakeDatapath, client: Datapath, _events: list[str]) -> None:
        fake.moved = {(1, 2): (3, 4, 5, 6, 7)}
        fake.pairs = ["1 2 3"]
        assert await client.usage() == [Usage(1, 2, 3, 4, 5, 6, 7)]
        assert await client.moved() == Moved([], [b"1 2 3"], [])
        assert await client.usage(everything=True) == [Usage(1, 2, 3, 4, 5, 6, 7)]

    talk(conversation)
    for wrong in (b"1 2 3", b"1 2 3 4 5 6 x", b""):
        with pytest.raises(EngineError, match="usage is not as it should be"):
            usages(EngineAnswer([], [wrong]))


# -- ahead of time ------------------------------------------------------------------------------


def stages(count: int, lines: int, log: list[int]) -> Iterator[StagedPaths | None]:
    topology = build([("a", 2)], ["s"], [("a", "s", PLAIN, PLAIN)])
    state = decode(encode(contents(topology, timeline(topology)))).state_at(0)
    for step in range(1, count + 1):
        yield None
        log.append(step)
        yield StagedPaths(step, state, (tuple(PathLine(0, 1, "x") for _ in range(lines)),))


def ahead_of(count: int, lines: int, log: list[int], step_ns: int) -> Prefetcher:
    scenes = Scenes((0, 0, -1), 1)
    return Prefetcher(
        stages(count, lines, log), scenes, SystemClock(), lambda: 0, lambda step: step * step_ns
    )


@in_a_loop
async def test_steps_are_computed_some_time_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aheads, "CHECK_SECONDS", 0.01)
    log: list[int] = []
    ahead = ahead_of(50, 1, log, aheads.AHEAD_NS // 4)
    task = asyncio.ensure_future(ahead.run())
    await until(lambda: len(log) == 5, "five steps")  # the fifth is beyond the horizon
    for _ in range(20):
        await asyncio.sleep(0)
    assert log == [1, 2, 3, 4, 5]
    for step in range(1, 51):  # whoever wants more gets it
        assert (await ahead.take(step)).stage.step == step
    await asyncio.wait_for(task, 120)
    assert log == list(range(1, 51))


@in_a_loop
async def test_no_more_lines_are_kept_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aheads, "STORED_BYTES", 100 * aheads.LINE_BYTES)
    log: list[int] = []
    ahead = ahead_of(10, 60, log, 1)
    task = asyncio.ensure_future(ahead.run())
    await until(lambda: len(log) == 2, "two steps")
    for _ in range(20):
        await asyncio.sleep(0)
    assert log == [1, 2]
    await ahead.take(1)
    await until(lambda: len(log) == 3, "the third")
    for step in range(2, 11):
        await ahead.take(step)
    await asyncio.wait_for(task, 120)
