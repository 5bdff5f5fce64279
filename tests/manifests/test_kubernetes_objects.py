"""What is rendered, object by object: the decisions of docs/manifests.md."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from compiler.plan.format import TOOL_VERSION
from manifests import kubernetes
from manifests.bundle import unpack
from manifests.render_options import DEFAULT_AGENT_IMAGE, GRACE_SECONDS, Options
from tests.manifests.kube import (
    EXAMPLES,
    ROOT,
    Document,
    arguments,
    bundle_of,
    documents,
    example,
    one,
    rendered,
    seen,
    service,
    workload,
)

COMMON = {f"app.kubernetes.io/{k}" for k in ("name", "instance", "version", "component")}
COMMON |= {"app.kubernetes.io/part-of", "app.kubernetes.io/managed-by"}


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def found(request: pytest.FixtureRequest) -> list[Document]:
    return documents(kubernetes.render(example(request.param), Options()))


def pods(found: list[Document]) -> list[tuple[str, Document]]:
    """(component, pod spec) of every workload."""
    return [
        (
            document["metadata"]["labels"]["app.kubernetes.io/component"],
            document["spec"]["template"]["spec"],
        )
        for document in found
        if "template" in document.get("spec", {})
    ]


def containers(pod: Document) -> list[Document]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def test_only_the_namespace_is_cluster_scoped(found: list[Document]) -> None:
    outside = [d["kind"] for d in found if "namespace" not in d["metadata"]]
    assert outside == ["Namespace"]
    name = found[0]["metadata"]["name"]
    assert {d["metadata"]["namespace"] for d in found[1:]} == {name}
    assert {d["kind"] for d in found} <= {
        *("Namespace", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "NetworkPolicy"),
        *("DaemonSet", "Job", "Service", "StatefulSet"),
    }


def test_every_object_has_the_labels_and_the_plan(found: list[Document]) -> None:
    digest = found[0]["metadata"]["annotations"]["thunderstorm.dev/plan"]
    assert len(digest) == 64
    for document in found:
        labels = document["metadata"]["labels"]
        assert set(labels) >= COMMON, document["kind"]
        assert labels["app.kubernetes.io/instance"] == f"tstorm-{digest[:12]}"
        assert document["metadata"]["annotations"]["thunderstorm.dev/plan"] == digest
        assert document["metadata"]["annotations"]["thunderstorm.dev/version"] == TOOL_VERSION
        if "template" in document.get("spec", {}):
            inner = document["spec"]["template"]["metadata"]
            assert inner["labels"].items() >= labels.items()
            assert inner["annotations"]["thunderstorm.dev/plan"] == digest


def test_names_are_unique_within_a_kind(found: list[Document]) -> None:
    names = [(d["kind"], d["metadata"]["name"]) for d in found]
    assert len(names) == len(set(names))


def test_nothing_touches_the_host_s_files_or_network(found: list[Document]) -> None:
    for component, pod in pods(found):
        assert not any("hostPath" in volume for volume in pod.get("volumes", ()))
        assert not pod.get("hostNetwork") and not pod.get("hostIPC")
        assert bool(pod.get("hostPID")) == (component == "agent")
        for container in containers(pod):
            assert not container.get("securityContext", {}).get("privileged")


def test_only_agents_have_capabilities(found: list[Document]) -> None:
    for component, pod in pods(found):
        for container in containers(pod):
            capabilities = container.get("securityContext", {}).get("capabilities", {})
            if component == "agent":
                assert set(capabilities["add"]) == {
                    *("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "KILL", "SYS_NICE")
                }
            assert component == "agent" or "add" not in capabilities
            if container["name"] != "instance":  # the image's own business
                assert capabilities["drop"] == ["ALL"]
                assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_privilege_escalation_is_what_the_api_server_takes(found: list[Document]) -> None:
    """allowPrivilegeEscalation may not be false beside SYS_ADMIN, and is false everywhere else."""
    for component, pod in pods(found):
        for container in containers(pod):
            if container["name"] != "instance":
                assert container["securityContext"]["allowPrivilegeEscalation"] == (
                    component == "agent"
                )


def test_the_namespace_allows_what_agents_need() -> None:
    labels = rendered(service())[0]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_verbs_are_least() -> None:
    found = rendered(service())
    [role] = [d for d in found if d["kind"] == "Role"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]
    [binding] = [d for d in found if d["kind"] == "RoleBinding"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [s["name"] for s in binding["subjects"]] == ["tstorm-coordinator"]
    namespace = found[0]["metadata"]["name"]
    assert {s["namespace"] for s in binding["subjects"]} == {namespace}
    accounts = [d for d in found if d["kind"] == "ServiceAccount"]
    assert len(accounts) == 3
    assert all(d["automountServiceAccountToken"] is False for d in accounts)
    tokens = {c: pod["automountServiceAccountToken"] for c, pod in pods(found)}
    assert tokens == {"agent": False, "coordinator": True, "instance": False}


def test_the_plan_comes_back_out_of_the_config_maps() -> None:
    # Random bytes do not compress: three shards.
    noise = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(12_000))
    packed = bundle_of(service(), source=b"# " + noise.hex().encode() + b"\n")
    assert len(packed.shards) > 2
    found = documents(kubernetes.render(packed, Options()))
    maps = [d for d in found if d["kind"] == "ConfigMap"]
    shards = {}
    for document in maps:
        assert document["immutable"] is True
        assert document["metadata"]["annotations"]["thunderstorm.dev/plan-shards"] == str(len(maps))
        [(key, text)] = document["binaryData"].items()
        assert document["metadata"]["name"] == f"tstorm-{key}"
        shards[key] = base64.b64decode(text, validate=True)
    assert unpack(shards, packed.digest)["plan.json"] == packed.plan.raw("plan.json")
    for name in ("tstorm-agent", "tstorm-coordinator"):
        kind = "DaemonSet" if name == "tstorm-agent" else "Job"
        pod = one(found, kind, name)["spec"]["template"]["spec"]
        [plan] = [v for v in pod["volumes"] if v["name"] == "plan"]
        sources = [s["configMap"]["name"] for s in plan["projected"]["sources"]]
        assert sources == [d["metadata"]["name"] for d in maps]


def test_a_config_map_can_be_applied_by_any_kubectl() -> None:
    """`kubectl apply` copies the object into an annotation of at most 262,144 bytes."""
    noise = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(12_000))
    files = kubernetes.render(bundle_of(service(), source=noise.hex().encode()), Options())
    assert max(len(text) for name, text in files.items() if name.startswith("20-")) > 200_000
    assert max(map(len, files.values())) < 250_000


def test_the_network_policies() -> None:
    found = rendered(service())
    label = "app.kubernetes.io/component"
    agent = one(found, "NetworkPolicy", "tstorm-agent")["spec"]
    assert agent["policyTypes"] == ["Ingress"]
    assert agent["podSelector"]["matchLabels"][label] == "agent"
    rules = [
        (peer["podSelector"]["matchLabels"][label], port["protocol"], port["port"])
        for rule in agent["ingress"]
        for peer in rule["from"]
        for port in rule["ports"]
    ]
    assert rules == [
        ("agent", "UDP", 7473),
        ("coordinator", "TCP", 7474),
        ("coordinator", "TCP", 7475),
    ]
    peers = [peer for rule in agent["ingress"] for peer in rule["from"]]
    assert all(set(peer) == {"podSelector"} for peer in peers)  # of this namespace only
    coordinator = one(found, "NetworkPolicy", "tstorm-coordinator")["spec"]
    assert "ingress" not in coordinator and coordinator["policyTypes"] == ["Ingress"]
    instance = one(found, "NetworkPolicy", "tstorm-instance")["spec"]
    assert instance["podSelector"]["matchLabels"] == {label: "instance"}
    assert instance["ingress"] == [{"from": [{"podSelector": instance["podSelector"]}]}]
    assert len([d for d in found if d["kind"] == "NetworkPolicy"]) == 3


@pytest.mark.parametrize(
    ("kind", "name", "own", "probes"),
    [
        ("DaemonSet", "tstorm-agent", {}, {"startupProbe", "readinessProbe", "livenessProbe"}),
        (
            "Job",
            "tstorm-coordinator",
            {"run-config": "/run-config", "run": "/run/tstorm"},
            {"startupProbe", "readinessProbe"},
        ),
    ],
)
def test_what_is_ours(kind: str, name: str, own: dict[str, str], probes: set[str]) -> None:
    found = rendered(service(), agent_image="registry.example/tstorm:1")
    pod = one(found, kind, name)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["image"] == "registry.example/tstorm:1"
    assert container["command"] == [f"/usr/bin/{name}"]
    assert {field for field in container if field.endswith("Probe")} == probes
    for probe in probes:
        assert container[probe]["exec"]["command"] == [f"/usr/bin/{name}", "probe"]
    assert container["resources"]["requests"] and "limits" not in container["resources"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"plan": "/plan", "auth": "/auth", "scratch": "/tmp", **own}
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
    [auth] = [v["secret"] for v in pod["volumes"] if v["name"] == "auth"]
    assert auth["secretName"] == "tstorm-auth" and not auth.get("optional")
    assert auth["defaultMode"] == 0o440
    names = {entry["name"] for entry in container["env"]}
    assert {"TSTORM_EXPERIMENT", "TSTORM_NAMESPACE", "TSTORM_POD", "TSTORM_POD_IP"} <= names
    assert {"name": "TSTORM_VERSION", "value": TOOL_VERSION} in container["env"]
    assert "Secret" not in {d["kind"] for d in found}


def test_agents_run_where_instances_may_run() -> None:
    for _, pod in pods(rendered(service())):
        assert "tolerations" not in pod and "affinity" not in pod
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_chosen_nodes_are_those_of_everything() -> None:
    found = rendered(service(), nodes="pool=lab,!gpu")
    terms = [
        {
            "matchExpressions": [
                {"key": "pool", "operator": "In", "values": ["lab"]},
                {"key": "gpu", "operator": "DoesNotExist"},
            ]
        }
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert [pod["affinity"] for _, pod in pods(found)] == [{"nodeAffinity": required}] * 3


def test_an_agent_is_root_without_a_profile() -> None:
    spec = one(rendered(service()), "DaemonSet", "tstorm-agent")["spec"]
    security = spec["template"]["spec"]["containers"][0]["securityContext"]
    assert security["runAsUser"] == 0
    assert security["appArmorProfile"] == {"type": "Unconfined"}
    assert security["seLinuxOptions"] == {"type": "spc_t"}


@pytest.mark.parametrize(("millis", "request_"), [(0, "1"), (250, "250m"), (2500, "2500m")])
def test_an_agent_asks_for_a_processor(millis: int, request_: str) -> None:
    options = {"agent_cpu_millis": millis} if millis else {}
    spec = one(rendered(service(), **options), "DaemonSet", "tstorm-agent")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == request_


def test_no_mesh_puts_a_proxy_into_a_pod() -> None:
    found = rendered(service())
    assert found[0]["metadata"]["labels"]["istio-injection"] == "disabled"
    assert found[0]["metadata"]["annotations"]["linkerd.io/inject"] == "disabled"
    for document in found:
        if "template" in document.get("spec", {}):
            inner = document["spec"]["template"]["metadata"]
            assert inner["labels"]["sidecar.istio.io/inject"] == "false"
            assert inner["labels"]["istio.io/dataplane-mode"] == "none"
            assert inner["labels"]["kuma.io/sidecar-injection"] == "disabled"
            assert inner["annotations"]["linkerd.io/inject"] == "disabled"
            assert inner["annotations"]["consul.hashicorp.com/connect-inject"] == "false"


def test_autoscalers_leave_the_experiment_alone() -> None:
    found = rendered(service("a"))
    for kind, name in (("StatefulSet", "a"), ("Job", "tstorm-coordinator")):
        notes = one(found, kind, name)["spec"]["template"]["metadata"]["annotations"]
        assert notes["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert notes["karpenter.sh/do-not-disrupt"] == "true"


def test_a_coordinator_leads_one_run() -> None:
    """It is not started again, and the cluster ends it should nobody do so."""
    spec = one(rendered(service()), "Job", "tstorm-coordinator")["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == GRACE_SECONDS
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    [config] = [v["configMap"] for v in pod["volumes"] if v["name"] == "run-config"]
    assert config["name"] == "tstorm-run" and not config.get("optional")
    given = one(rendered(service(), deadline_seconds=600), "Job", "tstorm-coordinator")["spec"]
    assert given["activeDeadlineSeconds"] == 600


def test_a_longer_experiment_has_a_later_deadline() -> None:
    [packed] = [example(path) for path in EXAMPLES if path.stem == "quickstart"]
    spec = one(documents(kubernetes.render(packed, Options())), "Job", "tstorm-coordinator")["spec"]
    assert spec["activeDeadlineSeconds"] == GRACE_SECONDS + 25


def test_instance_3_of_server_is_the_pod_server_3() -> None:
    found = rendered(service("server", replicas=5, ports=(80, 443)))
    spec = one(found, "StatefulSet", "server")["spec"]
    assert (spec["replicas"], spec["serviceName"]) == (5, "server")
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    headless = one(found, "Service", "server")["spec"]
    assert headless["clusterIP"] == "None" and headless["publishNotReadyAddresses"] is True
    assert headless["selector"] == spec["selector"]["matchLabels"]
    labels = spec["template"]["metadata"]["labels"]
    assert headless["selector"].items() <= labels.items()
    ports = [(p["name"], p["port"], p["protocol"]) for p in headless["ports"]]
    assert ports == [("port-80", 80, "TCP"), ("port-443", 443, "TCP")]
    _, container = workload(found, "server")
    assert [p["containerPort"] for p in container["ports"]] == [80, 443]
    assert container["readinessProbe"]["tcpSocket"] == {"port": 80}


def test_a_selector_selects_one_workload(found: list[Document]) -> None:
    """Also when a service is called like a component."""
    templates = [d["spec"]["template"] for d in found if "template" in d.get("spec", {})]
    for document in found:
        if document["kind"] in ("StatefulSet", "DaemonSet"):
            wanted = document["spec"]["selector"]["matchLabels"].items()
            matching = [t for t in templates if wanted <= t["metadata"]["labels"].items()]
            assert matching == [document["spec"]["template"]]


def test_a_service_without_ports_has_neither_ports_nor_probe() -> None:
    found = rendered(service("quiet"))
    assert "ports" not in one(found, "Service", "quiet")["spec"]
    _, container = workload(found, "quiet")
    assert "ports" not in container and "readinessProbe" not in container


def test_a_service_without_instances_is_there_with_none() -> None:
    found = rendered(service("never", replicas=0))
    assert one(found, "StatefulSet", "never")["spec"]["replicas"] == 0
    assert one(found, "Service", "never")["spec"]["clusterIP"] == "None"


def test_a_known_entrypoint_is_held_and_released() -> None:
    found = rendered(
        service("db", entrypoint=("redis-server",), command=("--port", "80")),
        agent_image="agent:1",
    )
    pod, container = workload(found, "db")
    [init] = pod["initContainers"]
    assert (init["name"], init["image"]) == ("tstorm-install", "agent:1")
    assert init["command"] == ["/usr/bin/tstorm-hold", "install", "/tstorm"]
    assert container["command"] == ["/tstorm/tstorm-hold", "run", "--", "redis-server"]
    assert container["args"] == ["--port", "80"]
    assert pod["volumes"] == [{"name": "tstorm", "emptyDir": {}}]
    for each in (init, container):
        assert each["volumeMounts"] == [{"name": "tstorm", "mountPath": "/tstorm"}]


def test_an_unknown_entrypoint_is_left_alone_behind_a_gate() -> None:
    found = rendered(service("db", command=("80",)), agent_image="agent:1")
    pod, container = workload(found, "db")
    install, gate = pod["initContainers"]
    assert (install["name"], install["image"]) == ("tstorm-install", "agent:1")
    assert (gate["name"], gate["image"]) == ("tstorm-gate", container["image"])
    assert gate["command"] == ["/tstorm/tstorm-hold", "gate"]
    assert gate["workingDir"] == "/tstorm"  # the image's own may be closed to others than its user
    [mount] = gate["volumeMounts"]
    assert mount == {"name": "tstorm", "mountPath": "/tstorm", "readOnly": True}
    assert "command" not in container and container["args"] == ["80"]
    assert "volumeMounts" not in container


def test_an_image_s_own_command_is_left_alone() -> None:
    _, container = workload(rendered(service("web")), "web")
    assert "command" not in container and "args" not in container


def test_instances_are_ordinary_pods() -> None:
    pod, container = workload(rendered(service("web")), "web")
    assert pod["enableServiceLinks"] is False
    assert pod["serviceAccountName"] == "tstorm-instance"
    assert pod["terminationGracePeriodSeconds"] == 6
    assert container["imagePullPolicy"] == "IfNotPresent"
    [spread] = pod["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert "fsGroup" not in pod["securityContext"]
    assert "securityContext" not in container and "resources" not in container


def test_an_instance_knows_who_it_is() -> None:
    found = rendered(service("My_Server", replicas=4, env=(("EMPTY", ""), ("A", "$(TSTORM_SEED)"))))
    [sts] = [d for d in found if d["kind"] == "StatefulSet"]
    [container] = sts["spec"]["template"]["spec"]["containers"]
    digest = sts["metadata"]["annotations"]["thunderstorm.dev/plan"]
    assert seen(container, 3) == {
        "TSTORM_INDEX": "3",
        "TSTORM_SERVICE": "My_Server",
        "TSTORM_INSTANCE": "My_Server.3",
        "TSTORM_SEED": "7",
        "TSTORM_EXPERIMENT": digest,
        "EMPTY": "",
        "A": "$(TSTORM_SEED)",
    }
    assert sts["metadata"]["annotations"]["thunderstorm.dev/service"] == "My_Server"


def test_a_service_cannot_claim_to_be_another() -> None:
    found = rendered(service("a", env=(("TSTORM_INSTANCE", "b.0"), ("TSTORM_OTHER", "x"))))
    _, container = workload(found, "a")
    names = [entry["name"] for entry in container["env"]]
    assert names.count("TSTORM_INSTANCE") == 1
    assert seen(container, 0)["TSTORM_INSTANCE"] == "a.0"
    assert seen(container, 0)["TSTORM_OTHER"] == "x"


@pytest.mark.parametrize("entrypoint", [(), ("serve",)])
def test_resources_are_requests_and_limits(entrypoint: tuple[str, ...]) -> None:
    """On the init container too: else the pod would not be Guaranteed."""
    both = service("a", cpu_millis=500, mem_bytes=1 << 29, entrypoint=entrypoint)
    pod, container = workload(rendered(both), "a")
    wanted = {"cpu": "500m", "memory": "536870912"}
    for each in (container, *pod["initContainers"]):
        assert each["resources"] == {"requests": wanted, "limits": wanted}


@pytest.mark.parametrize(
    ("cpu_millis", "mem_bytes", "cpu", "memory"),
    [
        (1, 1, "1m", "1"),
        (1000, 1000, "1", "1k"),
        (2_000_000, 512_000_000, "2k", "512M"),
        (2500, 1024, "2500m", "1024"),
        (10, 10**18, "10m", "1E"),
        (10**6, 2**63 - 1, "1k", "9223372036854775807"),
    ],
)
def test_amounts_are_as_the_server_writes_them(
    cpu_millis: int, mem_bytes: int, cpu: str, memory: str
) -> None:
    found = rendered(service("a", cpu_millis=cpu_millis, mem_bytes=mem_bytes))
    _, container = workload(found, "a")
    assert container["resources"]["limits"] == {"cpu": cpu, "memory": memory}


def test_one_amount_without_the_other() -> None:
    _, container = workload(rendered(service("a", mem_bytes=1)), "a")
    assert container["resources"]["limits"] == {"memory": "1"}


def test_tags_are_labels() -> None:
    tags = ("backend", "_odd_", "x" * 63, "backend")
    [sts] = [d for d in rendered(service("a", tags=tags)) if d["kind"] == "StatefulSet"]
    labels = sts["spec"]["template"]["metadata"]["labels"]
    found = {k: v for k, v in labels.items() if k.startswith("tag.thunderstorm.dev/")}
    assert set(found.values()) == {"true"} and len(found) == 3
    assert {"tag.thunderstorm.dev/backend", f"tag.thunderstorm.dev/{'x' * 63}"} <= set(found)


def test_a_port_given_twice_is_one_port() -> None:
    found = rendered(service("a", ports=(80, 443, 80)))
    assert [p["port"] for p in one(found, "Service", "a")["spec"]["ports"]] == [80, 443]


def test_nothing_is_left_for_the_server_to_fill_in_or_drop() -> None:
    """Else each `kubectl apply` changes it again, or conflicts with the other way to apply."""

    def parts(value: Any) -> Iterator[Any]:
        yield value
        children = value.values() if isinstance(value, dict) else value
        for child in children if isinstance(value, dict | list) else ():
            yield from parts(child)

    refs = 0
    empty = (("A", ""),)
    for document in rendered(service("a", ports=(80,), env=empty), service("b", entrypoint=("x",))):
        for part in parts(document):
            # emptyDir: {} says which kind of volume it is.
            members = part.items() if isinstance(part, dict) else ()
            assert not [key for key, item in members if item in ([], {}, "") and key != "emptyDir"]
            if isinstance(part, dict) and "fieldRef" in part:
                assert part["fieldRef"]["apiVersion"] == "v1"
                refs += 1
    assert refs == 4 + 3 + 3


def test_two_experiments_share_nothing() -> None:
    first = documents(kubernetes.render(bundle_of(service("a"), seed=1), Options()))
    second = documents(kubernetes.render(bundle_of(service("a"), seed=2), Options()))
    keys = [
        {(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in found}
        for found in (first, second)
    ]
    assert not keys[0] & keys[1]


def test_the_same_plan_twice_needs_another_namespace_only() -> None:
    packed = bundle_of(service("a"))
    files = kubernetes.render(packed, Options(namespace="twice"))
    default = f"tstorm-{packed.digest[:12]}"
    plain = kubernetes.render(packed, Options())
    for name, text in files.items():
        mine, theirs = yaml.safe_load_all(text), yaml.safe_load_all(plain[name])
        assert replaced(list(mine), "twice", "NS") == replaced(list(theirs), default, "NS"), name


def replaced(value: Any, old: str, new: str) -> Any:
    """`value` with the namespace's places replaced, and labels left alone."""
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    if isinstance(value, dict):
        return {
            key: new
            if item == old and (key == "namespace" or value.get("labels") is not None)
            else replaced(item, old, new)
            for key, item in value.items()
        }
    return value


