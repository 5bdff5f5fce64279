"""The ways to apply: they carry the same, can follow each other, and change nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests import kubernetes
from manifests.render_options import Options
from manifests.write import encoded
from tests.cluster.conftest import Make
from tests.cluster.support import NODES, Cluster
from tests.manifests.kube import bundle_of, service
from tests.manifests.test_kubernetes_hostile import HOSTILE, check
from tests.manifests.test_kubernetes_schema import ODD

pytestmark = pytest.mark.cluster

SHORT = [text for text in HOSTILE if len(text) < 100]
UNLUCKY = service(
    "unlucky",
    entrypoint=("x", *SHORT),
    command=tuple(HOSTILE),
    env=tuple((f"V{index}", text) for index, text in enumerate(SHORT)),
)
TEXT = """
service a img=alpine:3 entrypoint=['x'] command=['y'] port=80;81 tags=t;u env=A:;B:1 cpu=1 mem=1GB
service b img=alpine:3 port=53 replicas=2
bridge s
link a--s latency=1ms
link b--s latency=1ms
at 1s quit
"""


def unchanged(output: str) -> bool:
    return all(line.endswith(" unchanged") for line in output.splitlines())


def test_applying_again_changes_nothing(cluster: Cluster, experiment: Make) -> None:
    """Neither in the same way nor in the other one, which would name each conflict."""
    made = experiment(TEXT)
    assert unchanged(made.apply(cluster))
    for _ in range(2):
        lines = made.apply(cluster, "--server-side").splitlines()
        assert all(line.endswith(" serverside-applied") for line in lines)
        assert unchanged(made.apply(cluster))


@pytest.fixture
def namespace(cluster: Cluster, namespaces: Iterator[str]) -> Iterator[str]:
    name = next(namespaces)
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.delete(name)


@pytest.mark.parametrize("way", ["-f", "-k"])
@pytest.mark.parametrize("side", [(), ("--server-side",)], ids=["client", "server"])
def test_every_way_carries_the_same(
    cluster: Cluster, namespace: str, tmp_path: Path, way: str, side: tuple[str, ...]
) -> None:
    """Odd names, every kind of field and hostile texts, as the server would store them."""
    options = Options(namespace=namespace, kustomize=way == "-k")
    packed = bundle_of(*ODD, UNLUCKY)
    for name, data in encoded(kubernetes.render(packed, options)).items():
        (tmp_path / name).write_bytes(data)
    arguments = ["apply", *side, "--dry-run=server", "-o", "json", way, str(tmp_path)]
    items = json.loads(cluster.kubectl(*arguments))["items"]
    sets = [item for item in items if item["kind"] == "StatefulSet"]
    assert len(sets) == len(ODD) + 1
    for item in sets:
        said = item["metadata"]["annotations"]["thunderstorm.dev/service"]
        [wanted] = [found for found in (*ODD, UNLUCKY) if found.name == said]
        if not any(name.startswith("TSTORM_") for name, _ in wanted.env):
            check(wanted, [item], item["metadata"]["name"])


def test_chosen_nodes_are_those_that_are_used(cluster: Cluster, experiment: Make) -> None:
    """By instances and agents: no pod is on another one."""
    left_out = cluster.get("nodes")["items"][0]["metadata"]["name"]
    made = experiment(TEXT, "--nodes", f"kubernetes.io/os,kubernetes.io/hostname!={left_out}")
    pods = cluster.wait_placed(made.namespace, made.pods - 1)  # one agent less
    agents = [pod.node for pod in pods if pod.component == "agent"]
    assert len(set(agents)) == len(agents) == NODES - 1
    assert left_out not in {pod.node for pod in pods}
