"""Real agents in processes of their own, before stand-ins of datapaths and a real coordinator."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime.agent.process.agent import LOST_SECONDS
from runtime.agent.process.commandline import CONTROL_PORT, METADATA_PORT, AgentOptions, argv
from runtime.coordinator import placement
from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import AgreedExperiment, Coordinator
from runtime.coordinator.says import (
    AgentFailed,
    AgentNotice,
    InstanceReport,
    Message,
    StepApplied,
    TrafficSample,
)
from runtime.options import RunOptions
from tests.doubles.datapath import FakeDatapath
from tests.intime import Attempt, in_time

KEY = bytes(range(32))
ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long
MS = 1_000_000
# As `python -m runtime.agent`, but it may give a lost coordinator up sooner.
PROGRAM = (
    "import sys; from runtime.agent import __main__; from runtime.agent.process import agent;"
    " agent.LOST_SECONDS = float(sys.argv.pop(1)); sys.exit(__main__.main())"
)

Play = Callable[["Stage"], Coroutine[Any, Any, None]]


class Stage:
    """`said` is what agents said: (host, message). `other` options are those of single agents."""

    def __init__(
        self,
        directory: Path,
        text: str,
        hosts: int,
        other: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        self.directory = directory
        write(compile_source(text, filename="exp.tdl", seed=None), directory / "exp.plan")
        self.plan: Plan = read_plan(directory / "exp.plan")
        self.placed = placement.planned(self.plan.topology, hosts)
        self.placement = self.placed.hosts
        self.said: list[tuple[int, Message]] = []
        self.lost: list[tuple[int, str]] = []
        self.datapaths: list[FakeDatapath] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.inside: tuple[str, ...] = ()  # what starts agents from now on
        self.lost_seconds = LOST_SECONDS  # of agents that start from now on
        self._other = other or {}
        # All of 127.0.0.0/8 is this machine: tests that run side by side do not meet. (FakeNode
        # has 127.64.0.0 and what comes after.)
        number = os.getpid()
        self.network = f"127.{1 + (number >> 8) % 63}.{number & 255}"
        (directory / "key").write_bytes(KEY)
        self.coordinator = Coordinator(
            [Host(f"host{n}", f"{self.network}.{n + 1}") for n in range(hosts)],
            KEY,
            lambda host, message: self.said.append((host, message)),
            lambda host, reason: self.lost.append((host, reason)),
            clock_budget_ns=50 * MS,  # no test is about how busy the machine is
        )

    def options(self, host: int) -> AgentOptions:
        address = f"{self.network}.{host + 1}"
        options = AgentOptions(
            plan=self.directory / "exp.plan",
            listen=(address, CONTROL_PORT),
            metadata=(address, METADATA_PORT),
            key=str(self.directory / "key"),
            datapath_fd=self.datapaths[host].agent_end.fileno(),
        )
        return replace(options, **self._other.get(host, {}))

    async def raise_curtain(self) -> None:
        for host in range(len(self.coordinator.hosts)):
            self.datapaths.append(await FakeDatapath().open())
            self.processes.append(self.start_agent(self.options(host)))

    def start_agent(self, options: AgentOptions) -> subprocess.Popen[bytes]:
        words = argv(options)
        words = words[words.index("runtime.agent") + 1 :]
        with (self.directory / "agents.log").open("ab") as log:
            return subprocess.Popen(
                [*self.inside, sys.executable, "-P", "-c", PROGRAM, str(self.lost_seconds), *words],
                pass_fds=(options.datapath_fd,),
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def again(self, host: int) -> None:
        """Another agent for this host, which finds the datapath as the one before left it."""
        self.processes[host].wait(DEADLINE_SECONDS)
        self.processes[host] = self.start_agent(replace(self.options(host), resume=True))

    def experiment(self, **options: Any) -> AgreedExperiment:
        return AgreedExperiment("run1", self.plan.digest, self.placed, RunOptions(**options))

    async def ready(self, **options: Any) -> list[dict[str, Any]]:
        """All agents connected and prepared."""
        await self.coordinator.connect(DEADLINE_SECONDS)
        return await self.coordinator.prepare(self.experiment(**options))

    async def bind(self, step: int, bound: dict[int, int], **more: list[int]) -> None:
        pairs = [list(pair) for pair in bound.items()]
        await self.coordinator.broadcast({"do": "bind", "step": step, "bind": pairs, **more})

    async def ended(self, host: int) -> int:
        """Its status."""
        return await asyncio.to_thread(self.processes[host].wait, DEADLINE_SECONDS)

    def applications(self, host: int) -> list[StepApplied]:
        """What this agent said of its steps."""
        return [m for number, m in self.said if number == host and isinstance(m, StepApplied)]

    def applied(self, host: int) -> list[tuple[int, bool]]:
        """Steps that this agent said were applied, and whether late."""
        return [(message.step, message.late) for message in self.applications(host)]

    def late_steps(self) -> list[str]:
        """Of all agents, in words."""
        applied = ((host, said) for host, said in self.said if isinstance(said, StepApplied))
        return [
            f"agent {host} was late with step {said.step}" for host, said in applied if said.late
        ]

    def lives(self) -> list[InstanceReport]:
        """What agents said that they did to instances."""
        return [message for _, message in self.said if isinstance(message, InstanceReport)]

    def samples(self) -> list[TrafficSample]:
        return [message for _, message in self.said if isinstance(message, TrafficSample)]

    def texts(self, kind: type[AgentNotice | AgentFailed]) -> list[str]:
        return [message.text for _, message in self.said if isinstance(message, kind)]

    async def end(self) -> None:
        await self.coordinator.close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for datapath in self.datapaths:
            datapath.close()


def act(
    directory: Path,
    text: str,
    hosts: int,
    play: Play,
    *,
    other: Mapping[int, Mapping[str, Any]] | None = None,
    lost_seconds: float = LOST_SECONDS,
    attempt: Attempt | None = None,
) -> None:
    async def whole() -> None:
        stage = Stage(directory, text, hosts, other)
        stage.lost_seconds = lost_seconds
        try:
            await stage.raise_curtain()
            await play(stage)
        except BaseException:
            print((directory / "agents.log").read_text(), stage.said)  # pytest shows it
            if attempt is not None:
                attempt.late_steps += stage.late_steps()
            raise
        finally:
            await stage.end()

    asyncio.run(whole())


def act_in_time(directory: Path, text: str, hosts: int, play: Play, **more: Any) -> None:
    """The same; what does not hold counts where the machine had time for it (tests/intime.py)."""

    def trial(attempt: Attempt) -> None:
        place = directory / attempt.name("try")
        place.mkdir()
        act(place, text, hosts, play, attempt=attempt, **more)

    in_time(trial)
