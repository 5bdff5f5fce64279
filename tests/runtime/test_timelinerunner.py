"""The runner of the timeline with instances that are not of this machine: what it asks of them, in
which order, and that it logs what they say happened."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.sources import NOWHERE, Content
from runtime.backend.base import Effect
from runtime.driver.timelinerunner import TimelineRunner
from runtime.errors import ProgramsError
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tdl.ast import ServiceStatement
from tdl.diagnostics import Sink
from tests.doubles.backend import FakeInstance, FakeNetwork
from tests.waiting import in_a_loop, until

MS = 1_000_000
TEXT = (
    "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    'at 0s b join\nat 100ms b leave\nat 1500ms b join\ninclude "crash.tdl"\nat 1700ms quit\n'
)


class Included:
    trace = NOWHERE.trace
    delays = NOWHERE.delays
    translated = NOWHERE.translated
    mobility = NOWHERE.mobility

    def text(self, path: str) -> bytes:
        assert path == "crash.tdl"
        return b"\nat 1600ms a crash\n"

    def files(self, service: ServiceStatement, sink: Sink) -> list[Content]:
        return []


class Scene:
    def __init__(self) -> None:
        plan = compile_source(TEXT, sources=Included()).plan
        timeline = Schedule(plan, RunOptions())
        self.asked: list[str] = []
        self.events: list[Mapping[str, Any]] = []
        self.warnings: list[str] = []
        nodes = [node for node in plan.topology.nodes if node.service >= 0]
        self.lives = {
            node.name: FakeInstance(node, 10 * number, self.asked, lag_ns=7 * MS)
            for number, node in enumerate(nodes)
        }
        self.runner = TimelineRunner(
            plan, timeline, self.lives, self.events.append, self.warnings.append
        )
        self.network: Any = FakeNetwork(self.runner.on_effect, timeline.clock)

    async def play(self) -> None:
        await self.runner.stage_start(self.network)
        await self.runner.carry_out(self.network)
        for gate in (gate for one in self.lives.values() for gate in one.gates):
            assert os.read(gate, 1) == b""  # opened
        for one in self.lives.values():
            one.close()

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]


@in_a_loop
async def test_instances_elsewhere_are_asked_in_order_and_their_word_is_logged() -> None:
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


@in_a_loop
async def test_what_ends_a_run_early_is_one_record_and_nothing_is_done_later() -> None:
    scene = Scene()
    scene.runner.end_early("before time 0")
    await scene.runner.stage_start(scene.network)
    carrying = asyncio.create_task(scene.runner.carry_out(scene.network))
    await until(lambda: scene.of("leave"), "the leave at 100 ms")
    for why in ("interrupted", "again"):
        scene.runner.end_early(why)
    carrying.cancel()
    (over,) = scene.of("quit")
    assert (over["reason"], "seq" in over) == ("interrupted", False)
    assert 100 * MS <= over["applied_ns"] == over["planned_ns"]
    scene.runner.on_effect(2, Effect(0))
    assert len(scene.of("join")) == 2


@pytest.mark.parametrize("unheard", [False, True])
@in_a_loop
async def test_a_program_that_cannot_start_ends_the_run_where_that_is_known(
    *, unheard: bool
) -> None:
    scene = Scene()
    scene.lives["a.0"].refuses, scene.lives["a.0"].unheard = os.strerror(errno.ENOENT), unheard
    await scene.play()
    assert scene.lives["a.0"].start_error == "no such program"
    assert scene.warnings == ["a.0: cannot start 'there': no such program"]
    assert [event["error"] for event in scene.of("exit")] == ["no such program"]
    assert "started_ns" not in scene.of("join")[0]
    if unheard:
        assert not scene.runner.broken.done()
        return
    error = scene.runner.broken.exception()
    assert isinstance(error, ProgramsError)
    assert (error.message, error.instance) == (scene.warnings[0], "a.0")
