"""A node for the tests: a supervisor in this very network namespace, and two pods beside it.

Run inside namespaces of its own (tests/agent/pod/scenes.py): eth0 here is the agent pod's, at one
bridge with those of the instances a.0 (10.77.0.1) and b.0 (10.77.0.2).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from compiler.plan.storage.plan_shards import pack
from runtime.agent.pod import pod_messages
from runtime.coordinator import placement
from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import AgreedExperiment, Coordinator
from runtime.coordinator.says import Message
from runtime.options import RunOptions
from runtime.rpc import secure
from runtime.rpc.calls import Asker
from runtime.rpc.secure import ChannelError, Connection
from runtime.system import procs
from tests.pktd.harness import World
from tests.pktd.pods import pods
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = "10.77.0.9"  # of the agent's pod
KEY = bytes(range(32))
ASK_SECONDS = 60.0
ALONE_SECONDS = 2.0
ROUND_TRIP_MS = 20.0
TEXT = (
    "service a img=x\nservice b img=x\nbridge s\n"
    "link a--s latency=4 bw=100Mb\nlink b--s latency=6 bw=50Mb\nat 1000s quit\n"
)
SUPERVISOR = """
import asyncio, os, sys
from pathlib import Path
from compiler.plan.storage import delivery
from runtime.agent.pod.supervisor_settings import HERE, Settings
from runtime.agent.pod.supervisor import Supervisor
place, digest, address, alone = sys.argv[1:]
place = Path(place)
net = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
here = Settings("n0", address, digest, net, shards=place / "shards", key=place / "key",
                scratch=place / "tmp")
async def main():
    await Supervisor(here, sys.stderr.buffer, float(alone)).run()
delivery.receive(here.shards, here.plan, here.digest)
asyncio.run(main())
"""

# `tstorm-agent capture`, which finds in its environment where it is.
CAPTURE = """
import json, sys
from pathlib import Path
from runtime.agent.pod import path_capture
from runtime.agent.pod.supervisor_settings import Settings
from runtime.errors import RunError
here = Settings("n0", "", "", -1, scratch=Path(sys.argv[1]) / "tmp")
stdin = sys.stdin.buffer
try:
    path_capture.serve(json.loads(stdin.readline()), here, stdin, sys.stdout.buffer)
except RunError as error:
    sys.exit(f"error: {error}")
