"""A backend without instances: every step takes effect when it is due, programs only write."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.plan.reader import Plan
from compiler.plan.types import Node
from runtime.backend.base import (
    CapturedPart,
    Change,
    Counters,
    Effect,
    Entrance,
    Notice,
    OnEffect,
    PortAllocator,
    RunContext,
)
from runtime.backend.hosts.samples import HostSamples
from runtime.backend.instance import (
    Incarnation,
    Instance,
    Joined,
    Left,
)
from runtime.datapath.sampler import PAIR_COLUMNS
from runtime.errors import RunError
from runtime.judge.pulse import Pulse
from runtime.probing.echo_prober import Echo, EchoProber, Heard
from runtime.rundir.held_directory import append, write_all
from runtime.rundir.line_files import LineFile
from runtime.schedule import PlanClock

MS = 1_000_000
MARGIN_NS = 50 * MS
LOG_SECONDS = 0.02
# What a log may hold: bytes that are no text, and lines that look like headers of the stream.
NOISE = b'\x00\xff\r\n{"end": true}\n{"file": "events.jsonl", "offset": 0, "bytes": 9}\n'


class FakeInstance(Instance):
    """Somewhere else: it starts its program by itself. `asked` is what it was told to do, and it
    says that it did that `lag_ns` later. `refuses`: why its program does not start, `unheard`: that
    it has not said so itself."""

    def __init__(
        self, node: Node, port: int, asked: list[str] | None = None, lag_ns: int = 0
    ) -> None:
        super().__init__(node)
        self.refuses, self.unheard = "", False
        self.gates: list[int] = []
        self.asked = [] if asked is None else asked
        self._lag_ns = lag_ns
        self._joined_ns = 0
        self._ports = itertools.count(port)

    @property
    def argv(self) -> tuple[str, ...]:
        return ("there",)

    def prepare(self) -> asyncio.Future[Any]:
        """It is there already."""
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        found.set_result(None)
        return found

    async def next_incarnation(self) -> Incarnation:
        return Incarnation(self.node.name, next(self._ports))

    def hold(self, incarnation: Incarnation, gate: int) -> None:
        self.asked.append(f"hold {self.node.name} at {incarnation.port}")
        self.gates.append(os.dup(gate))

    async def arrive(self, incarnation: Incarnation, opened_ns: int = 0) -> int:
        self.asked.append(f"join {self.node.name} at {incarnation.port}")
        self._arrived()
        self.present, self.started, self._joined_ns = incarnation, True, self._now()
        return self._joined_ns

    async def start(self, incarnation: Incarnation) -> Joined:
        ran_ns = None if self.refuses else self._joined_ns + MS
        return Joined(self._joined_ns, ran_ns, self.refuses, unheard=self.unheard)

    async def _signal(self, kind: str) -> int:
        raise AssertionError("nothing pauses it")

    async def leave(self) -> Left:
        self.asked.append(f"leave {self.node.name}")
        incarnation, self.present = self.present, None
        assert incarnation is not None
        asyncio.get_running_loop().call_later(0.02, incarnation.gone.set_result, None)
        return Left(self._now(), incarnation)

    async def crash(self) -> int:
        self.asked.append(f"crash {self.node.name}")
        self.present = None
        return self._now()

    def _now(self) -> int:
        return time.monotonic_ns() + self._lag_ns

    def close(self) -> None:
        for gate in self.gates:
            os.close(gate)


class FakePorts:
    more = ()

    async def tidy(self, next_due: Callable[[], int]) -> None:
        await asyncio.Event().wait()


class FakeSamples(HostSamples):
    """Something moves all the time."""

    async def run(self) -> None:
        while not self._stop.is_set():
            self.take(0, 1, [[0, 1, *range(len(PAIR_COLUMNS) - 2)]])
            await asyncio.sleep(LOG_SECONDS)


class FakeNetwork:
    """Every step takes effect when it is due. `bound` is what the steps bind, `cuts` whom it cut
    off."""

    def __init__(self, on_effect: OnEffect, clock: PlanClock) -> None:
        self._on_effect = on_effect
        self._clock = clock
        self._t0_ns = 0
        self.bound: list[Mapping[int, int]] = []
        self.cuts: list[int] = []
        self.facts: dict[str, Any] = {"datapath": "none"}
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.fault: RunError | None = None
        self.pids: list[int] = []
        self.used: list[tuple[tuple[int, ...], bool]] = []
        self.offers: list[str] = []  # what became of longer plans
        self.refusal = ""  # of the next one
        self.ports: PortAllocator = FakePorts()  # type: ignore[assignment]

    async def start(self) -> None:
        """It needs nothing."""

    def _effect(self, number: int, due_ns: int) -> None:
        at = (self._t0_ns + due_ns) / 1e9
        asyncio.get_running_loop().call_at(at, self._on_effect, number, Effect(due_ns))

    async def put_in_force(self, bound: Mapping[int, int]) -> None:
        """Nothing passes anyway."""

    async def begin(self, bound: Mapping[int, int]) -> int:
        self.bound.append(bound)
        self._t0_ns = time.monotonic_ns() + MARGIN_NS
        self._effect(0, 0)
        return self._t0_ns

    def sampler(self, file: LineFile, pulse: Pulse) -> Counters:
        return FakeSamples(file, self._clock, ["host0"])

    async def stage(self, change: Change) -> Mapping[int, frozenset[int]]:
        self.bound.append(change.bound)
        self._effect(change.number, change.step.due_ns)
        return {node: frozenset() for node in change.leaving}

    async def offer(self, plan: Plan, base: str, left: Path) -> str:
        del plan, base, left
        self.offers.append("offer")
        if self.refusal:
            raise RunError(self.refusal)
        return ""

    async def withdraw(self) -> None:
        self.offers.append("withdraw")

    def follow(self, plan: Plan) -> None:
        """It takes every step as it comes."""
        self.offers.append("follow")

    async def capture(self, target: str, *, is_link: bool, probes: bool, part: int) -> CapturedPart:
        del is_link, probes, part
        raise RunError(f"nothing passes {target}")

    async def use(self, links: Sequence[int], *, up: bool) -> int:
        self.used.append((tuple(links), up))
        return time.monotonic_ns() - self._t0_ns

    async def cut(self, node: int, links: frozenset[int]) -> bool:
        self.cuts.append(node)
        return True

    def waiting_for(self) -> list[str]:
        return []

    async def why(self) -> RunError:
        return RunError("nothing has failed")

    async def lost(self) -> dict[str, str]:
        return {}

    async def end(self) -> dict[str, Any]:
        return {"totals": {}}


class FakeBackend:
    """See runtime.backend.base (Backend). `log_bytes` at a time is what each program writes; one
    that `hangs` does not end them."""

    has_files_here = False

    def __init__(self, context: RunContext, log_bytes: int, *, hangs: bool = False) -> None:
        self._hangs = hangs
        self._context = context
        self._log_bytes = log_bytes
        self.network: FakeNetwork | None = None
        self.instances: dict[str, FakeInstance] = {}
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._logging: asyncio.Task[None] | None = None

    async def start(self) -> FakeNetwork:
        self.network = FakeNetwork(self._context.on_effect, self._context.schedule.clock)
        for index, node in enumerate(self._context.plan.topology.nodes):
            if node.service >= 0:
                self.instances[node.name] = FakeInstance(node, 10 * index)
        self._logging = asyncio.create_task(self._write_logs(sorted(self.instances)))
        os.close(append(self._context.directory / "logs/quiet.log"))
        self._context.log.write("begun ✓\n".encode())
        self._context.notice("everything is there ✓")
        return self.network

    async def _write_logs(self, names: Collection[str]) -> None:
        folder = self._context.directory / "logs"
        files = [append(folder / f"{name}.log") for name in names]
        data = NOISE * (self._log_bytes // len(NOISE) + 1)
        for number in range(1 << 30):
            for file in files:
                try:
                    write_all(file, b"%d" % number + data[: self._log_bytes])
                except OSError as error:
                    self._context.notice(f"cannot write a log: {error.strerror}")
            await asyncio.sleep(LOG_SECONDS)

    async def why(self) -> RunError:
        return RunError("nothing has failed")

    async def enter(self, instance: str) -> Entrance:
        raise RunError("there is nothing to enter")

    def prober(self, file: LineFile | None, notice: Notice, on_end: Notice) -> EchoProber:
        context = self._context
        return EchoProber(context.plan, context.schedule, file, self._echo, notice, on_end)

    def begin(self, t0_ns: int) -> None:
        """Nothing waits for it."""

    async def observe(self, samples: LineFile) -> None:
        """There is nothing to see."""

    async def _echo(self, echoes: Sequence[Echo], heard: Heard) -> None:
        raise RunError("nobody sends echoes")

    async def finish(self) -> dict[str, Any]:
        if self._hangs:
            await asyncio.Event().wait()
        if self._logging is not None:
            self._logging.cancel()
            await asyncio.wait({self._logging})
        return {}

    def close(self) -> None:
        for instance in self.instances.values():
            instance.close()
