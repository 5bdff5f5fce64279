"""Real agents, each a process of its own on a loopback address, with stand-ins for datapaths."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime.agent.process.agent import LOST_SECONDS
from runtime.coordinator import placement
from runtime.coordinator.coordinator import Coordinator, Experiment
from runtime.coordinator.link import Host
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.datapath.fake import FakeDatapath
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
KEY = bytes(range(32))
DEADLINE_SECONDS = 180.0  # only a test that fails takes so long
# As `python -m runtime.agent`, but it may give a lost coordinator up sooner.
PROGRAM = (
    "import sys; from runtime.agent import __main__; from runtime.agent.process import agent;"
    " agent.LOST_SECONDS = float(sys.argv.pop(1)); sys.exit(__main__.main())"
)


class RealAgent:
    """One host: processes come and go, the datapath stays."""

    def __init__(self, number: int, directory: Path) -> None:
        # All of 127.0.0.0/8 is this machine: tests that run side by side do not meet.
        pid = os.getpid()
        self.address = f"127.{64 + pid % 150}.{pid // 150 % 250}.{number + 1}"
        self.host = Host(f"host{number}", self.address)
        self.datapath = FakeDatapath()
        self.process: asyncio.subprocess.Process | None = None
        self.log = directory / f"host{number}.log"
        self._directory = directory

    async def start(
        self,
        plan: Path,
        *,
        offset_ns: int = 0,
        resume: bool = False,
        key: bytes = KEY,
        lost_seconds: float = LOST_SECONDS,
    ) -> None:
        if self.process is None:
            await self.datapath.open()
        key_file = self._directory / f"{self.host.name}.key"
        key_file.write_bytes(key)
        end = self.datapath.agent_end.fileno()
        words = ["--plan", str(plan), "--key", str(key_file), "--datapath-fd", str(end)]
        words += ["--listen", f"{self.address}:7474", "--metadata", f"{self.address}:7473"]
        words += [f"--clock-offset={offset_ns}", *(["--resume"] if resume else [])]
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", PROGRAM, str(lost_seconds), *words),
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stderr=log,
                pass_fds=[end],
            )

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> int:
        assert self.process is not None
        return await asyncio.wait_for(self.process.wait(), DEADLINE_SECONDS)

    async def end(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        self.datapath.close()


class Scene:
    """A plan, its agents and a coordinator."""

    def __init__(self, text: str, hosts: int, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "exp.plan"
        write(compile_source(text), self.path)
        self.plan: Plan = read_plan(self.path)
        self.timeline = Schedule(self.plan, RunOptions())
        self.agents = [RealAgent(n, directory) for n in range(hosts)]
        self.said: list[tuple[int, dict[str, Any]]] = []
        self.lost: list[tuple[int, str]] = []
        self.coordinator = Coordinator(
            [agent.host for agent in self.agents],
            KEY,
            lambda host, message: self.said.append((host, message)),
            lambda host, reason: self.lost.append((host, reason)),
            clock_budget_ns=50_000_000,  # these tests are not about how busy the machine is
        )

    def experiment(self) -> Experiment:
        placed = placement.planned(self.plan.topology, len(self.agents))
        return Experiment("run1", self.plan.digest, placed, RunOptions())

    async def begin(self) -> int:
        """From connecting to the start. Returns T0."""
        await self.coordinator.connect(DEADLINE_SECONDS / 3)
        await self.coordinator.prepare(self.experiment())
        return await self.coordinator.start(lead_ns=2_500_000_000)

    def applied(self, host: int) -> dict[int, dict[str, Any]]:
        """What a host said of its steps."""
        found: dict[int, dict[str, Any]] = {}
        for number, message in self.said:
            if number == host and message["say"] == "applied":
                assert message["step"] not in found, "told twice"
                found[message["step"]] = message
        return found

    async def all_applied(self) -> None:
        steps = set(range(len(self.timeline.steps)))
        hosts = range(len(self.agents))
        await until(
            lambda: all(self.applied(host).keys() == steps for host in hosts), "the last step"
        )


def act(text: str, hosts: int, play: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def whole(directory: Path) -> None:
        scene = Scene(text, hosts, directory)
        try:
            await asyncio.wait_for(play(scene), DEADLINE_SECONDS)
        finally:
            await scene.coordinator.close()
            for agent in scene.agents:
                await agent.end()
                if agent.log.exists():
                    print(agent.host, agent.log.read_text())  # shown with a failure

    with tempfile.TemporaryDirectory(prefix="tstorm-test-") as name:
        asyncio.run(whole(Path(name)))
