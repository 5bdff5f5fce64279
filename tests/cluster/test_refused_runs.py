"""Runs that cannot start on this cluster: the command says why, and leaves nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.debian import PROGRAMS_IMAGE
from tests.cluster.experiments import compile_text
from tests.cluster.support import DEADLINE_SECONDS, ROOT, Cluster, wait_until

pytestmark = pytest.mark.cluster

REFUSED = 3  # exit code: the cluster cannot do it


class Command:
    """`tstorm run --backend k8s` of an experiment of three instances of this service."""

    def __init__(
        self, cluster: Cluster, namespace: str, folder: Path, service: str, options: tuple[str, ...]
    ) -> None:
        self.cluster, self.namespace = cluster, namespace
        text = f"service a {service} replicas=3\nbridge s\nlink a--s latency=1ms\nat 5s quit\n"
        words = ["run", str(compile_text(text, folder)), "--backend", "k8s"]
        words += ["--namespace", namespace, "--agent-cpu", "10m", "--out", str(folder / "out")]
        words += options
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tstorm", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_PROXY": "*"},
        )

    def refusal(self) -> str:
        """What it said, once it has ended with the code of a refusal, and nothing is left."""
        said, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        assert self.process.returncode == REFUSED, said
        found = self.cluster.kubectl("get", "namespace", self.namespace, "--ignore-not-found")
        assert found == "", said
        return said


Start = Callable[..., Command]


@pytest.fixture
def start(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> Iterator[Start]:
    made: list[Command] = []

    def begin(service: str, *options: str) -> Command:
        made.append(Command(cluster, next(namespaces), tmp_path, service, options))
        return made[-1]

    yield begin
    for command in made:
        command.process.kill()
        command.process.wait()
        cluster.delete(command.namespace)


def test_an_image_that_no_node_gets(start: Start) -> None:
    said = start("img=nowhere.invalid/none:1 entrypoint=['x']").refusal()
    assert "the experiment cannot start: " in said
    assert "nowhere.invalid/none:1" in said.rpartition("the experiment cannot start: ")[2]
    assert "docs/kubernetes.md, images" in said


def test_an_image_that_no_node_gets_behind_a_gate(start: Start) -> None:
    """It is fetched before the start, not at the join."""
    said = start("img=nowhere.invalid/none:1").refusal()
    assert "nowhere.invalid/none:1" in said.rpartition("the experiment cannot start: ")[2]


def test_pods_that_no_node_has_room_for(start: Start) -> None:
    said = start(f"img={PROGRAMS_IMAGE} entrypoint=['/bin/sleep', '9'] mem=900GiB").refusal()
    words = said.rpartition("the experiment cannot start: ")[2]
    assert "Insufficient memory" in words
    assert "a-0, a-1, a-2" in words
    assert "--nodes" in words


def test_a_quota_that_is_used_up(cluster: Cluster, start: Start) -> None:
    """It is made as soon as the namespace is there: a run's namespace is nobody else's before."""
    run = start(f"img={PROGRAMS_IMAGE} entrypoint=['/bin/sleep', '9']")
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}

    def limited() -> bool:
        from kubernetes.client.exceptions import ApiException

        try:
            cluster.core.create_namespaced_resource_quota(run.namespace, quota)
        except ApiException as error:
            assert error.status in (403, 404), error
            return False
        return True

    wait_until(limited, "the namespace", pause=0.01)
    words = run.refusal().rpartition("the experiment cannot start: ")[2]
    assert "exceeded quota: none" in words


def test_nodes_that_are_not_there(start: Start) -> None:
    said = start(f"img={PROGRAMS_IMAGE} entrypoint=['x']", "--nodes", "pool=none").refusal()
    assert "pool=none" in said
