"""What happens to a run when a part of it dies, on real nodes; and that nothing of it is left.

a.0 pings b.0 all the time: 20 ms by the plan, well below one if packets passed unshaped. So its log
shows that the network was either as planned or closed.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.debian import PROGRAMS_IMAGE
from tests.cluster.experiments import compile_text, tstorm
from tests.cluster.runs import (
    AGENT,
    COORDINATOR,
    DATAPATH,
    SUPERVISOR,
    ClusterRun,
    pods_with_processes,
    traces,
)
from tests.cluster.support import NODES, Cluster, wait_until

pytestmark = pytest.mark.cluster

Start = Callable[..., ClusterRun]
ROUND_TRIP_MS = 20.0
SLEEP, PROGRAMS = r"^(/bin/)?sleep 1000", r"^(/bin/)?(sleep 1000|ping )"
TEXT = f"""
service a img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh', '-c', 'exec ping -i 0.2 b.0']
service b img="{PROGRAMS_IMAGE}" replicas=2 entrypoint=['/bin/sleep', '1000']
bridge s
link a--s latency=4ms
link b--s latency=6ms
at 1h quit
"""
# Echoes are sent by the first of each pair: c is declared first, so that c.0 sends.
GATED = f"""
quit when b exits
service c img="{PROGRAMS_IMAGE}" command=['-c', 'echo up; exec sleep 1000']
link c--s latency=5ms
{TEXT}"""


@pytest.fixture
def start(
    cluster: Cluster,
    loaded: None,
    namespaces: Iterator[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Start]:
    """Starts the run; returns when a.0 has seen the network. No run comes to its planned end."""
    runs: list[ClusterRun] = []

    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

    def begin(text: str = TEXT, joins: int = 3) -> ClusterRun:
        plan = compile_text(text, tmp_path)
        runs.append(ClusterRun(cluster, plan, next(namespaces), tmp_path))
        run = runs[-1]
        run.wait_for("join", joins)
        run.wait_answers("a.0")
        return run

    yield begin
    for run in runs:
        print(run.log.read_text())
        run.end()


def never_unshaped(run: ClusterRun) -> None:
    assert min(run.round_trips("a.0")) >= ROUND_TRIP_MS - 0.5


def gone(cluster: Cluster, run: ClusterRun, uids: set[str], networks: list[int]) -> None:
    """No object, no process, nothing at what is left of the networks."""
    wait_until(
        lambda: run.namespace not in cluster.kubectl("get", "namespaces"),
        "the end of the namespace",
    )
    wait_until(lambda: not pods_with_processes(uids), lambda: str(pods_with_processes(uids)))
    assert traces(networks) == []
    for descriptor in networks:
        os.close(descriptor)


def elsewhere(run: ClusterRun, agent: str) -> tuple[str, str]:
    """A node with an instance and its agent, which is not this one."""
    found = [(run.node_of(name), run.agent_of(name)) for name in ("b.0", "b.1")]
    return next(pair for pair in found if pair[1] != agent)


def uids_of(cluster: Cluster, run: ClusterRun) -> set[str]:
    return {pod.uid for pod in cluster.pods(run.namespace)}


def test_what_a_run_survives(cluster: Cluster, start: Start) -> None:
    """An agent that dies, at the node of an instance whose gate is open and that is measured from;
    a supervisor, with whose container agent and datapath die, too; an instance whose program
    does. The run ends when all of that has been seen, however long it took."""
    run = start(GATED, 4)
    uids, networks = uids_of(cluster, run), run.networks()
    assert len(traces(networks)) > 0
    one = run.agent_of("c.0")
    there, other = elsewhere(run, one)  # two that die on one node would end the run
    run.kill(AGENT, one)
    assert run.wait_for("agent_lost")["target"] == run.node_of("c.0")
    back_ns = run.wait_for("agent_back")["applied_ns"]
    run.wait_answers("a.0")
    run.kill(SUPERVISOR, other)
    assert run.wait_for("agent_lost", 2)["target"] == there
    run.wait_for("agent_back", 2)
    wait_until(  # kubelet tells it later
        lambda: cluster.pod(run.namespace, other).restarts("agent") == 1,
        "the restart of the container",
    )
    run.wait_answers("a.0")
    run.kill(SLEEP, run.pod_of("b.1"))
    ended = run.wait_for("exit")
    assert (ended["target"], ended["signal"], ended["asked"]) == ("b.1", 9, False)
    run.wait_answers("a.0")
    run.kill(SLEEP, run.pod_of("b.0"))
    summary = run.ended()
    assert (summary["outcome"], run.process.returncode) == ("completed", 0)
    never_unshaped(run)
    assert max(run.measured_from("c.0")) > back_ns
    assert "logs_incomplete" not in json.loads((run.out / "manifest.json").read_bytes())
    gone(cluster, run, uids, networks)


@pytest.mark.parametrize("fault", ["datapath", "agent's pod", "instance's pod"])
def test_what_ends_a_run_is_named(cluster: Cluster, start: Start, fault: str) -> None:
    """A datapath that dies, and pods that are replaced: of an agent, of an instance."""
    run = start()
    uids, networks, node = uids_of(cluster, run), run.networks(), run.node_of("a.0")
    agent = run.agent_of("a.0")
    if fault == "datapath":
        run.kill(DATAPATH, agent)
    else:
        pod = agent if fault == "agent's pod" else run.pod_of("b.1")
        cluster.kubectl("delete", "pod", pod, "-n", run.namespace, "--wait=false")
    summary = run.ended()
    assert (summary["outcome"], run.process.returncode) == ("failed", 1)
    assert ("b-1" if fault == "instance's pod" else node) in summary["message"]
    if fault == "datapath":
        never_unshaped(run)
        assert f"agents/{node}.log of the run directory" in summary["message"]
        assert (run.out / f"agents/{node}.log").exists()
    gone(cluster, run, uids, networks)


def test_without_its_coordinator_nothing_goes_on(cluster: Cluster, start: Start) -> None:
    """Agents close the network and end the programs by themselves; the run has failed."""
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    run.kill(COORDINATOR)
    summary = run.ended()
    assert (summary["outcome"], run.process.returncode) == ("failed", 1)
    assert "status 137 (Error) (its last words are in coordinator.log" in summary["message"]
    assert summary["verdict"]["state"] != "valid"
    assert (run.out / "coordinator.log").exists()
    never_unshaped(run)
    gone(cluster, run, uids, networks)


def test_agents_alone_end_everything(cluster: Cluster, start: Start) -> None:
    """A killed command changes nothing. Then the coordinator dies, and nobody is left who would
    delete anything: agents end the programs, supervisors all the rest. `destroy` takes the pods."""
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    assert len(run.processes(PROGRAMS)) == 3
    run.kill(COORDINATOR)
    wait_until(lambda: not run.processes(PROGRAMS), "the end of the programs")
    wait_until(lambda: traces(networks) == [], lambda: f"left: {traces(networks)}")
    wait_until(lambda: not run.processes(AGENT) and not run.processes(DATAPATH), "their agents")
    assert len(run.processes(SUPERVISOR)) == NODES
    tstorm("destroy", "--backend", "k8s", "--namespace", run.namespace)
    gone(cluster, run, uids, networks)
