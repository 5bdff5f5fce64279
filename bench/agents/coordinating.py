"""One coordinator, in a process of its own for its memory: `python -m bench.agents.coordinating`.

Standard input: a line of JSON with the run's key and the ports of simulated agents, one a host
(bench.agents.simulated). Output: one line of JSON. The network of a run (AgentNetwork) is started,
begun and watched as the driver does it, with hosts on which nothing is attached. Bytes are the
kernel's, of all connections.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from bench.tables import Record
from compiler.plan.reader import Plan, read_plan
from runtime.backend.base import Effect, RunContext
from runtime.backend.hosts.agent_network import AgentNetwork
from runtime.coordinator.agent_link import Host
from runtime.coordinator.placement import planned
from runtime.options import RunOptions
from runtime.schedule import Schedule
from runtime.system.process_limits import raise_limit
from tests.coordinator.traffic import peak_mib, transferred
from tests.doubles.agent import HERE
from tests.doubles.hosts import FakeHosts
from tests.waiting import until

WATCH_SECONDS = 10.0


async def coordinate(plan: Plan, key: bytes, ports: Sequence[int]) -> Record:
    options = RunOptions(hosts=len(ports), clock_budget_ns=100_000_000)
    timeline = Schedule(plan, options)
    effects: list[Effect | None] = []
    record: Record = {"plan_mib": peak_mib()}
    context = RunContext(
        run_id="bench",
        directory=Path("/nowhere"),
        plan=plan,
        schedule=timeline,
        options=options,
        log=io.BytesIO(),
        log_name="nowhere",
        record=lambda _record: None,
        notice=lambda _text: None,
        warn=lambda _text: None,
        on_effect=lambda _number, effect: effects.append(effect),
        on_ended=lambda _instance, _ended, _asked, _help: None,
        on_killed=lambda _instance, _what: None,
        on_overdue=lambda _instance, _grace_ns: None,
        on_oom_kill=lambda _name, _processes: None,
        cannot_write=lambda _text: None,
        on_file=lambda *_change: None,
    )
    agents = [Host(f"node-{n}.example", HERE, port) for n, port in enumerate(ports)]
    nodes = FakeHosts(agents, planned(plan.topology, len(ports)), key)
    network = AgentNetwork(context, nodes)
    record["ready_s"] = await _seconds(network.start())
    instances = plan.core.endpoints
    record["start_s"] = await _seconds(network.begin({node: node for node in range(instances)}))
    sent, received = transferred()
    record["sent_mb"], record["received_mb"] = round(sent / 1e6, 1), round(received / 1e6, 1)
    cpu = time.process_time_ns()
    steps = len(timeline.steps)
    await until(lambda: len(effects) == steps, "the last step")
    record["step_cpu_ms"] = round((time.process_time_ns() - cpu) / steps / 1e6, 1)
    record["spread_ms"] = round(max(effect.spread_ns or 0 for effect in effects if effect) / 1e6, 1)
    cpu, began = time.process_time_ns(), time.monotonic_ns()
    await asyncio.sleep(WATCH_SECONDS)
    share = (time.process_time_ns() - cpu) / (time.monotonic_ns() - began)
    record["watch_percent"] = round(share * 100, 2)
    record["peak_mib"] = peak_mib()
    await network.end()
    return record


async def _seconds(action: Awaitable[object]) -> float:
    began = time.monotonic()
    await action
    return round(time.monotonic() - began, 2)


def main() -> int:
    raise_limit(0)
    given = json.loads(sys.stdin.readline())
    plan = read_plan(Path(sys.argv[1]), lazy=True)
    row = asyncio.run(coordinate(plan, bytes.fromhex(given["key"]), given["ports"]))
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
