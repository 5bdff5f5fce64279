"""A node of a cluster that is none: a supervisor and an agent that answer as the real ones, and
instances that do as they are told, each step when it is due.

All of 127.0.0.0/8 is this machine, so every node has an address of its own and the real ports.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from compiler.plan.reader import Plan
from runtime.agent.pod.pod_messages import SUPERVISOR_PORT
from runtime.agent.process.commandline import CONTROL_PORT
from runtime.options import decode
from runtime.rpc.calls import RefusedError
from runtime.schedule import Schedule
from tests.doubles.agent import FakeAgent, FakePeer

UNDERLAY_NS = 200_000
VERSION = "0.1.0"


class FakeNode(FakePeer):
    """`rtt_ns` is what an echo takes between two instances (nodes of the plan) over the emulated
    network; `bypasses`: its packets pass by the hook. `supervised` are the requests to its
    supervisor."""

    def __init__(self, number: int, plan: Plan, name: str = "", address: str = "") -> None:
        pid = os.getpid()
        self.name = name or f"n{number}"
        own = f"127.{64 + pid % 150}.{pid // 150 % 250}.{number + 1}"
        super().__init__(address or own, SUPERVISOR_PORT)
        self.agent = FakeAgent(number, address=self.address, port=CONTROL_PORT)
        self.plan = plan
        self.kernel: dict[str, str] = {"netem": "No such file or directory"}
        self.version, self.digest = VERSION, plan.digest
        self.rtt_ns: Callable[[int, str], int] = lambda _node, _address: 10**10
        self.bypasses = self.uncounted = False
        self._open = False
        self.fails: dict[str, str] = {}  # instance -> why its program does not start
        self.supervised: list[dict[str, Any]] = []
        self.hangs: set[str] = set()  # what its supervisor never answers
        self.refuses: set[str] = set()  # what it cannot do
        self.may_begin = asyncio.Event()  # until then `begin` is not answered
        self.may_begin.set()
        self.attached: set[int] = set()
        self.lines: dict[int, int] = {}
        self.own: list[int] = []
        self.drops = 0
        self._options = decode({}, "options")
        self._t0_ns = 0
        self.agent.behave.update(
            prepare=self._prepare,
            pods=self._pods,
            reach=self._reach,
            attach=self._attach,
            detach=self._detach,
            open=self._put_in_force,
            start=self._start,
            status=self._status,
            echo=self._echo,
            finish=lambda _request: {"running": []},
        )

    # -- the supervisor -------------------------------------------------------------------------

    async def _handle(self, request: dict[str, Any], _now: int) -> Mapping[str, object]:
        self.supervised.append(request)
        do = request["do"]
        if do in self.hangs:
            await asyncio.Event().wait()
        if do in self.refuses:
            raise RefusedError("its disk is full")
        if do == "facts":
            engine = {"why": "", "ports": "tap", "stamp": "bpf", "scheduling": "fifo"}
            return {
                "node": self.name,
                "digest": self.digest,
                "version": self.version,
                "kernel": self.kernel,
                "user": engine,
                "boot_id": "b",
                "uname": "Linux",
                "cgroup": "v2",
                "running": False,
            }
        if do == "begin":
            await self.may_begin.wait()
            await self.agent.listen()
            return {"agent_pid": 100, "datapath_pid": 101}
        if do == "end":
            await self.agent.die()
            return {"left": ""}
        return {}

    async def die(self) -> None:
        """The whole container, as by SIGKILL; one that listens again is another one's process."""
        await self.agent.die()
        await super().die()

    # -- the agent ------------------------------------------------------------------------------

    def _prepare(self, request: dict[str, Any]) -> Mapping[str, object]:
        self._options = decode(request["options"], "options")
        self.own = [n for n, host in enumerate(request["placement"]) if host == request["host"]]
        self.addresses = request["addresses"]
        if "resume" in request:
            self._t0_ns = request["resume"]["t0_ns"]
            self.attached = {port[0] for port in request["resume"]["ports"]}
            self.do(self._carry_out(request["resume"]["applied"]))
        return {"digest": request["digest"], "datapath": "fake"}

    def _pods(self, request: dict[str, Any]) -> Mapping[str, object]:
        found = [[node, 1000 + node, 500 + node, "run"] for node, _ in request["pods"]]
        return {"found": found, "missing": []}

    def _reach(self, request: dict[str, Any]) -> Mapping[str, object]:
        answers = []
        for node, address, count, _interval, timeout in request["probes"]:
            rtt_ns = UNDERLAY_NS
            if node in self.attached and not self.bypasses:
                rtt_ns = self.rtt_ns(node, address) if self._open else 10**10
                self.drops += 0 if rtt_ns <= timeout or self.uncounted else count
            answers.append([node, address, count, [rtt_ns] * count if rtt_ns <= timeout else []])
        return {"answers": answers}

    def _echo(self, request: dict[str, Any]) -> Mapping[str, object]:
        self.do(self._echoes(request["echoes"]))
        return {}

    async def _echoes(self, wanted: list[list[Any]]) -> None:
        """More than are asked for, so that a short run has enough; and some of no pair of ours."""
        while True:
            await asyncio.sleep(0.05)
            now = self._elapsed()
            rows = [
                [row[0], now - back * 1_000_000, self.rtt_ns(row[1], row[2])]
                for row in wanted
                for back in range(40, 90, 5)
            ]
            self.agent.say(say="echoes", rows=[*rows, [4000, now, 1]])

    def _attach(self, request: dict[str, Any]) -> Mapping[str, object]:
        self.attached.add(request["node"])
        return {"kind": "tap", "stamp": "bpf"}

    def _put_in_force(self, _request: dict[str, Any]) -> Mapping[str, object]:
        self._open = True
        return {}

    def _detach(self, request: dict[str, Any]) -> Mapping[str, object]:
        self.attached.discard(request["port"])
        return {}

    def _status(self, _request: dict[str, Any]) -> Mapping[str, object]:
        return {"datapath": {"drop_unknown": str(self.drops)}}

    def _start(self, request: dict[str, Any]) -> Mapping[str, object]:
        self._t0_ns = request["t0_ns"]
        self.do(self._carry_out(0))
        return {}

    async def _carry_out(self, first: int) -> None:
        """Every step when it is due, and its process events, as an agent does."""
        timeline = Schedule(self.plan, self._options)
        names = {node.name: n for n, node in enumerate(self.plan.topology.nodes)}
        for number, step in list(enumerate(timeline.steps))[first:]:
            await asyncio.sleep((self._t0_ns + step.due_ns - time.monotonic_ns()) / 1e9)
            for event in step.events:
                if event.kind in ("join", "leave", "crash") and names[event.target] in self.own:
                    self._lived(number, names[event.target], event.target, event.kind)
            self.agent.say(say="applied", step=number, elapsed_ns=self._elapsed(), late=False)

    def _elapsed(self) -> int:
        return time.monotonic_ns() - self._t0_ns

    def _lived(self, step: int, node: int, name: str, what: str) -> None:
        life = {"say": "life", "step": step, "node": node, "what": what, "status": ""}
        self.agent.say(**life, elapsed_ns=self._elapsed())
        if what == "join" and name in self.fails:
            self.report(node, "failed", program="prog", error=self.fails[name])
        elif what == "join":
            self.report(node, "started", pid=7)
        else:
            self.report(node, "ended", signal=15 if what == "leave" else 9)
            self.report(node, "left" if what == "leave" else "crashed")

    def report(self, node: int, event: str, **more: Any) -> None:
        line = self.lines.get(node, 0)
        self.lines[node] = line + 1
        said = {"say": "report", "node": node, "line": line, "event": event, **more}
        self.agent.say(**said, elapsed_ns=self._elapsed())
