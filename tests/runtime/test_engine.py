"""The client of pktd against a stand-in that speaks the protocol, and its lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.properties import LinkState
from compiler.plan.reader import read_plan
from compiler.plan.routes.behind import RouteGroup
from runtime.backend.onehost import staging
from runtime.datapath import dialect, sampler
from runtime.datapath import pktd as engines
from runtime.datapath.pktd import Engine, EngineError
from tests.doubles.datapath import FakeDatapath
from tests.runtime.support import Compile

Talk = Callable[[Engine, FakeDatapath], Coroutine[Any, Any, Any]]


def talk(conversation: Talk) -> Any:
    """With the stand-in at the other end."""

    async def whole() -> Any:
        fake = await FakeDatapath().open()
        engine = Engine()
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: engine, sock=fake.agent_end.dup())
        try:
            return await conversation(engine, fake)
        finally:
            engine.close()
            fake.close()

    return asyncio.run(whole())


def test_hello_and_batches() -> None:
    async def conversation(engine: Engine, _fake: FakeDatapath) -> list[list[str]]:
        answers = await engine.batch(["node 0", "commit 0", "stats links"])
        return [answer.words for answer in answers]

    assert talk(conversation) == [[], ["0"], ["0"]]


def test_a_refusal_names_the_command() -> None:
    async def conversation(engine: Engine, _fake: FakeDatapath) -> int:
        with pytest.raises(EngineError, match="refused `nonsense 1`: syntax"):
            await engine.batch(["node 0", "nonsense 1", "node 1"])
        return len(await engine.batch(["node 2", "node 3"]))

    assert talk(conversation) == 2


def test_commits_take_effect_at_their_time() -> None:
    seen: list[int] = []

    async def conversation(engine: Engine, _fake: FakeDatapath) -> int:
        at = time.monotonic_ns() + 50_000_000
        await engine.commit(["node 0"], at, seen.append)
        assert seen == []
        while not seen:
            await asyncio.sleep(0.005)
        return at

    at = talk(conversation)
    assert len(seen) == 1
    assert seen[0] >= at


def test_end_of_file_is_noticed() -> None:
    async def conversation(engine: Engine, fake: FakeDatapath) -> None:
        fake.close()
        await asyncio.wait_for(engine.closed, 10)
        with pytest.raises(EngineError, match="pktd is gone"):
            await engine.call("node 0")

    talk(conversation)


def test_a_program_that_is_not_pktd_is_refused(tmp_path: Path) -> None:
    async def whole() -> None:
        with (tmp_path / "log").open("wb") as log:
            await engines.start(["/bin/true"], log)

    with pytest.raises(EngineError, match="packet engine did not start"):
        asyncio.run(whole())


def test_bodies_and_events_between_answers() -> None:
    """Bytes in any portions give the same answers."""
    stream = b"! applied 7 10 12\nok 7\nok 2\n0 1 2\n1 3 4\nerr EINVAL no\n"

    async def whole(portion: int) -> tuple[list[bytes], list[int], str]:
        events: list[int] = []
        client = Engine()
        client.connection_made(_Silent())
        commit = asyncio.ensure_future(client.commit([], 10, events.append))
        first = asyncio.ensure_future(client.call("stats links"))
        second = asyncio.ensure_future(client.call("set 0 up=0"))
        await asyncio.sleep(0)
        for begin in range(0, len(stream), portion):
            client.data_received(stream[begin : begin + portion])
        await commit
        body = (await first).body
        with pytest.raises(EngineError) as refusal:
            await second
        return body, events, refusal.value.message

    for portion in (1, 3, 1000):
        body, events, message = asyncio.run(whole(portion))
        assert body == [b"0 1 2", b"1 3 4"]
        assert events == [12]
        assert message == "pktd refused `set 0 up=0`: EINVAL no"


class _Silent(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Nobody listens."""


def test_lines_for_a_plan(plan_of: Compile) -> None:
    plan = read_plan(
        plan_of(
            "seed 3\nservice a replicas=2\nbridge s1\n"
            "link a--s1 latency=2 up=10Mb down=20Mb loss=1%\nat 5s a.1 crash\nat 9s quit\n"
        )
    )
    lines = list(staging.declaration_lines(plan.topology, plan.state_at(0).links))
    assert lines[0] == "node 0 ip=10.77.0.1 ip6=fd77:7473::1"
    assert lines[2] == "node 2 ip=10.77.255.254 ip6=fd77:7473::1:0 hop=1"
    seed = plan.topology.links[0].seed
    assert lines[3] == (
        "link 0 0 2 rate=10000000 delay=2000000 jitter=0 loss=10000000 queue=62500 dist=normal"
        f" up=1 seed={seed}"
    )
    down = staging.delta_lines(plan.epochs[1].links, plan.route_groups(1), {}, set())
    assert [line.split()[:2] for line in down] == [["set", "2"], ["set", "3"]]
    assert all(line.endswith("up=0") for line in down)
    assert dialect.attach_lines({1: 4, 0: 7}, [5]) == ["unbind 5", "bind 0 7", "bind 1 4"]


def test_what_is_rare_goes_back_to_nothing() -> None:
    plain = LinkState(True, 0, 5, 0, 0, 1, "normal")
    odd, rare = plain._replace(reject_ppb=10**9), set[int]()
    [first] = staging.delta_lines([(3, odd)], (), {}, rare)
    assert "reject=1000000000" in first
    assert "duplicate" not in first
    [back] = staging.delta_lines([(3, plain)], (), {}, rare)
    assert "reject=0 " in back
    assert "duplicate=0 " in back
    [after] = staging.delta_lines([(3, plain)], (), {}, rare)
    assert "reject" not in after
    assert not rare


def test_route_lines_use_ranges_and_stay_short() -> None:
    groups = [
        RouteGroup(3, (8,), ((0, 0), (5, 5))),
        RouteGroup(3, (), ((0, 9), (11, 11))),
        RouteGroup(3, (8, 9), ((20, 21),)),
        RouteGroup(4, (1,), tuple((n, n) for n in range(0, 60_000, 2))),
    ]
    lines = list(staging.route_lines(groups, {(7, 8): 0, (8, 9): 1}))
    assert lines.pop(2) == "routes 3 g1 20-21"
    assert lines[:2] == ["route 3 8 0 5", "routes 3 - 0-9 11-11"]
    assert len(lines) > 3
    assert max(map(len, lines)) <= staging.LINE_BYTES
    assert sum(len(line.split()) - 3 for line in lines[2:]) == 30_000


def test_samples_are_arrays() -> None:
    assert sampler.arrays([]) == b"[]"
    assert sampler.arrays([b"1 2", b"3 4"]) == b"[[1,2],[3,4]]"
    assert sampler.table({b"9": b"9 1", b"2": b"2 5"}) == [[2, 5], [9, 1]]
