"""A whole run in a cluster that is none: the real driver and backend, an API server, nodes."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from compiler.plan.paths.path import Paths
from compiler.plan.reader import read_plan
from runtime.backend.base import Backend, RunContext
from runtime.backend.k8s import pods
from runtime.backend.k8s.cluster_backend import ClusterBackend, make
from runtime.driver import driver
from runtime.driver.driver_messages import DriverConfig
from runtime.judge.run_end import RunEnd
from runtime.options import RunOptions
from tests.doubles.agent import KEY
from tests.doubles.api import FakeApi, shown
from tests.doubles.follower import Followed
from tests.doubles.node import UNDERLAY_NS, FakeNode
from tests.waiting import until

DEADLINE_SECONDS = 120.0  # only a test that fails takes so long


class Scene:
    """Instances are on the nodes in turn; a round trip takes what the plan says."""

    def __init__(self, text: str, nodes: int, directory: Path) -> None:
        self.directory = directory
        write(compile_source(text), directory / "plan")
        for name in ("logs", "instances"):
            (directory / name).mkdir()
        self.plan = read_plan(directory / "plan")
        self.server = FakeApi()
        self.nodes = [FakeNode(number, self.plan) for number in range(nodes)]
        self.channel = Followed()
        self.options = RunOptions(clock_budget_ns=50_000_000, backend="k8s")
        self.instances = [node for node in self.plan.topology.nodes if node.service >= 0]
        self.addresses = [f"10.244.{n % nodes}.{n + 2}" for n in range(len(self.instances))]
        for node in self.nodes:
            node.rtt_ns = self.rtt_ns

    def rtt_ns(self, source: int, address: str) -> int:
        paths = Paths(self.plan.state_at(0))
        found = paths.path(source, self.addresses.index(address)).rtt_ns
        return 10**10 if found is None else found + UNDERLAY_NS

    def pod(self, number: int, **more: Any) -> dict[str, Any]:
        service, _, index = self.instances[number].name.rpartition(".")
        where = {"node": f"n{number % len(self.nodes)}", "ips": [self.addresses[number]]}
        found = shown(f"{service}-{index}", service, int(index), **{**where, **more})
        found["metadata"]["annotations"]["thunderstorm.dev/plan"] = self.plan.digest
        return found

    def agent_pod(self, number: int, **more: Any) -> dict[str, Any]:
        node = self.nodes[number]
        kinds = {"component": "agent", "container": "agent"}
        where = {"node": node.name, "ips": [node.address]}
        return shown(f"tstorm-agent-{number}", **{**kinds, **where, **more})

    async def fill(self) -> None:
        """All pods of the experiment, as they are when they run."""
        for number in range(len(self.instances)):
            self.server.put_pod(self.pod(number))
        for number in range(len(self.nodes)):
            self.server.put_pod(self.agent_pod(number))

    async def run(self) -> RunEnd:
        """How the run ended, as its driver says."""
        config = DriverConfig(
            run_id="run1",
            directory=str(self.directory),
            socket=str(self.directory / "control"),
            options=self.options,
        )
        making = make(KEY, self.server.api())

        def made(context: RunContext) -> Backend:
            backend = making(context)
            assert isinstance(backend, ClusterBackend)
            self.watch = backend._watch
            return backend

        with (self.directory / "driver.log").open("wb") as log:
            return await driver.carry_out(config, made, self.channel, log)

    async def change(self, pod: dict[str, Any]) -> None:
        """Puts a pod, and waits until the run has heard of it."""
        self.server.put_pod(pod)
        watch, told = self.watch, pods.pod(pod)
        await until(lambda: watch.pods.get(told.name) == told, "the watch to tell")

    def events(self) -> list[dict[str, Any]]:
        lines = (self.directory / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events() if event["kind"] == kind]


def act(
    text: str, nodes: int, directory: Path, play: Callable[[Scene], Coroutine[Any, Any, None]]
) -> None:
    async def whole() -> None:
        scene = Scene(text, nodes, directory)
        scene.server.listen()
        for node in scene.nodes:
            await node.listen()
        try:
            await asyncio.wait_for(play(scene), DEADLINE_SECONDS)
        finally:
            for node in scene.nodes:
                await node.die()
            scene.server.close()

    try:
        asyncio.run(whole())
    finally:  # the driver is this process: the tests after it shall not go before others
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        gc.unfreeze()
