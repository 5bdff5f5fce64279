"""Accounts and pods may do what docs/kubernetes.md says, and nothing else, anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from manifests import kubernetes
from manifests.render_options import Options
from tests.cli.process import ended
from tests.cluster.conftest import Make
from tests.cluster.experiments import Experiment, compile_text, render
from tests.cluster.support import ROOT, Cluster
from tests.manifests.kube import EXAMPLES, documents, example
from tstorm.k8s.preflight import RIGHTS

pytestmark = pytest.mark.cluster

VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("bind", "escalate", "impersonate", "use", "approve", "*"),
)
# What an intruder would ask for: every kind with a secret, a program or a right in it.
RESOURCES = (
    *(("", name) for name in ("pods", "pods/exec", "pods/attach", "pods/portforward", "pods/log")),
    *(("", name) for name in ("pods/proxy", "pods/eviction", "pods/ephemeralcontainers")),
    *(("", name) for name in ("secrets", "configmaps", "services", "endpoints", "events")),
    *(("", name) for name in ("serviceaccounts", "serviceaccounts/token", "namespaces", "nodes")),
    *(("", name) for name in ("nodes/proxy", "persistentvolumes", "persistentvolumeclaims", "*")),
    *(("apps", name) for name in ("daemonsets", "deployments", "statefulsets", "replicasets")),
    *(("rbac.authorization.k8s.io", name) for name in ("roles", "rolebindings", "clusterroles")),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("networking.k8s.io", "networkpolicies"),
    ("batch", "jobs"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("*", "*"),
)
Question = tuple[str, str, str]  # verb, group, resource
GRANTED = {(verb, "", "pods") for verb in ("get", "list", "watch")} | {("get", "", "pods/log")}
ACCOUNTS: dict[str, set[Question]] = {
    "tstorm-agent": set(),
    "tstorm-coordinator": GRANTED,
    "tstorm-instance": set(),
}
OTHER = "default"
EVERYWHERE = ""
SHORT = """
service a img=alpine:3 entrypoint=['/bin/busybox'] command=['sleep', '1000'] replicas=2
bridge s
link a--s latency=1ms
at 2s quit
"""


@pytest.fixture(scope="module")
def rights(
    cluster: Cluster,
    plans: dict[str, Path],
    namespaces: Iterator[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Experiment]:
    """An experiment that runs nothing: the objects of its access and no more."""
    folder = tmp_path_factory.mktemp("rights") / "manifests"
    made = render(plans["quickstart"], folder, "--namespace", next(namespaces))
    made.prepare(cluster)
    cluster.kubectl("apply", "-f", str(made.folder / "10-rbac.yaml"))
    yield made
    cluster.delete(made.namespace)


def user(experiment: Experiment, account: str) -> str:
    return f"system:serviceaccount:{experiment.namespace}:{account}"


def asked(
    cluster: Cluster, name: str, namespace: str, questions: Iterable[Question]
) -> set[Question]:
    """Those that a SubjectAccessReview allows to a user."""
    from kubernetes import client

    review = client.AuthorizationV1Api(cluster.api).create_subject_access_review
    groups = ["system:serviceaccounts", "system:authenticated"]

    def allowed(question: Question) -> bool:
        verb, group, resource = question
        kind, _, part = resource.partition("/")
        attributes = client.V1ResourceAttributes(
            verb=verb, group=group, resource=kind, subresource=part or None, namespace=namespace
        )
        spec = client.V1SubjectAccessReviewSpec(
            user=name, groups=groups, resource_attributes=attributes
        )
        status = review(client.V1SubjectAccessReview(spec=spec)).status
        return status is not None and bool(status.allowed)

    every = list(questions)
    with ThreadPoolExecutor(4) as pool:
        return {q for q, yes in zip(every, pool.map(allowed, every), strict=True) if yes}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_matrix_of_verbs_and_resources(
    cluster: Cluster, rights: Experiment, account: str
) -> None:
    questions = [(verb, *resource) for verb, resource in product(VERBS, RESOURCES)]
    name = user(rights, account)
    assert asked(cluster, name, rights.namespace, questions) == ACCOUNTS[account]
    assert asked(cluster, name, OTHER, questions) == set()
    assert asked(cluster, name, EVERYWHERE, questions) == set()


def rules(cluster: Cluster, name: str, namespace: str) -> set[tuple[Any, ...]]:
    """All that the API server says a user may do in a namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    groups = ("system:serviceaccounts", "system:authenticated")
    as_account = [f"--as={name}", *(f"--as-group={group}" for group in groups)]
    create = ["create", "--validate=false", "-f", "-", "-o", "json", *as_account]
    answer = json.loads(cluster.kubectl(*create, stdin=json.dumps(review)))["status"]
    assert not answer["incomplete"]
    found: set[tuple[Any, ...]] = {
        (verb, group, resource, tuple(rule.get("resourceNames", ())))
        for rule in answer["resourceRules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    found |= {
        (verb, url)
        for rule in answer["nonResourceRules"]
        for verb in rule["verbs"]
        for url in rule["nonResourceURLs"]
    }
    return found


@pytest.mark.parametrize("account", ACCOUNTS)
def test_all_rules_of_an_account(cluster: Cluster, rights: Experiment, account: str) -> None:
    """Nothing beyond what every service account of the cluster may do."""
    everyone = rules(cluster, f"system:serviceaccount:{OTHER}:nobody", OTHER)
    name = user(rights, account)
    own = {(verb, group, resource, ()) for verb, group, resource in ACCOUNTS[account]}
    assert rules(cluster, name, rights.namespace) - everyone == own
    assert rules(cluster, name, OTHER) == everyone


@pytest.mark.parametrize("account", ["tstorm-agent", "tstorm-instance"])
def test_an_account_without_rights_is_listed_like_any(
    cluster: Cluster, rights: Experiment, account: str
) -> None:
    """As a user would look: `kubectl auth can-i --list`."""
    groups = ("system:serviceaccounts", "system:authenticated")

    def listed(name: str) -> list[str]:
        asking = [f"--as={name}", *(f"--as-group={group}" for group in groups)]
        namespace = ["-n", rights.namespace]
        text = cluster.kubectl("auth", "can-i", "--list", "--no-headers", *namespace, *asking)
        return sorted(" ".join(line.split()) for line in text.splitlines())

    everyone = listed(f"system:serviceaccount:{OTHER}:nobody")
    assert everyone
    assert listed(user(rights, account)) == everyone


def test_the_coordinators_token_lists_pods_and_reads_no_secret(
    cluster: Cluster, rights: Experiment
) -> None:
    """Not by review but in fact."""
    token = cluster.kubectl("create", "token", "tstorm-coordinator", "-n", rights.namespace)
    answers = [
        cluster.status_of(path, token.strip())
        for path in (
            f"namespaces/{rights.namespace}/pods",
            f"namespaces/{rights.namespace}/secrets",
            f"namespaces/{OTHER}/pods",
            "nodes",
        )
    ]
    assert answers == [200, 403, 403, 403]


def test_agents_have_no_token(cluster: Cluster, plans: dict[str, Path], experiment: Make) -> None:
    made = experiment(plans["quickstart"])
    found = "[*pathlib.Path('/run').rglob('token'), *pathlib.Path('/var').rglob('token')]"
    script = ("/usr/bin/python3", "-P", "-c", f"import pathlib; print({found})")
    agents = [pod for pod in made.ready(cluster) if pod.component == "agent"]
    assert agents
    for pod in agents:
        assert cluster.exec(made.namespace, pod.name, *script) == b"[]\n"


@pytest.fixture(scope="module")
def strict(cluster: Cluster, namespaces: Iterator[str]) -> Iterator[str]:
    """A namespace of which the API server refuses pods above the level `baseline`."""
    name = next(namespaces)
    cluster.kubectl("create", "namespace", name)
    level = "pod-security.kubernetes.io/enforce=baseline"
    cluster.kubectl("label", "namespace", name, level)
    for account in ACCOUNTS:
        cluster.kubectl("create", "serviceaccount", account, "-n", name)
    yield name
    cluster.delete(name)


def pods(path: Path) -> dict[str, Any]:
    """A pod of every workload of an example, by the workload's name."""
    return {
        found["metadata"]["name"]: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**found["spec"]["template"]["metadata"], "name": "tried"},
            "spec": found["spec"]["template"]["spec"],
        }
        for found in documents(kubernetes.render(example(path), Options()))
        if "template" in found.get("spec", {})
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_all_but_agents_are_ordinary_pods(cluster: Cluster, strict: str, path: Path) -> None:
    for name, pod in pods(path).items():
        create = ["create", "--dry-run=server", "-n", strict, "-f", "-"]
        said = cluster.kubectl(*create, stdin=json.dumps(pod), check=False)
        if name == "tstorm-agent":
            assert 'violates PodSecurity "baseline' in said
            for reason in ("hostPID", "capabilities", "AppArmor", "seLinuxOptions"):
                assert reason.lower() in said.lower()
        else:
            assert said == "pod/tried created (server dry run)\n", name


