"""The hosts of a run as its network sees them, wherever they are: namespaces of this machine
(runtime.backend.local.local_hosts), or machines of their own.

Whoever makes them has learnt where they are, and where the instances are, before the network is
made. Hosts are numbers from 0, in the order of `agents`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.backend.base import PortAllocator
from runtime.backend.hosts.agent_state import AgentState
from runtime.coordinator.agent_link import Host
from runtime.coordinator.placement import Placement
from runtime.coordinator.says import HoldReport, InstanceReport
from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory

Ask = Callable[[int, object], Awaitable[object]]  # the agent of a host, an order; RunError
OnFatal = Callable[[RunError], None]


class Watched(Protocol):
    """An agent or a datapath. `ended` is done when it is over, with its status (-N: signal N)."""

    ended: asyncio.Future[int]

    def kill(self) -> None:
        """Ends it now; `ended` tells when it is over."""


class HostParts(Protocol):
    """What runs on one host: its datapath and its agent, the one that was started last."""

    @property
    def name(self) -> str: ...

    @property
    def datapath(self) -> Watched: ...

    @property
    def agent(self) -> Watched: ...

    @property
    def pids(self) -> list[int]:
        """Processes of this machine among them, for the scheduler."""

    def restart_agent(self) -> None:
        """Another one, which resumes, takes the place of one that has ended."""

    def ended(self, *, agent: bool = True) -> RunError | None:
        """Which of them has ended, the datapath first; None if none has."""


@dataclass(frozen=True, slots=True)
class NetworkHandle:
    """What hosts are given by the network of the run."""

    agent_state: AgentState  # ports are entered there
    ask: Ask
    on_fatal: OnFatal  # the run cannot go on
    elapsed: Callable[[], int]  # ns since T0, 0 before


class Hosts(Protocol):
    """Raises RunError wherever it is refused something.

    key              of the run, which its agents have
    agents           where they listen
    parts            by host, on their way or there
    placement        of the instances, for the whole run
    connect_seconds  so long agents may take to be there
    back_seconds     the same of one that was started again
    shares_files     whether agents find what is in the run directory
    pipes            where datapaths find pipes for packets; None: they capture nothing
    """

    key: bytes
    placement: Placement
    connect_seconds: float
    back_seconds: float
    shares_files: bool

    @property
    def pipes(self) -> HeldDirectory | None: ...

    @property
    def agents(self) -> Sequence[Host]: ...

    @property
    def parts(self) -> Sequence[HostParts]: ...

    def attaching(self, network: NetworkHandle) -> PortAllocator:
        """Where instances are attached. Once; hosts are watched from then on."""

    async def wire(self, bound: Mapping[int, int]) -> None:
        """From now on packets for these nodes go to these ports."""

    def lived(self, host: int, life: InstanceReport) -> None:
        """The agent of a host has carried out a process event of an instance of its own."""

    def reported(self, host: int, report: HoldReport) -> None:
        """A report of an instance of this host. A line may come again from an agent that was
        started again."""

    async def end(self, told: Collection[int]) -> RunError | None:
        """Ends everything; `told` are hosts whose agents end by themselves. Returns what of the
        datapaths had ended by itself, or badly."""

    def refused(self) -> list[dict[str, Any]]:
        """For the summary: what instances sent that was not carried."""

    def overflowed(self) -> int | None:
        """Packets that datapaths had delivered, and that found no room between there and the
        instances; after `end`. None where nobody can know: that network is not the run's."""
