"""Instances wait for their join, crash and come back: with a known program, and behind a gate.

How late a program starts after the agent's order is printed (`pytest -rP` shows it) and is no
condition here: docs/hold.md has figures. CLUSTER_INSTANCES=N measures N of each kind.
"""

from __future__ import annotations

import json
import os
from statistics import median

import pytest

from tests.cluster.conftest import Make
from tests.cluster.experiments import Experiment, order
from tests.cluster.standins import WORKLOAD
from tests.cluster.support import NODES, Cluster, Pod, wait_until

pytestmark = pytest.mark.cluster

INSTANCES = int(os.environ.get("CLUSTER_INSTANCES", "1"))
TEXT = f"""
service held img=alpine:3 replicas={INSTANCES} entrypoint=['{WORKLOAD}']
service gated img=alpine:3 replicas={INSTANCES}
bridge s
link held--s latency=1ms
link gated--s latency=1ms
at 1s quit
"""


class Instance:
    """One instance, ordered about through the agent of its node."""

    def __init__(self, cluster: Cluster, made: Experiment, name: str) -> None:
        self.cluster, self.namespace, self.name = cluster, made.namespace, name
        wait_until(lambda: self.shown().node, f"{name} is on a node")

    def shown(self) -> Pod:
        return self.cluster.pod(self.namespace, self.name)

    def order(self, word: str) -> int:
        """When the agent gave the order, ns of the machine's clock."""
        pod = self.shown()
        agents = [p for p in self.cluster.pods(self.namespace) if p.component == "agent"]
        agent = next(p for p in agents if p.node == pod.node)
        [at] = order(self.cluster, agent, word, [pod.uid])
        return at

    def starts(self) -> list[int]:
        """When the program has started, as far as the present container's log goes."""
        if not self.shown().state("instance").keys() - {"waiting"}:
            return []  # there is no log yet
        log = self.cluster.logs(self.namespace, self.name, container="instance")
        lines = [line for line in log.splitlines() if line.startswith('{"standin":"workload"')]
        return [json.loads(line)["unix_ns"] for line in lines]

    def join(self) -> int:
        """How long after the order the program has started, ns."""
        ordered = self.order("join")
        return self.started(ordered) - ordered

    def wait_ready(self) -> None:
        wait_until(lambda: self.shown().ready, f"{self.name} is ready")

    def started(self, after: int) -> int:
        return wait_until(
            lambda: next((at for at in self.starts() if at > after), 0), f"{self.name} starts"
        )

    def wait_for(self, event: str) -> None:
        """Until tstorm-hold has reported it."""

        def reported() -> bool:
            log = self.cluster.logs(self.namespace, self.name, container="instance")
            return f'{{"tstorm_hold":"{event}"' in log

        wait_until(reported, f"{self.name} has {event}")

    def wait_for_gate(self, before: str) -> str:
        """Until a gate holds the pod that is not the one before; which one it is."""

        def closed() -> str:
            pod = self.shown()
            gate = pod.container_id("tstorm-gate")
            waits = pod.running("tstorm-gate") and not pod.running("instance")
            return gate if waits and gate != before else ""

        return wait_until(closed, lambda: f"a new gate: {self.shown().summary()}")


@pytest.fixture
def made(cluster: Cluster, experiment: Make) -> Experiment:
    found = experiment(TEXT)

    def agents_ready() -> bool:
        pods = cluster.pods(found.namespace)
        ready = [pod for pod in pods if pod.component == "agent" and pod.ready]
        return len(ready) == NODES

    wait_until(agents_ready, "the agents")
    return found


def tell(name: str, late_ns: list[int]) -> None:
    figures = " ".join(f"{late / 1e6:.1f}" for late in sorted(late_ns))
    print(f"\n{name}: median {median(late_ns) / 1e6:.1f} ms of {figures}")


def test_a_known_program_is_held_in_its_container(cluster: Cluster, made: Experiment) -> None:
    first, again = [], []
    for index in range(INSTANCES):
        instance = Instance(cluster, made, f"held-{index}")
        instance.wait_ready()
        before = instance.shown()
        assert instance.starts() == []
        first.append(instance.join())
        instance.order("crash")
        instance.wait_for("crashed")
        again.append(instance.join())
        assert len(instance.starts()) == 2
        instance.order("leave")
        instance.wait_for("left")
        last = instance.shown()
        assert (last.uid, last.restarts("instance"), last.ready) == (before.uid, 0, True)
    tell("held, first join", first)
    tell("held, after a crash", again)


def test_an_unknown_program_waits_behind_a_gate(cluster: Cluster, made: Experiment) -> None:
    first, again = [], []
    for index in range(INSTANCES):
        instance = Instance(cluster, made, f"gated-{index}")
        gate = instance.wait_for_gate("")
        uid = instance.shown().uid
        first.append(instance.join())
        instance.wait_ready()
        instance.order("end")
        instance.wait_for_gate(gate)
        again.append(instance.join())
        instance.wait_ready()
        assert instance.shown().uid == uid
    tell("gated, first join", first)
    tell("gated, after a crash", again)