def kubeconfig_of(cluster: Cluster, namespace: str, folder: Path) -> Path:
    """Of the account `user` there."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", "user", "-n", namespace).strip()
    config["users"][0]["user"] = {"token": token}
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    return folder / "kubeconfig"


@pytest.fixture
def limited(cluster: Cluster, namespaces: Iterator[str], tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a user who has the rights that a run asks for, and no other."""
    name = next(namespaces)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for verb, group, resource in RIGHTS
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("create", "serviceaccount", "user", "-n", name)
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(role))
    binding = ["create", "clusterrolebinding", name, f"--clusterrole={name}"]
    cluster.kubectl(*binding, f"--serviceaccount={name}:user")
    yield kubeconfig_of(cluster, name, tmp_path)
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", name)
    cluster.delete(name)


def test_a_user_with_the_rights_that_are_asked_for_can_run(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], limited: Path, tmp_path: Path
) -> None:
    name = next(namespaces)
    done = run(limited, name, tmp_path)
    assert "you may not list nodes" in done.stderr
    assert "not found" in cluster.kubectl("get", "namespace", name, check=False)


def run(kubeconfig: Path, namespace: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A short run by who has this kubeconfig, which completes."""
    plan = compile_text(SHORT, folder)
    words = ["run", str(plan), "--backend", "k8s", "--namespace", namespace, "--agent-cpu", "10m"]
    done = ended(
        [sys.executable, "-m", "tstorm", *words, "--out", folder / "out"],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "NO_PROXY": "*"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "out/summary.json").read_text())["outcome"] == "completed"
    return done


def test_a_user_runs_in_a_namespace_that_he_was_given(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> None:
    """With what docs/kubernetes.md has an administrator do. All of the run goes, and no more."""
    name, docs = next(namespaces), (ROOT / "docs/kubernetes.md").read_text()
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=privileged")
    cluster.kubectl("create", "serviceaccount", "user", "-n", name)
    role = docs.partition("kubectl apply -f - <<'EOF'\n")[2].partition("\nEOF\n")[0]
    who = "{kind: User, name: somebody, apiGroup: rbac.authorization.k8s.io}"
    assert who in role
    role = role.replace(who, f"{{kind: ServiceAccount, name: user, namespace: {name}}}")
    cluster.kubectl("apply", "-f", "-", stdin=role.replace("namespace: lab", f"namespace: {name}"))
    kinds = "all,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"
    before = cluster.kubectl("get", kinds, "-n", name, "-o", "name")
    run(kubeconfig_of(cluster, name, tmp_path), name, tmp_path)
    assert cluster.kubectl("get", kinds, "-n", name, "-o", "name") == before
    cluster.delete(name)
