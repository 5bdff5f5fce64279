"""Examples on a real API server: all are accepted; some run, named, labelled, with the right plan.

Those are there at once, and so show also that experiments beside each other do not collide.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.object_names import tags
from tests.cluster.conftest import Make
from tests.cluster.experiments import Experiment, render
from tests.cluster.support import NODES, ROOT, Cluster, Pod

pytestmark = pytest.mark.cluster

NAMES = sorted(path.stem for path in (ROOT / "examples").glob("*.tdl"))
# One for each way to apply: many instances of few services, and few of many. What the others are
# made of is compared in tests/manifests field by field, and with the server's own schema.
RUNNING = ("churn", "lostwrites", "partition", "quickstart")
OPTIONS = {"churn": ["--server-side"]}  # of kubectl apply, where not plain


@pytest.fixture(scope="module")
def examples(
    cluster: Cluster,
    loaded: None,
    plans: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Experiment]]:
    """Applied side by side: most as files, one server-side, one with kustomize."""
    folder = tmp_path_factory.mktemp("manifests")
    made = {}
    for name in RUNNING:
        form = "kustomize" if name == "partition" else "yaml"
        made[name] = render(plans[name], folder / name, "--format", form)
        cluster.delete(made[name].namespace, wait=True)  # of an earlier session
        made[name].prepare(cluster)
        made[name].apply(cluster, *OPTIONS.get(name, []))
    for each in made.values():
        each.release(cluster)
    cluster.wait_ready([m.namespace for m in made.values()], sum(m.pods for m in made.values()))
    yield made
    cluster.delete(*(experiment.namespace for experiment in made.values()))


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_accepted(
    cluster: Cluster, plans: dict[str, Path], namespaces: Iterator[str], tmp_path: Path, name: str
) -> None:
    made = render(plans[name], tmp_path / name, "--namespace", next(namespaces))
    cluster.kubectl("apply", "-f", str(made.folder / "00-namespace.yaml"))
    dry = made.apply(cluster, "--server-side", "--dry-run=server")
    cluster.delete(made.namespace)
    assert dry.count("serverside-applied (server dry run)") == dry.count("\n") > 5


@pytest.fixture(params=RUNNING)
def example(request: pytest.FixtureRequest, examples: dict[str, Experiment]) -> Experiment:
    return examples[request.param]


def of(cluster: Cluster, example: Experiment, component: str) -> list[Pod]:
    return [pod for pod in cluster.pods(example.namespace) if pod.component == component]


def test_every_instance_is_a_pod_of_its_name(cluster: Cluster, example: Experiment) -> None:
    pods = of(cluster, example, "instance")
    assert sorted(pod.name for pod in pods) == sorted(example.instances().values())
    assert all(pod.ready for pod in pods)
    assert all(pod.restarts("instance") == 0 for pod in pods)


def test_there_is_one_agent_a_node_and_one_coordinator(
    cluster: Cluster, example: Experiment
) -> None:
    agents, coordinators = (of(cluster, example, name) for name in ("agent", "coordinator"))
    assert len({pod.node for pod in agents}) == len(agents) == NODES
    assert all(pod.ready for pod in agents)
    assert [pod.ready for pod in coordinators] == [False]  # it waits for a run


def test_agents_read_the_whole_plan(cluster: Cluster, example: Experiment) -> None:
    for agent in of(cluster, example, "agent"):
        assert cluster.read_plan(agent)["plan.json"] == example.plan.digest


def test_labels_and_tags(cluster: Cluster, example: Experiment) -> None:
    services = {service.name: service for service in example.plan.topology.services}
    pods = {pod.name: pod for pod in of(cluster, example, "instance")}
    for instance, name in example.instances().items():
        service = services[instance.rpartition(".")[0]]
        found = pods[name].labels
        assert found["app.kubernetes.io/part-of"] == "thunderstorm"
        assert found["app.kubernetes.io/managed-by"] == "tstorm"
        assert found["app.kubernetes.io/instance"] == f"tstorm-{example.plan.digest[:12]}"
        tagged = {key for key in found if key.startswith("tag.thunderstorm.dev/")}
        assert tagged == {f"tag.thunderstorm.dev/{tag}" for tag in tags(service.tags).values()}


def test_what_an_instance_finds(cluster: Cluster, example: Experiment) -> None:
    """The last instance of every service: its variables and its arguments."""
    for service in example.plan.topology.services:
        if service.replicas == 0:
            continue
        instance = f"{service.name}.{service.replicas - 1}"
        pod = example.instances()[instance]
        found = cluster.environment(example.namespace, pod)
        own = {
            "TSTORM_SERVICE": service.name,
            "TSTORM_INDEX": str(service.replicas - 1),
            "TSTORM_INSTANCE": instance,
            "TSTORM_SEED": str(example.plan.seed),
            "TSTORM_EXPERIMENT": example.plan.digest,
        }
        assert own.items() <= found.items()
        assert dict(service.env).items() <= found.items()
        hosts = {name for name in found if name.endswith("_SERVICE_HOST")}
        assert hosts == {"KUBERNETES_SERVICE_HOST"}  # and none of any experiment's services
        assert cluster.arguments(example.namespace, pod) == [
            *service.entrypoint[1:],
            *service.command,
        ]


def test_no_instance_holds_a_token(cluster: Cluster, example: Experiment) -> None:
    pod = next(iter(example.instances().values()))
    found = cluster.exec(example.namespace, pod, "find", "/var", "/run", "-name", "*token*")
    assert found == b""


def test_the_network_policies_are_there(cluster: Cluster, example: Experiment) -> None:
    """That they are enforced is the network plugin's, and the one here enforces none."""
    found = cluster.get("networkpolicies", "-n", example.namespace)["items"]
    ports = {
        policy["metadata"]["name"]: [
            (port["protocol"], port["port"])
            for rule in policy["spec"].get("ingress", [])
            for port in rule.get("ports", [])
        ]
        for policy in found
    }
    assert ports == {
        "tstorm-agent": [("UDP", 7473), ("TCP", 7474), ("TCP", 7475)],
        "tstorm-coordinator": [],
        "tstorm-instance": [],
    }


def test_only_the_namespace_is_cluster_wide(example: Experiment, cluster: Cluster) -> None:
    listed = cluster.kubectl("api-resources", "--namespaced=false", "--no-headers", "-o", "name")
    wide = {name.partition(".")[0].rstrip("s") for name in listed.split()}
    kinds = [
        line.partition(":")[2].strip()
        for path in sorted(Path(example.folder).glob("*-*.yaml"))
        for line in path.read_text().splitlines()
        if line.startswith("kind:")
    ]
    assert [kind for kind in kinds if kind.lower() in wide] == ["Namespace"]


def test_the_same_plan_twice_and_one_of_them_deleted(
    cluster: Cluster, examples: dict[str, Experiment], plans: dict[str, Path], experiment: Make
) -> None:
    first = examples["quickstart"]
    before = {pod.name: pod.uid for pod in cluster.pods(first.namespace)}
    second = experiment(plans["quickstart"])
    assert second.namespace != first.namespace
    pods = second.ready(cluster)
    assert {pod.name for pod in pods} >= set(second.instances().values())
    assert not {pod.uid for pod in pods} & set(before.values())
    cluster.kubectl("delete", "-f", str(second.folder), "--wait=true")
    after = cluster.pods(first.namespace)
    assert {pod.name: pod.uid for pod in after} == before
    others = [pod for pod in after if pod.component != "coordinator"]
    assert all(pod.ready and pod.restarts("instance") == 0 for pod in others)
