"""Before time 0 in a cluster: the setups of instances that are there at the start; and where the
run starts when all are ready, the programs that have a `ready=`, at each one's own pace. The
network of the first step is in force by then. Agents order it
(runtime.agent.process.held_program); behind gates kubelet starts programs, and says whether
they are ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from compiler.plan.reader import Plan
from compiler.plan.types import DEFAULT_READY_TIMEOUT_NS, NO_CHECK, Service
from runtime.agent.process.orders import EarlyOrder, EarlyReply
from runtime.backend.hosts.hosts import Ask
from runtime.backend.k8s.pods import INSTANCE, Pod
from runtime.errors import ProgramsError, RunError
from runtime.json_schema import decoded

LOOK_SECONDS = 0.2
GATE_SECONDS = 300.0  # for kubelet to start a container


class ClusterEarlyStarts:
    """`hosts` is the placement; `pods` are as they are known now, by node."""

    def __init__(
        self,
        plan: Plan,
        hosts: tuple[int, ...],
        pods: Mapping[int, Pod],
        ask: Ask,
        warn: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._hosts = hosts
        self._pods = pods
        self._ask = ask
        self._warn = warn

    async def carry_out(self, names: Collection[str]) -> None:
        """For instances that are there at the start. ProgramsError if one does not start or is not
        ready, where the run waits for that."""
        topology = self._plan.topology
        waits: dict[int, str] = {}
        for node, one in enumerate(topology.nodes):
            if one.name in names:
                wait = _wait(topology.services[one.service], start=topology.start_when_ready)
                waits |= {node: wait} if wait else {}
        await self._by_agents(waits)
        gated = [node for node, wait in waits.items() if wait == "released"]
        await asyncio.gather(*(self._until_kubelet(node) for node in gated))

    async def _by_agents(self, waits: Mapping[int, str]) -> None:
        by_host: dict[int, dict[int, str]] = {}
        for node, wait in waits.items():
            by_host.setdefault(self._hosts[node], {})[node] = wait
        tasks = [asyncio.ensure_future(self._on_host(host, mine)) for host, mine in by_host.items()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _on_host(self, host: int, waits: Mapping[int, str]) -> None:
        pending = dict(waits)
        while pending:
            answer = await self._ask(host, EarlyOrder(pending))
            reply = decoded(EarlyReply, answer, "what is done before the start")
            for node, reason in reply.failed:
                self._failed(node, reason)
            pending = {node: pending[node] for node in reply.pending if node in pending}
            if pending:
                await asyncio.sleep(LOOK_SECONDS)

    def _failed(self, node: int, reason: str) -> None:
        """Without `start when ready` the join tells again, when it comes."""
        if not 0 <= node < len(self._plan.topology.nodes):
            raise RunError(f"an agent tells of node {node}, which there is not")
        name = self._plan.topology.nodes[node].name
        if self._plan.topology.start_when_ready:
            raise ProgramsError(f"{name}: {reason:.400}", name)
        self._warn(f"{name}: {reason:.400}")

    async def _until_kubelet(self, node: int) -> None:
        one = self._plan.topology.nodes[node]
        service = self._plan.topology.services[one.service]
        loop = asyncio.get_running_loop()
        started = ready = False
        end = loop.time() + GATE_SECONDS
        while not ready:
            container = self._pods[node].containers.get(INSTANCE)
            running = container is not None and container.state == "running"
            if running and not started:
                started = True
                end = loop.time() + (service.ready_timeout_ns or DEFAULT_READY_TIMEOUT_NS) / 1e9
            checked = service.ready != (NO_CHECK,)
            ready = running and (container.ready if container is not None and checked else True)
            if not ready and loop.time() > end:
                what = (
                    "it is not ready within its ready-timeout="
                    if started
                    else "kubelet does not start it"
                )
                raise ProgramsError(f"{one.name}: {what}", one.name)
            if not ready:
                await asyncio.sleep(LOOK_SECONDS)


def _wait(service: Service, *, start: bool) -> str:
    """What is waited for; '' if there is nothing to do before the start."""
    if not start or not service.ready:
        return "set_up" if service.setup else ""
    if not service.entrypoint:
        return "released"
    return "ready" if service.ready != (NO_CHECK,) else "started"
