"""What happens to a run when a part of it dies, on real nodes; and that nothing of it is left.

a.0 pings b.0 all the time: 20 ms by the plan, well below one if packets passed unshaped. So its log
shows that the network was either as planned or closed.
"""

from __future__ import annotations

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
from tests.cluster.support import Cluster, wait_until

pytestmark = pytest.mark.cluster

Start = Callable[[], ClusterRun]
ROUND_TRIP_MS = 20.0
SECONDS = 30
TEXT = f"""
service a img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh', '-c', 'exec ping -i 0.2 b.0']
service b img="{PROGRAMS_IMAGE}" replicas=2 entrypoint=['/bin/sleep', '1000']
bridge s
link a--s latency=4ms
link b--s latency=6ms
at {SECONDS}s quit
"""


@pytest.fixture
def start(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> Iterator[Start]:
    """Starts the run; returns when a.0 has seen the network, far from its end."""
    runs: list[ClusterRun] = []

    def begin() -> ClusterRun:
        plan = compile_text(TEXT, tmp_path)
        runs.append(ClusterRun(cluster, plan, next(namespaces), tmp_path))
        run = runs[-1]
        run.wait_for("join", 3)
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


def uids_of(cluster: Cluster, run: ClusterRun) -> set[str]:
    return {pod.uid for pod in cluster.pods(run.namespace)}


def test_an_agent_that_dies_is_resumed(cluster: Cluster, start: Start) -> None:
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    assert len(traces(networks)) > 0
    run.kill(AGENT, run.agent_of("a.0"))
    assert run.wait_for("agent_lost")["target"] == run.node_of("a.0")
    run.wait_for("agent_back")
    run.wait_answers("a.0")
    assert run.ended()["outcome"] == "completed"
    never_unshaped(run)
    gone(cluster, run, uids, networks)


def test_a_container_of_agents_that_dies_is_resumed(cluster: Cluster, start: Start) -> None:
    """Agent and datapath die with the supervisor; the next ones take over the interfaces."""
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    agent = run.agent_of("a.0")
    run.kill(SUPERVISOR, agent)
    assert run.wait_for("agent_lost")["target"] == run.node_of("a.0")
    run.wait_for("agent_back")
    assert cluster.pod(run.namespace, agent).restarts("agent") == 1
    run.wait_answers("a.0")
    assert run.ended()["outcome"] == "completed"
    never_unshaped(run)
    gone(cluster, run, uids, networks)


def test_a_datapath_that_dies_ends_the_run(cluster: Cluster, start: Start) -> None:
    run = start()
    uids, networks, node = uids_of(cluster, run), run.networks(), run.node_of("a.0")
    run.kill(DATAPATH, run.agent_of("a.0"))
    summary = run.ended()
    assert summary["outcome"] == "failed"
    assert node in summary["message"]
    assert run.process.returncode == 1
    never_unshaped(run)
    gone(cluster, run, uids, networks)


def test_another_pod_of_agents_ends_the_run(cluster: Cluster, start: Start) -> None:
    run = start()
    uids, networks, node = uids_of(cluster, run), run.networks(), run.node_of("a.0")
    cluster.kubectl("delete", "pod", run.agent_of("a.0"), "-n", run.namespace, "--wait=false")
    summary = run.ended()
    assert summary["outcome"] == "failed"
    assert node in summary["message"]
    gone(cluster, run, uids, networks)


def test_the_end_of_an_instance_is_an_event(cluster: Cluster, start: Start) -> None:
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    run.kill(r"^/bin/sleep 1000|^sleep 1000", run.pod_of("b.1"))
    ended = run.wait_for("exit")
    assert (ended["target"], ended["signal"], ended["asked"]) == ("b.1", 9, False)
    run.wait_answers("a.0")
    assert run.ended()["outcome"] == "completed"
    gone(cluster, run, uids, networks)


def test_without_its_coordinator_nothing_goes_on(cluster: Cluster, start: Start) -> None:
    """Agents close the network and end the programs by themselves; the run has failed."""
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    sleeps = run.processes(r"^/bin/sleep 1000|^sleep 1000")
    assert len(sleeps) == 2
    run.kill(COORDINATOR)
    assert run.ended()["outcome"] == "failed"
    assert run.process.returncode == 1
    never_unshaped(run)
    gone(cluster, run, uids, networks)


def test_agents_alone_end_everything(cluster: Cluster, start: Start) -> None:
    """The same without anybody who deletes: the command is killed, too."""
    run = start()
    networks = run.networks()
    run.process.kill()
    run.process.wait()
    run.kill(COORDINATOR)
    wait_until(lambda: not run.processes(r"^(/bin/)?(sleep 1000|ping)"), "the end of the programs")
    wait_until(lambda: traces(networks) == [], lambda: f"left: {traces(networks)}")
    wait_until(lambda: not run.processes(AGENT) and not run.processes(DATAPATH), "their agents")
    for descriptor in networks:
        os.close(descriptor)


def test_a_killed_command_changes_nothing(cluster: Cluster, start: Start) -> None:
    """The run goes on; `destroy` ends it, from any machine."""
    run = start()
    uids, networks = uids_of(cluster, run), run.networks()
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    programs = run.processes(r"^(/bin/)?(sleep 1000|ping)")
    assert len(programs) == 3
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
    tstorm("destroy", "--backend", "k8s", "--namespace", run.namespace)
    gone(cluster, run, uids, networks)
