"""The command on a real cluster: replays, what is found from elsewhere, requests to stop."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.debian import PROGRAMS_IMAGE
from tests.cluster.experiments import tstorm
from tests.cluster.runs import ClusterRun, command
from tests.cluster.support import DEADLINE_SECONDS, Cluster

pytestmark = pytest.mark.cluster

TICK = "while true; do echo tick; sleep 1; done"
PROGRAM = f"exec=\"/bin/sh -c '{TICK}'\" entrypoint=['/bin/sh'] command=['-c','{TICK}']"
TEXT = f"""\
service server img={PROGRAMS_IMAGE} replicas=2 {PROGRAM}
service client img={PROGRAMS_IMAGE} {PROGRAM}
bridges s t
link server--s latency=5ms up=100Mb symmetric
link client--t latency=20ms up=20Mb symmetric
link s--t latency=10ms up=1Gb symmetric
at 0s server join 2
at 1s s--t set latency=30ms
at 2s server crash 1
at 3s server join 1
at 4s client disconnect
at 5s client reconnect
expect run "/bin/sh -c 'test $TSTORM_INSTANCE = client.0'" ok on client within 15s after 1s
expect log client "tick" within 2s after 2500ms
expect rtt client server < 1s from 0s to 4s
at 600s quit
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "exp.tdl").write_text(TEXT)
    return tmp_path / "exp.tdl"


@pytest.fixture
def run(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path, source: Path
) -> Iterator[ClusterRun]:
    """Under way: the last of its events but the end has happened."""
    found = ClusterRun(cluster, source, next(namespaces), tmp_path)
    try:
        found.wait_for("reconnect")
        yield found
    finally:
        found.end()


def exists(cluster: Cluster, namespace: str) -> bool:
    return bool(cluster.kubectl("get", "namespace", namespace, "--ignore-not-found").strip())


def test_a_run_over_local_hosts_is_replayed_in_a_cluster_with_the_same_events(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path, source: Path
) -> None:
    # The command has the time that an agent with a hundredth of a busy processor takes to start it.
    local = ("--hosts", "3", "--programs", "--until", "17s", "--out", tmp_path / "local")
    tstorm("run", source, *local)
    namespace = next(namespaces)
    place = ("--namespace", namespace, "--agent-cpu", "10m", "--keep")
    out = tmp_path / "cluster"
    try:
        status, _, said = command(
            cluster, "replay", tmp_path / "local", "--check", *place, "--out", out
        )
        assert status == 0, said
        assert "the same events, on the same targets, in the same order" in said
        pods = [pod.name for pod in cluster.pods(namespace) if pod.component == "instance"]
        assert sorted(pods) == ["client-0", "server-0", "server-1"]  # --keep
        assert command(cluster, "destroy", "--namespace", namespace)[0] == 0
        assert not exists(cluster, namespace)
    finally:
        cluster.delete(namespace)
    for run in (tmp_path / "local", out):
        expected = json.loads((run / "summary.json").read_bytes())["expectations"]
        messages = [one["message"] for one in expected]
        assert [one["state"] for one in expected] == ["passed"] * 3, messages
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["outcome"] == "completed"
    assert manifest["cluster"]["namespace"] == namespace
    assert manifest["images"]  # with their digests
    assert manifest["nodes"]
    for name in ("server.0", "server.1", "client.0"):
        assert "tick" in (out / f"logs/{name}.log").read_text()


def test_a_killed_command_changes_nothing_and_the_run_is_found_from_elsewhere(
    cluster: Cluster, run: ClusterRun
) -> None:
    run_id = json.loads((run.out / "manifest.json").read_bytes())["run_id"]
    run.process.kill()
    run.process.wait()
    shown = json.loads(command(cluster, "inspect", run_id, "--format", "json")[1])
    assert (shown["run_id"], shown["namespace"]) == (run_id, run.namespace)
    assert {one["name"]: one["state"] for one in shown["instances"]} == {
        "server.0": "up",
        "server.1": "up",
        "client.0": "up",
    }
    check_exec(cluster, run_id)
    status, rows, said = command(cluster, "destroy", run_id, "--format", "json")
    assert status == 0, said
    assert [row["removed"] for row in json.loads(rows)] == [True]
    assert not exists(cluster, run.namespace)
    status, _, said = command(cluster, "inspect", run_id)
    assert status == 1
    assert f"no run '{run_id}'" in said


def check_exec(cluster: Cluster, run_id: str) -> None:
    """Commands have the statuses that they have on one machine."""
    for argv, wanted in (
        (["ping", "-c", "3", "server.0"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["/no/such"], 127),
        (["/etc/passwd"], 126),
    ):
        status, _, said = command(cluster, "exec", run_id, "client.0", "--", *argv)
        assert status == wanted, (argv, said)
    status, _, said = command(cluster, "exec", run_id, "client.9", "--", "true")
    assert status == 1
    assert "no instance 'client.9'" in said


def test_a_second_run_is_refused_and_ctrl_c_keeps_the_end_of_the_first(
    cluster: Cluster, run: ClusterRun, source: Path, tmp_path: Path
) -> None:
    place = ("--namespace", run.namespace, "--agent-cpu", "10m")
    status, _, said = command(cluster, "run", source, *place, "--out", tmp_path / "second")
    assert status == 1
    assert f"is in namespace {run.namespace}" in said
    assert not (tmp_path / "second").exists()
    run.process.send_signal(signal.SIGINT)
    run.process.wait(DEADLINE_SECONDS)
    assert run.process.returncode == 130, run.log.read_text()
    assert json.loads((run.out / "manifest.json").read_bytes())["outcome"] == "interrupted"
    assert json.loads((run.out / "summary.json").read_bytes())["outcome"] == "interrupted"
    ended = {one["target"] for one in run.events("exit")}
    assert ended == {"server.0", "server.1", "client.0"}  # the coordinator wound down
    assert not exists(cluster, run.namespace)
