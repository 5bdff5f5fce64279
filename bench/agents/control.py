"""Control of agents by the coordinator: what a request, a sample, a start and a stranger cost.

Real channels over loopback TCP; coordinator and agents share one process, so CPU times are of both
sides together. Four parts:

request    one question at a time over one channel, and a message of 1 MB;
sample     5,000 rows, the most an agent says at once: written, read and checked;
gathering  4 to 64 agents that answer at once: connect, prepare, measure and start (less its lead),
           then CPU time of keeping in touch and how well clocks are known;
stranger   a connection that is refused.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from bench.agents.simulated import Agent
from bench.tables import Record, Table
from runtime.coordinator import says
from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import AgreedExperiment, Coordinator
from runtime.coordinator.placement import Placement
from runtime.datapath.sampler import PAIR_COLUMNS
from runtime.options import DEFAULTS
from runtime.rpc import secure
from runtime.rpc.calls import Asker
from runtime.rpc.seal import MAGIC, NONCE_BYTES, PROOF_BYTES
from runtime.rpc.secure import make_key
from tests.doubles.agent import HERE

SAMPLE_ROWS = 5000


_WHAT = {
    "request": "request and answer, {what}",
    "sample": "sample of {rows} rows",
    "stranger": "a stranger: {what}",
}
TABLES = (
    Table(
        {
            "One channel": lambda row: _WHAT[row["part"]].format(**row),
            "median / p99": "{median_us} / {p99_us} µs",
            "CPU time, both sides": lambda row: (
                f"{row['cpu_ms']} ms" if "cpu_ms" in row else f"{row['cpu_us']} µs"
            ),
        },
        {"part": list(_WHAT)},
    ),
    Table(
        {
            "Agents": "{agents}",
            **{name: f"{{{name}_ms}} ms" for name in ("connect", "prepare", "measure", "start")},
            "afterwards, of a core": "{cpu_percent} %",
            "clock's bound": "{bound_median_us} / {bound_max_us} µs",
        },
        {"part": ["gathering"]},
    ),
)


def measure(quick: bool) -> list[Record]:
    """All rows; `part` says of which part."""
    rounds = 200 if quick else 3000
    rows = asyncio.run(_with_agents(1, lambda agents, key: _requests(agents[0], key, rounds)))
    rows += asyncio.run(_with_agents(1, lambda agents, key: _samples(agents[0], key, rounds // 20)))
    for count in (4,) if quick else (4, 16, 64):
        rows += asyncio.run(_with_agents(count, lambda agents, key: _gathering(agents, key, quick)))
    rows += asyncio.run(_with_agents(1, lambda agents, _key: _strangers(agents[0], rounds)))
    return rows


async def _with_agents(
    count: int, talk: Callable[[list[Agent], bytes], Coroutine[Any, Any, list[Record]]]
) -> list[Record]:
    key = make_key()
    agents = [Agent() for _ in range(count)]
    for agent in agents:
        await agent.listen(key)
    try:
        return await talk(agents, key)
    finally:
        for agent in agents:
            await agent.die()


async def _requests(agent: Agent, key: bytes, rounds: int) -> list[Record]:
    connection = await secure.connect(HERE, agent.port, key)
    asker = Asker(connection.channel, lambda _message: None)
    rows: list[Record] = []
    for what, text, count in (("small", "", rounds), ("1 MB", "x" * 1_000_000, rounds // 20)):
        request = {"do": "status", "text": text}
        took: list[int] = []
        cpu = time.process_time_ns()
        for _ in range(count):
            found = await asker.ask(request, 60)
            took.append(found.answered_ns - found.asked_ns)
        cpu = time.process_time_ns() - cpu
        rows.append(
            {
                "part": "request",
                "what": what,
                "median_us": round(statistics.median(took) / 1e3, 1),
                "p99_us": round(statistics.quantiles(took, n=100)[98] / 1e3, 1),
                "cpu_us": round(cpu / count / 1e3, 1),
            }
        )
    await asker.close()
    return rows


async def _samples(agent: Agent, key: bytes, count: int) -> list[Record]:
    rnd = random.Random(1)
    pairs = [[rnd.randrange(10**9) for _ in PAIR_COLUMNS] for _ in range(SAMPLE_ROWS)]
    message = says.write(says.TrafficSample(1, pairs))
    channel = (await secure.connect(HERE, agent.port, key)).channel
    cpu = time.process_time_ns()
    checking = 0
    for _ in range(count):
        agent.channels[-1].send(message)
        received = await channel.receive()
        began = time.process_time_ns()
        assert says.read(received.message)
        checking += time.process_time_ns() - began
    cpu = time.process_time_ns() - cpu
    channel.close()
    await channel.closed
    return [
        {
            "part": "sample",
            "rows": SAMPLE_ROWS,
            "cpu_ms": round(cpu / count / 1e6, 2),
            "checking_ms": round(checking / count / 1e6, 2),
        }
    ]


async def _gathering(agents: list[Agent], key: bytes, quick: bool) -> list[Record]:
    hosts = [Host(f"host{n}", HERE, agent.port) for n, agent in enumerate(agents)]
    coordinator = Coordinator(hosts, key, lambda _host, _message: None)
    placed = Placement(tuple(n % len(hosts) for n in range(1000)), (), ())
    experiment = AgreedExperiment("bench", "d", placed, DEFAULTS)
    row: Record = {"part": "gathering", "agents": len(agents)}
    for name, step in (
        ("connect", coordinator.connect),
        ("prepare", lambda: coordinator.prepare(experiment)),
        ("measure", coordinator.measure),
        ("start", coordinator.start),
    ):
        row[f"{name}_ms"] = await _milliseconds(step)
    seconds = 2 if quick else 10
    cpu = time.process_time_ns()
    await asyncio.sleep(seconds)
    row["cpu_percent"] = round((time.process_time_ns() - cpu) / seconds / 1e7, 2)
    bounds = [offset.bound_ns for offset in await coordinator.measure()]
    row["bound_median_us"] = round(statistics.median(bounds) / 1e3, 1)
    row["bound_max_us"] = round(max(bounds) / 1e3, 1)
    await coordinator.stop()
    await coordinator.close()
    return [row]


async def _milliseconds(step: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic_ns()
    await step()
    return round((time.monotonic_ns() - began) / 1e6, 1)


async def _strangers(agent: Agent, count: int) -> list[Record]:
    rows: list[Record] = []
    proofs = MAGIC + bytes(NONCE_BYTES + PROOF_BYTES)
    for what, data in (("garbage", b"GET / HTTP/1.1\r\n"), ("wrong key", proofs)):
        cpu = time.process_time_ns()
        for _ in range(count):
            reader, writer = await asyncio.open_connection(HERE, agent.port)
            writer.write(data)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
        cpu = time.process_time_ns() - cpu
        rows.append({"part": "stranger", "what": what, "cpu_us": round(cpu / count / 1e3, 1)})
    return rows