"""


class Node:
    """`supervisor` is the present one; `said` is what supervisors said."""

    def __init__(self, world: World, place: Path, datapath: str) -> None:
        self.world, self.place, self.datapath = world, place, datapath
        *self.pods, bridge = pods(world, 2)
        here = str(os.getpid())
        world.run(
            bridge,
            *["ip", "link", "add", "far9", "type", "veth", "peer", "name", "eth0", "netns", here],
        )
        world.run(bridge, "ip", "link", "set", "far9", "master", "br0", "up")
        for words in (
            ["addr", "add", f"{ADDRESS}/16", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["link", "set", "lo", "up"],
        ):
            subprocess.run(["ip", *words], check=True)
        compiled = compile_source(TEXT, filename="exp.tdl", seed=None)
        write(compiled, place / "exp.plan")
        self.plan: Plan = read_plan(place / "exp.plan")
        (place / "shards").mkdir()
        (place / "tmp").mkdir()
        files = {path.name: path.read_bytes() for path in (place / "exp.plan").iterdir()}
        for name, data in pack(files, slim=True).items():
            (place / "shards" / name).write_bytes(data)
        (place / "key").write_bytes(KEY)
        self.said: list[dict[str, Any]] = []
        self.lost: list[str] = []
        self.agents_said: list[Message] = []
        self.supervisor = self.start()

    # -- the supervisor -----------------------------------------------------------------------

    def start(self) -> subprocess.Popen[bytes]:
        words = [str(self.place), self.plan.digest, ADDRESS, str(ALONE_SECONDS)]
        with (self.place / "log").open("ab") as log:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-P", "-c", SUPERVISOR, *words],
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        return self.supervisor

    def log(self) -> str:
        return (self.place / "log").read_text()

    async def connect(self, key: bytes = KEY) -> Connection:
        """As soon as it is up."""

        async def once() -> Connection | None:
            with contextlib.suppress(ChannelError):
                return await secure.connect(ADDRESS, pod_messages.SUPERVISOR_PORT, key)
            return None

        end = asyncio.get_running_loop().time() + ASK_SECONDS
        while (found := await once()) is None:
            assert asyncio.get_running_loop().time() < end, self.log()
            await asyncio.sleep(0.05)
        return found

    async def meet(self, key: bytes = KEY) -> None:
        """A coordinator's connection, by which `ask` asks."""
        self.asker = Asker((await self.connect(key)).channel, self.said.append)

    async def ask(self, request: dict[str, object]) -> dict[str, Any]:
        return (await self.asker.ask(request, ASK_SECONDS)).value

    async def leave(self) -> None:
        await self.asker.close()

    async def begin(self, *, resume: bool = False) -> pod_messages.StartReply:
        asked = pod_messages.StartRequest(self.datapath, resume, share=2).to_record()
        return pod_messages.begun(await self.ask(asked), "n0")

    async def end(self) -> str:
        return pod_messages.left(await self.ask({"do": "end"}), "n0")

    async def heard(self, what: str, count: int = 1) -> dict[str, Any]:
        """The newest message of a kind, once there are so many."""

        def found() -> list[dict[str, Any]]:
            return [message for message in self.said if message["say"] == what]

        await until(lambda: len(found()) >= count, lambda: f"{count} {what}: {self.said}")
        assert all(map(pod_messages.read, self.said))
        return found()[-1]

    # -- the run ------------------------------------------------------------------------------

    async def carry_out(self) -> None:
        """A whole run up to its start: from then on a and b are 20 ms apart."""
        await self.meet()
        self.begun = await self.begin()
        self.coordinator = Coordinator(
            [Host("n0", ADDRESS)],
            KEY,
            lambda _host, message: self.agents_said.append(message),
            lambda _host, reason: self.lost.append(reason),
        )
        await self.coordinator.connect(ASK_SECONDS)
        placed = placement.planned(self.plan.topology, 1)
        options = RunOptions(clock_budget_ns=100_000_000)
        await self.coordinator.prepare(AgreedExperiment("run1", self.plan.digest, placed, options))
        for node in range(2):
            port, _, netns, interface = self.port(node)
            request = {"do": "attach", "node": node, "port": port, "netns": netns, "if": interface}
            await self.coordinator.request(0, request)
        binding = {"do": "bind", "step": 0, "bind": [[0, 0], [1, 1]]}
        await self.coordinator.broadcast(binding)
        await self.coordinator.start()
        await until(lambda: self.agents_said, "the first step")

    def port(self, node: int) -> list[Any]:
        return [node, node, f"/proc/{self.pods[node]}/ns/net", "eth0"]

    async def rejoin(self) -> None:
        """The agent that resumes is told what a coordinator tells it."""
        resume = {"ports": [self.port(0), self.port(1)], "applied": 1}
        assert await self.coordinator.rejoin(0, lambda: resume, ASK_SECONDS)

    async def ping(self, count: int = 3) -> list[float]:
        """Round trips from a to b in ms; what is lost is not there."""
        words = ["ping", "-n", "-i", "0.1", "-W", "1", "-c", str(count), "10.77.0.2"]
        out = await asyncio.to_thread(self.world.run, self.pods[0], *words, check=False)
        return times(out)

    async def shaped(self) -> None:
        found = await self.ping()
        assert len(found) == 3, self.log()
        assert min(found) >= ROUND_TRIP_MS - 0.1

    def capture(self, path: str) -> subprocess.Popen[bytes]:
        """Of all packets but the run's probes, from now on; it has been asked."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", CAPTURE, self.place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            bufsize=0,  # communicate() gets all that comes after a line that was read
        )
        request = {"path": path, "probes": 0, "filter": ""}
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return process

    # -- what is left -------------------------------------------------------------------------

    def children(self) -> list[int]:
        return [process.pid for process in procs.descendants(self.supervisor.pid)]

    def traces(self) -> str:
        """Devices, queueing disciplines and filters that pods have beside their own."""
        found = []
        for pid in self.pods:
            links = self.world.run(pid, "ip", "-o", "link")
            found += re.findall(r"^\d+: (emu\d+)", links, re.MULTILINE)
            disciplines = self.world.run(pid, "tc", "qdisc", "show", "dev", "eth0")
            found += [line for line in disciplines.splitlines() if "noqueue" not in line]
        return "\n".join(found)

    async def nothing_left(self) -> None:
        """No child, no trace, no file; and pods reach each other as if nothing had ever been."""
        await until(lambda: not self.children(), lambda: f"children: {self.children()}")
        assert self.traces() == ""
        assert not (self.place / "tmp/ports").exists()
        found = await self.ping()
        assert len(found) == 3
        assert min(found) < ROUND_TRIP_MS

    def close(self) -> None:
        for pid in (*self.children(), self.supervisor.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.supervisor.wait()


def times(out: str) -> list[float]:
    return [float(word) for word in re.findall(r"time=([\d.]+) ms", out)]
