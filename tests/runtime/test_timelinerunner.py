"""The runner of the timeline with instances that are not of this machine: what it asks of them, in
which order, and that it logs what they say happened."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from compiler.pipeline import compile_source
from compiler.plan.types import Node
from compiler.sources import Content
from runtime.backend.base import Change, Effect
from runtime.backend.lives import Commands, Ended, Joined, Left, Life, Runner
from runtime.driver.timelinerunner import TimelineRunner
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tdl.ast import ServiceStatement
from tdl.diagnostics import Sink
from tests.waiting import until

MS = 1_000_000
TEXT = (
    "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    'at 0s b join\nat 100ms b leave\nat 1500ms b join\ninclude "crash.tdl"\nat 1700ms quit\n'
)


class Included:
    def text(self, path: str) -> bytes:
        assert path == "crash.tdl"
        return b"\nat 1600ms a crash\n"

    def files(self, service: ServiceStatement, sink: Sink) -> list[Content]:
        return []


class Told:
    """A life somewhere else."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0


class Elsewhere:
    """An instance whose agent says what it did: always 7 ms after it was asked here."""

    def __init__(self, node: Node, port: int, asked: list[str]) -> None:
        self.node, self.state, self.start_error = node, "down", ""
        self.ended: Ended | None = None
        self.started = self.killed = self.paused = False
        self.argv = ("there",)
        self.commands: Commands | None = None
        self.runner: Runner | None = None
        self.present: Life | None = None
        self.refuses = ""
        self.gates: list[int] = []
        self._ports = iter(range(port, port + 10))
        self._asked = asked

    def prepare(self) -> asyncio.Future[Any]:
        """It is there already: its container waits for its join."""
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        found.set_result(None)
        return found

    async def next_life(self) -> Told:
        return Told(next(self._ports))

    def hold(self, life: Life, gate: int) -> None:
        self._asked.append(f"hold {self.node.name} at {life.port}")
        self.gates.append(os.dup(gate))

    async def join(self, life: Life, opened_ns: int) -> Joined:
        self._asked.append(f"join {self.node.name} at {life.port}")
        self.present, now = life, time.monotonic_ns()
        return Joined(now + 7 * MS, None if self.refuses else now + 8 * MS, self.refuses)

    async def arrive(self, life: Life) -> int:
        raise AssertionError("whoever is elsewhere starts its program by itself")

    async def start(self, life: Life) -> Joined:
        raise AssertionError("whoever is elsewhere starts its program by itself")

    async def pause(self) -> int:
        raise AssertionError("nothing pauses it")

    async def resume(self) -> int:
        raise AssertionError("nothing pauses it")

    async def leave(self) -> Left:
        self._asked.append(f"leave {self.node.name}")
        life, self.present = self.present, None
        assert isinstance(life, Told)
        asyncio.get_running_loop().call_later(0.02, life.gone.set_result, None)
        return Left(time.monotonic_ns() + 7 * MS, life)

    async def crash(self) -> int:
        self._asked.append(f"crash {self.node.name}")
        self.present = None
        return time.monotonic_ns() + 7 * MS


class Network:
    """Every step takes effect when it is due."""

    def __init__(self) -> None:
        self.runner: TimelineRunner
        self.bound: list[Mapping[int, int]] = []
        self.cuts: list[int] = []

    def _effect(self, number: int, due_ns: int) -> None:
        asyncio.get_running_loop().call_at(
            (self.t0_ns + due_ns) / 1e9, self.runner.on_effect, number, Effect(due_ns)
        )

    async def begin(self, bound: Mapping[int, int]) -> int:
        self.bound.append(bound)
        self.t0_ns = time.monotonic_ns() + 10 * MS
        self._effect(0, 0)
        return self.t0_ns

    async def stage(self, change: Change) -> dict[int, frozenset[int]]:
        self.bound.append(change.bound)
        self._effect(change.number, change.step.due_ns)
        return {node: frozenset() for node in change.leaving}

    async def cut(self, node: int, links: frozenset[int]) -> bool:
        self.cuts.append(node)
        return True


class Scene:
    def __init__(self) -> None:
        plan = compile_source(TEXT, sources=Included()).plan
        timeline = Schedule(plan, RunOptions())
        self.asked: list[str] = []
        self.events: list[Mapping[str, Any]] = []
        self.warnings: list[str] = []
        nodes = [node for node in plan.topology.nodes if node.service >= 0]
        self.lives = {n.name: Elsewhere(n, 10 * k, self.asked) for k, n in enumerate(nodes)}
        self.network: Any = Network()
        self.runner = self.network.runner = TimelineRunner(
            plan, timeline, self.lives, self.events.append, self.warnings.append
        )

    async def play(self) -> None:
        await self.runner.stage_start(self.network)
        await self.runner.carry_out(self.network)
        for gate in (gate for one in self.lives.values() for gate in one.gates):
            assert os.read(gate, 1) == b""  # opened
            os.close(gate)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]


def test_instances_elsewhere_are_asked_in_order_and_their_word_is_logged() -> None:
    async def whole() -> None:
        scene = Scene()
        await scene.play()
        await until(lambda: scene.of("cut"), "the cut after the farewell")
        assert scene.asked == [
            "hold a.0 at 0",
            "hold b.0 at 10",
            "join a.0 at 0",
            "join b.0 at 10",
            "leave b.0",
            "join b.0 at 11",
            "crash a.0",
        ]
        assert scene.network.bound == [{0: 0, 1: 10}, {}, {1: 11}, {}, {}]
        assert scene.network.cuts == [1]
        joins = scene.of("join")
        assert [event["target"] for event in joins] == ["a.0", "b.0", "b.0"]
        for event in (*joins, *scene.of("leave"), *scene.of("crash")):
            assert event["lag_ns"] >= 7 * MS  # as the instance said, not as it was heard
            assert event["network_ns"] == event["due_ns"]
        assert [(e["line"], e["file"]) for e in scene.of("crash")] == [(2, "crash.tdl")]
        assert all("file" not in event for event in joins)
        assert all(event["started_ns"] == event["applied_ns"] + MS for event in joins)
        assert [one.state for one in scene.lives.values()] == ["down", "up"]

    asyncio.run(whole())


def test_a_program_that_does_not_start_elsewhere_is_told() -> None:
    async def whole() -> None:
        scene = Scene()
        scene.lives["a.0"].refuses = "no such file"
        await scene.play()
        assert scene.lives["a.0"].start_error == "no such file"
        assert scene.warnings == ["a.0: cannot start there: no such file"]
        assert [event["error"] for event in scene.of("exit")] == ["no such file"]
        assert "started_ns" not in scene.of("join")[0]

    asyncio.run(whole())