def test_files_are_in_the_order_to_apply_them() -> None:
    files = kubernetes.render(bundle_of(service("b"), service("a")), Options())
    assert list(files) == [
        "00-namespace.yaml",
        "10-rbac.yaml",
        "20-plan-000.yaml",
        "30-network-policy.yaml",
        "40-agent.yaml",
        "50-coordinator.yaml",
        "60-service-a.yaml",
        "60-service-b.yaml",
    ]


def test_kustomize_lists_every_file() -> None:
    packed = bundle_of(service("b"))
    files = kubernetes.render(packed, Options(kustomize=True, namespace="mine"))
    plain = kubernetes.render(packed, Options(namespace="mine"))
    found = yaml.safe_load(files.pop("kustomization.yaml"))
    assert found["resources"] == list(files)
    assert (found["kind"], found["namespace"]) == ("Kustomization", "mine")
    assert files == plain


def test_the_agent_image_is_the_option_s_and_never_the_plan_s() -> None:
    """A paper's `bootstrapper` is another tool's image."""
    packed = bundle_of(service("a"), boot="registry.example/boot:2")
    for options, wanted in (
        (Options(), DEFAULT_AGENT_IMAGE),
        (Options(agent_image="mine:1"), "mine:1"),
    ):
        found = documents(kubernetes.render(packed, options))
        pod, _ = workload(found, "a")
        assert pod["initContainers"][0]["image"] == wanted


def test_listing_1_is_what_the_paper_says() -> None:
    """Its services have commands and no entrypoint, so that their images are left alone."""
    found = documents(kubernetes.render(example(ROOT / "examples" / "listing1.tdl"), Options()))
    sets = {d["metadata"]["name"]: d for d in found if d["kind"] == "StatefulSet"}
    services = example(ROOT / "examples" / "listing1.tdl").plan.topology.services
    assert len(sets) == len(services)
    for item in services:
        pod, container = workload(found, item.name)
        assert container["image"] == item.image
        assert arguments(container) == list(item.command)
        assert pod["initContainers"][-1]["name"] == "tstorm-gate"
        assert sets[item.name]["spec"]["replicas"] == item.replicas
