"""Instances wait for their join, crash and come back: with a known program, and behind a gate.

How late a program starts after the agent's order is printed (`pytest -rP` shows it) and is no
condition here: docs/hold.md has figures. CLUSTER_ROUNDS=N measures N times.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.cluster.conftest import Make
from tests.cluster.experiments import Experiment
from tests.cluster.standins import BY_HAND, WORKLOAD
from tests.cluster.support import Cluster, Pod, wait_until

pytestmark = pytest.mark.cluster

ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "1"))
TEXT = f"""
service held img=alpine:3 entrypoint=['{WORKLOAD}']
service gated img=alpine:3
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
        agent = next(p.name for p in agents if p.node == pod.node)
        said = self.cluster.exec(
            self.namespace, agent, "/usr/bin/tstorm-agent", "order", pod.uid, word
        )
        return int(said)

    def starts(self) -> list[int]:
        """When the program has started, as far as the present container's log goes."""
        if not self.shown().state("instance").keys() - {"waiting"}:
            return []  # there is no log yet
        log = self.cluster.logs(self.namespace, self.name, container="instance")
        lines = [line for line in log.splitlines() if line.startswith('{"standin":"workload"')]
        return [json.loads(line)["unix_ns"] for line in lines]

    def started(self, after: int) -> int:
        return wait_until(
            lambda: next((at for at in self.starts() if at > after), 0), f"{self.name} starts"
        )

    def wait_for_crashes(self, count: int) -> None:
        def crashed() -> bool:
            log = self.cluster.logs(self.namespace, self.name, container="instance")
            return log.count('{"tstorm_hold":"crashed"') == count

        wait_until(crashed, f"crash {count} of {self.name}")

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
    found = experiment(TEXT, "--agent-image", BY_HAND)

    def agents_ready() -> bool:
        pods = cluster.pods(found.namespace)
        ready = [pod for pod in pods if pod.component == "agent" and pod.ready]
        return len(ready) == found.pods - 3

    wait_until(agents_ready, "the agents")
    return found


def tell(name: str, late_ns: list[int]) -> None:
    figures = " ".join(f"{late / 1e6:.1f}" for late in late_ns)
    print(f"\n{name}: started after {figures} ms")


def test_a_known_program_is_held_in_its_container(cluster: Cluster, made: Experiment) -> None:
    instance = Instance(cluster, made, "held-0")
    wait_until(lambda: instance.shown().ready, "the container is there, held")
    first = instance.shown()
    late = []
    assert instance.starts() == []
    for count in range(1, ROUNDS + 1):
        ordered = instance.order("join")
        late.append(instance.started(ordered) - ordered)
        assert len(instance.starts()) == count
        instance.order("crash")
        instance.wait_for_crashes(count)
    tell("held", late)
    last = instance.shown()
    assert (last.uid, last.restarts("instance"), last.ready) == (first.uid, 0, True)


def test_an_unknown_program_waits_behind_a_gate(cluster: Cluster, made: Experiment) -> None:
    instance = Instance(cluster, made, "gated-0")
    uid = instance.shown().uid
    late = []
    gate = ""
    for _ in range(ROUNDS + 1):
        gate = instance.wait_for_gate(gate)
        assert instance.shown().uid == uid
        ordered = instance.order("join")
        late.append(instance.started(ordered) - ordered)
        wait_until(lambda: instance.shown().ready, "the instance")
        instance.order("crash")
    tell("gated, first join", late[:1])
    tell("gated, after a crash", late[1:])
