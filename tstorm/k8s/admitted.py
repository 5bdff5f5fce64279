"""What a cluster has made of an experiment's objects that the experiment cannot bear.

Input: objects as the API shows them (JSON). Output: what to refuse and what to warn of, by name.
Decided by the pods that are there: what admission did to them counts, not what is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from manifests.kubernetes_labels import component_selector
from runtime.say import some

SHOWN = 3

_OWN = {"instance", "tstorm-install", "tstorm-gate", "agent", "coordinator"}
_MESHES = {  # by the first word of a container's name
    "istio": "Istio",
    "linkerd": "Linkerd",
    "kuma": "Kuma",
    "consul": "Consul",
}
_AMBIENT = ("ambient.istio.io/redirection", "enabled")
_SANDBOXES = {"gvisor": "gVisor", "runsc": "gVisor", "kata": "Kata Containers"}
_FARGATE = "eks.amazonaws.com/fargate-profile"

_NO_MESH = "leave the namespace out where the mesh is configured; Thunderstorm's labels ask for it"
_NO_INJECTION = "leave the namespace out of the webhook that adds it"
_NO_SANDBOX = "choose nodes (--nodes) or a namespace where pods share the kernel of their node"


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """One reason for which a run cannot begin, and the pods that it is seen in, sorted."""

    message: str
    remedy: str
    pods: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{some(self.pods, SHOWN, word='pod')}: {self.message}"


def refusals(
    pods: Iterable[Mapping[str, Any]], classes: Iterable[Mapping[str, Any]] = ()
) -> list[PodRefusal]:
    """Of an experiment's pods. `classes`: RuntimeClasses; without them a class's name counts."""
    handlers = {str(one["metadata"]["name"]): str(one.get("handler", "")) for one in classes}
    found: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        for reason in _reasons(pod, handlers):
            found.setdefault(reason, []).append(str(pod["metadata"]["name"]))
    return [
        PodRefusal(message, remedy, tuple(sorted(names)))
        for (message, remedy), names in sorted(found.items())
    ]


def _reasons(pod: Mapping[str, Any], handlers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    spec, meta = pod["spec"], pod["metadata"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        name = str(container["name"])
        if name in _OWN:
            continue
        if mesh := _MESHES.get(name.partition("-")[0]):
            yield f"{mesh} has put its container {name!r} into it", _NO_MESH
        else:
            image = container.get("image", "?")
            yield f"the cluster has put a container {name!r} ({image}) into it", _NO_INJECTION
    key, value = _AMBIENT
    if (meta.get("annotations") or {}).get(key) == value:
        yield "Istio takes over its traffic (ambient mode)", _NO_MESH
    runtime = str(spec.get("runtimeClassName") or "")
    if sandbox := _sandbox(f"{runtime} {handlers.get(runtime, '')}"):
        yield (
            f"it runs under {sandbox} (runtime class {runtime!r}), which hides its processes and "
            "its network from the node",
            _NO_SANDBOX,
        )
    if _FARGATE in (meta.get("labels") or {}):
        yield "it runs on Fargate, where no agent may", _NO_SANDBOX


def _sandbox(words: str) -> str:
    return next((name for word, name in _SANDBOXES.items() if word in words.lower()), "")


def unshaped(services: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> list[str]:
    """Warnings about Services whose traffic no agent shapes: those with an address of their own.

    The node replaces such an address after the packet has left the instance's eth0. `services` and
    `pods` are of one namespace.
    """
    wanted = component_selector("instance").items()
    labels = {
        str(pod["metadata"]["name"]): found
        for pod in pods
        if wanted <= (found := pod["metadata"].get("labels") or {}).items()
    }
    warnings = []
    for service in services:
        spec = service["spec"]
        address, selector = spec.get("clusterIP"), spec.get("selector")
        if not selector or not address or address == "None":
            continue
        chosen = sorted(name for name in labels if selector.items() <= labels[name].items())
        if chosen:
            warnings.append(
                f"Service {service['metadata']['name']} leads to "
                f"{some(chosen, SHOWN, word='instance')} by "
                f"the address {address}, and what is sent there is not shaped: use the names of "
                "instances (server, server.0), or make it headless (clusterIP: None)"
            )
    return warnings
