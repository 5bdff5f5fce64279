"""What is refused, and what is warned of, in the objects that a cluster has made of ours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.kube import Document, rendered, service
from tstorm.k8s.admitted import refusals, unshaped


def pods(*names: str, **changed: Any) -> list[Document]:
    """Pods as StatefulSets make them from what is rendered, one a service."""
    found = rendered(*(service(name, **changed) for name in names))
    sets = [one for one in found if one["kind"] == "StatefulSet"]
    return [
        {
            "metadata": {
                **one["spec"]["template"]["metadata"],
                "name": one["metadata"]["name"] + "-0",
            },
            "spec": one["spec"]["template"]["spec"],
        }
        for one in sets
    ]


def own() -> list[Document]:
    """The pods of agents and coordinator."""
    found = [one for one in rendered(service()) if one["kind"] in ("DaemonSet", "Job")]
    return [{**one["spec"]["template"], "metadata": one["metadata"]} for one in found]


@pytest.mark.parametrize("entrypoint", [(), ("serve",)])
def test_what_is_rendered_is_not_refused(entrypoint: tuple[str, ...]) -> None:
    assert refusals([*pods("a", entrypoint=entrypoint), *own()]) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("istio-proxy", "Istio has put its container 'istio-proxy' into it"),
        ("linkerd-proxy", "Linkerd has put"),
        ("kuma-sidecar", "Kuma has put"),
        ("consul-dataplane", "Consul has put"),
        ("log-shipper", "the cluster has put a container 'log-shipper' (x:1) into it"),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_containers_that_are_not_ours_are_named(name: str, text: str, kind: str) -> None:
    found = pods("a", "b", "c", "d", "e")
    for pod in found[1:]:
        pod["spec"][kind].append({"name": name, "image": "x:1"})
    [refusal] = refusals(found)
    assert text in refusal.message
    assert refusal.pods == ("b-0", "c-0", "d-0", "e-0")
    assert refusal.text.startswith("b-0, c-0, d-0 and 1 more pod: ")
    assert refusal.remedy


def test_a_mesh_without_sidecars_is_seen() -> None:
    [pod] = pods("a")
    pod["metadata"]["annotations"]["ambient.istio.io/redirection"] = "enabled"
    [refusal] = refusals([pod])
    assert refusal.text == "a-0: Istio takes over its traffic (ambient mode)"


@pytest.mark.parametrize(
    ("runtime", "handler", "sandbox"),
    [
        ("gvisor", "", "gVisor"),
        ("safe", "runsc", "gVisor"),
        ("kata-qemu", "", "Kata Containers"),
        ("vm", "kata-clh", "Kata Containers"),
        ("nvidia", "nvidia", ""),
    ],
)
def test_sandboxes_are_refused(runtime: str, handler: str, sandbox: str) -> None:
    classes = [{"metadata": {"name": runtime}, "handler": handler}] if handler else []
    [pod] = pods("a")
    pod["spec"]["runtimeClassName"] = runtime
    found = refusals([pod], classes)
    assert len(found) == bool(sandbox)
    assert all(f"it runs under {sandbox} (runtime class {runtime!r})" in one.text for one in found)


def test_fargate_is_refused() -> None:
    [pod] = pods("a")
    pod["metadata"]["labels"]["eks.amazonaws.com/fargate-profile"] = "all"
    assert [one.message for one in refusals([pod])] == ["it runs on Fargate, where no agent may"]


def made(name: str, **spec: Any) -> Document:
    return {"metadata": {"name": name}, "spec": spec}


def test_a_service_with_an_address_is_warned_of() -> None:
    found = pods("web", "db")
    mine = {"app.kubernetes.io/name": "web"}
    [warning] = unshaped([made("front", clusterIP="10.96.0.7", selector=mine)], found)
    assert warning.startswith("Service front leads to web-0 by the address 10.96.0.7, and what is")
    everything = {"app.kubernetes.io/part-of": "thunderstorm"}
    [warning] = unshaped([made("all", clusterIP="fd00::7", selector=everything)], [*found, *own()])
    assert "leads to db-0, web-0 by the address fd00::7" in warning


def test_other_services_are_not() -> None:
    found = rendered(service("web", ports=(80,)))
    headless = [one for one in found if one["kind"] == "Service"]
    assert headless
    others = [
        made("named", type="ExternalName", externalName="example.org"),
        made("by-hand", clusterIP="10.96.0.8"),
        made("elsewhere", clusterIP="10.96.0.9", selector={"app": "else"}),
        made("agents", clusterIP="10.96.0.10", selector={"app.kubernetes.io/component": "agent"}),
    ]
    assert unshaped([*headless, *others], [*pods("web"), *own()]) == []
