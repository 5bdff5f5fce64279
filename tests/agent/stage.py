"""Real agents in processes of their own, before stand-ins of datapaths and a real coordinator."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime.agent.process.commandline import AgentOptions, argv
from runtime.coordinator import placement
from runtime.coordinator.coordinator import Coordinator, Experiment
from runtime.coordinator.link import Host
from runtime.options import RunOptions
from tests.datapath.fake import FakeDatapath

KEY = bytes(range(32))
ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long
MS = 1_000_000

Play = Callable[["Stage"], Coroutine[Any, Any, None]]


class Stage:
    """`said` is what agents said: (host, message)."""

    def __init__(self, directory: Path, text: str, hosts: int) -> None:
        self.directory = directory
        write(compile_source(text, filename="exp.tdl", seed=None), directory / "exp.plan")
        self.plan: Plan = read_plan(directory / "exp.plan")
        self.placed = placement.planned(self.plan.topology, hosts)
        self.placement = self.placed.hosts
        self.said: list[tuple[int, dict[str, Any]]] = []
        self.lost: list[tuple[int, str]] = []
        self.datapaths: list[FakeDatapath] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.inside: tuple[str, ...] = ()  # what starts agents from now on
        # All of 127.0.0.0/8 is this machine: tests that run side by side do not meet. (Those of
        # the coordinator have 127.64.0.0 and what comes after.)
        number = os.getpid()
        self.network = f"127.{1 + (number >> 8) % 63}.{number & 255}"
        (directory / "key").write_bytes(KEY)
        self.coordinator = Coordinator(
            [Host(f"host{n}", f"{self.network}.{n + 1}") for n in range(hosts)],
            KEY,
            lambda host, message: self.said.append((host, message)),
            lambda host, reason: self.lost.append((host, reason)),
        )

    def options(self, host: int) -> AgentOptions:
        address = f"{self.network}.{host + 1}"
        return AgentOptions(
            plan=self.directory / "exp.plan",
            listen=(address, 7474),
            metadata=(address, 7473),
            key=str(self.directory / "key"),
            datapath_fd=self.datapaths[host].agent_end.fileno(),
        )

    async def raise_curtain(self) -> None:
        for host in range(len(self.coordinator.hosts)):
            self.datapaths.append(await FakeDatapath().open())
            self.processes.append(self.start_agent(self.options(host)))

    def start_agent(self, options: AgentOptions) -> subprocess.Popen[bytes]:
        with (self.directory / "agents.log").open("ab") as log:
            return subprocess.Popen(
                [*self.inside, *argv(options)],
                pass_fds=(options.datapath_fd,),
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def again(self, host: int) -> None:
        """Another agent for this host, which finds the datapath as the one before left it."""
        self.processes[host].wait(DEADLINE_SECONDS)
        self.processes[host] = self.start_agent(replace(self.options(host), resume=True))

    def experiment(self, **options: Any) -> Experiment:
        return Experiment("run1", self.plan.digest, self.placed, RunOptions(**options))

    async def ready(self, **options: Any) -> list[dict[str, Any]]:
        """All agents connected and prepared."""
        await self.coordinator.connect(DEADLINE_SECONDS)
        return await self.coordinator.prepare(self.experiment(**options))

    async def bind(self, step: int, bound: dict[int, int], **more: list[int]) -> None:
        pairs = [list(pair) for pair in bound.items()]
        await self.coordinator.broadcast({"do": "bind", "step": step, "bind": pairs, **more})

    def applied(self, host: int) -> list[tuple[int, bool]]:
        """Steps that this agent said were applied, and whether late."""
        found = [message for number, message in self.said if number == host]
        return [(m["step"], m["late"]) for m in found if m["say"] == "applied"]

    def lives(self) -> list[dict[str, Any]]:
        """What agents said that they did to instances."""
        return [message for _, message in self.said if message["say"] == "life"]

    def texts(self, kind: str) -> list[str]:
        return [message["text"] for _, message in self.said if message["say"] == kind]

    async def end(self) -> None:
        await self.coordinator.close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for datapath in self.datapaths:
            datapath.close()


def act(directory: Path, text: str, hosts: int, play: Play) -> None:
    async def whole() -> None:
        stage = Stage(directory, text, hosts)
        try:
            await stage.raise_curtain()
            await play(stage)
        except BaseException:
            print((directory / "agents.log").read_text(), stage.said)  # pytest shows it
            raise
        finally:
            await stage.end()

    asyncio.run(whole())
