"""Hosts that are not of this machine, for whoever is to work with them; nothing is attached."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from runtime.backend.hosts.hosts import NetworkHandle
from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import REJOIN_SECONDS
from runtime.coordinator.placement import Placement
from runtime.coordinator.says import HoldReport, InstanceReport
from runtime.errors import RunError
from runtime.system.procs import status_text
from tests.doubles.agent import DEADLINE_SECONDS, KEY


class FakeProcess:
    """Of a host; it ends when a test says so."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        if not self.ended.done():
            self.ended.set_result(-9)


class FakeHost:
    """`restarts` counts the agents after the first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.datapath, self.agent = FakeProcess(), FakeProcess()
        self.pids: list[int] = []
        self.restarts = 0

    def restart_agent(self) -> None:
        self.restarts += 1
        self.agent = FakeProcess()

    def ended(self, *, agent: bool = True) -> RunError | None:
        if not self.datapath.ended.done():
            return None
        status = status_text(self.datapath.ended.result())
        return RunError(f"the datapath of {self.name} ended with {status}")


class FakePorts:
    """Nothing is attached here."""

    more = ()


class FakeHosts:
    """Hosts (runtime.backend.hosts.hosts) of which only the agents are there, wherever they are."""

    connect_seconds = DEADLINE_SECONDS / 4
    back_seconds = REJOIN_SECONDS
    pipes = None
    shares_files = True

    def __init__(self, agents: Sequence[Host], placement: Placement, key: bytes = KEY) -> None:
        self.key = key
        self.placement = placement
        self.agents = agents
        self.parts = [FakeHost(host.name) for host in agents]
        self.wired: list[Mapping[int, int]] = []
        self.told: Collection[int] = ()
        self.lives: list[tuple[int, InstanceReport]] = []
        self.reports: list[tuple[int, HoldReport]] = []

    def attaching(self, network: NetworkHandle) -> Any:
        self.network = network
        return FakePorts()

    async def wire(self, bound: Mapping[int, int]) -> None:
        self.wired.append(bound)

    def lived(self, host: int, life: InstanceReport) -> None:
        self.lives.append((host, life))

    def reported(self, host: int, report: HoldReport) -> None:
        self.reports.append((host, report))

    async def end(self, told: Collection[int]) -> RunError | None:
        self.told = list(told)
        return RunError("a datapath was tired")

    def refused(self) -> list[dict[str, Any]]:
        return [{"instance": "a.0", "source": 1}]

    def overflowed(self) -> int | None:
        return 7
