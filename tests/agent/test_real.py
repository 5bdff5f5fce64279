"""Two agents, each with a pktd of its own, over namespaces joined by a bridge: real packets."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.agent.stage import DEADLINE_SECONDS, Stage
from tests.intime import Attempt, in_time
from tests.pktd.harness import PKTD, World
from tests.pktd.pods import pods
from tests.waiting import until

pytestmark = pytest.mark.e2e

SETTINGS = [
    pytest.param(False, id="root", marks=pytest.mark.root),
    pytest.param(True, id="rootless"),
]
TEXT = (
    "service a img=x\nservice b img=x\nbridge s\n"
    "link a--s latency=4 bw=100Mb\nlink b--s latency=6 bw=50Mb\n"
    "at 3s b--s set latency=26\n"
)
# Steps are so far apart that a few packets find their way in between on a busy machine.
CUT = "at 6s a disconnect\nat 9s a reconnect\n"
END = "at 60s quit\n"
PING = ("ping", "-n", "-i", "0.05", "-W", "1")


class RealDatapath:
    """A pktd; the test keeps the agent's end of the connection, so it outlives agents."""

    def __init__(self, world: World) -> None:
        self.agent_end, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*world._enter, str(PKTD), "--cpu-share", "2"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
            )

    def close(self) -> None:
        self.agent_end.close()
        assert self.process.wait(DEADLINE_SECONDS) == 0


class RealStage(Stage):
    """`pids` are the namespaces of the instances, by node."""

    def __init__(self, directory: Path, world: World, text: str) -> None:
        super().__init__(directory, text, 2)
        self.world = world
        self.pids = pods(world, 2)[:2]

    async def raise_curtain(self) -> None:
        for host in range(2):
            self.datapaths.append(RealDatapath(self.world))  # type: ignore[arg-type]
            self.processes.append(self.start_agent(self.options(host)))

    async def attach(self) -> None:
        for node, pid in enumerate(self.pids):
            netns = f"/proc/{pid}/ns/net"
            request = {"do": "attach", "node": node, "port": node, "netns": netns, "if": "eth0"}
            answer = await self.coordinator.request(self.placement[node], request)
            assert answer["kind"] in ("tap", "packet")
        await self.bind(0, {0: 0, 1: 1})

    async def ping(self, version: int, count: int) -> list[float]:
        """Round trips from a to b in ms; what is lost is not there."""
        address = {4: "10.77.0.2", 6: "fd77:7473::2"}[version]
        command = [*PING, "-c", str(count), address]
        out = await asyncio.to_thread(self.world.run, self.pids[0], *command, check=False)
        return [float(word) for word in re.findall(r"time=([\d.]+) ms", out)]


def play(folder: Path, rootless: bool, text: str, scene: Any) -> None:
    """Again if it did not hold and the machine was late: steps come at their times."""

    def trial(attempt: Attempt) -> None:
        directory = folder / attempt.name("stage")
        directory.mkdir()
        play_once(directory, rootless, text, scene)

    in_time(trial)


def play_once(directory: Path, rootless: bool, text: str, scene: Any) -> None:
    async def whole(world: World) -> None:
        stage = RealStage(directory, world, text)
        try:
            await stage.raise_curtain()
            action: Coroutine[Any, Any, None] = scene(stage)
            await action
        except BaseException:
            print((directory / "agents.log").read_text(), stage.said)  # pytest shows it
            raise
        finally:
            await stage.end()

    with World(rootless=rootless) as world:
        asyncio.run(whole(world))


@pytest.mark.parametrize("rootless", SETTINGS)
def test_packets_see_the_network_of_each_step(tmp_path: Path, rootless: bool) -> None:
    async def scene(stage: RealStage) -> None:
        await stage.ready()
        await stage.attach()
        assert len(await stage.ping(4, 2)) == 0, "before the start nothing passes"
        await stage.coordinator.start()
        await until(lambda: stage.applied(0) and stage.applied(1), "the start")
        for version in (4, 6):
            times = await stage.ping(version, 4)
            assert len(times) == 4
            assert min(times) >= 19.9, "4 + 6 ms, there and back"
            assert min(times) < 59.9, "not yet what comes at 3 s"
        await until(lambda: len(stage.applied(0)) > 1 and len(stage.applied(1)) > 1, "step 1")
        times = await stage.ping(4, 4)
        assert min(times) >= 59.9
        await until(lambda: len(stage.applied(0)) > 2 and len(stage.applied(1)) > 2, "step 2")
        assert await stage.ping(4, 2) == []
        await until(lambda: len(stage.applied(0)) > 3 and len(stage.applied(1)) > 3, "step 3")
        assert len(await stage.ping(4, 2)) == 2
        assert any(row[:2] == [0, 1] for sample in stage.samples() for row in sample.pairs)
        assert all(not late for host in (0, 1) for _, late in stage.applied(host))

    play(tmp_path, rootless, TEXT + CUT + END, scene)


@pytest.mark.parametrize("rootless", SETTINGS)
def test_packets_pass_while_an_agent_is_replaced(tmp_path: Path, rootless: bool) -> None:
    async def scene(stage: RealStage) -> None:
        await stage.ready()
        await stage.attach()
        await stage.coordinator.start()
        await until(lambda: stage.applied(0) and stage.applied(1), "the start")
        pinging = asyncio.ensure_future(stage.ping(4, 30))  # 1.5 s, over before step 1
        stage.processes[0].send_signal(signal.SIGKILL)
        await until(lambda: stage.lost, "the loss")
        stage.again(0)
        ports = [[0, 0, f"/proc/{stage.pids[0]}/ns/net", "eth0"]]
        assert await stage.coordinator.rejoin(0, lambda: {"ports": ports, "applied": 1})
        assert len(await pinging) == 30
        await until(lambda: len(stage.applied(0)) > 1 and len(stage.applied(1)) > 1, "step 1")
        assert min(await stage.ping(4, 4)) >= 59.9

    play(tmp_path, rootless, TEXT + END, scene)
