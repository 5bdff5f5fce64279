"""A plan as objects of Kubernetes.

Input: a bundle and options. Output: texts by file name, to be applied in the order of their names;
with `kustomize` a kustomization.yaml beside them. Every value in a template goes through the
serializer (manifests/templating.py). What each object is for: docs/manifests.md.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from compiler.plan.format import TOOL_VERSION
from compiler.plan.parts.expectations import RUN
from compiler.plan.rules.capabilities import KUBERNETES
from compiler.plan.types import Service
from manifests import kubernetes_checks as checks
from manifests import kubernetes_files
from manifests.bundle import Bundle
from manifests.hold_options import end_seconds
from manifests.kubernetes_files import Carried
from manifests.kubernetes_labels import (
    MESH_LABELS,
    MESH_NAMESPACE_LABELS,
    MESH_NAMESPACE_NOTES,
    MESH_NOTES,
    STAYS,
    common,
    component_selector,
    notes,
    selector,
)
from manifests.kubernetes_services import quantity
from manifests.kubernetes_services import values as service_values
from manifests.object_names import labels as object_names
from manifests.refusal import ManifestError, demand_carried, raise_all
from manifests.render_options import Options
from manifests.templating import fill

AGENT_UDP = 7473  # between agents
AGENT_TCP = 7474  # from the coordinator, to a run's agent
SUPERVISOR_TCP = 7475  # from the coordinator, to what starts and ends it
USER = 65_532  # of what needs no privilege; any number but 0 would do

_END_SECONDS = 24  # to end a run, beside the time that its programs may take
_FAMILIES = {"ipv4": "IPv4", "ipv6": "IPv6"}
_AGENT = ("tstorm-agent", "agent")
_COORDINATOR = ("tstorm-coordinator", "coordinator")


def render(bundle: Bundle, options: Options) -> dict[str, str]:
    """The files by name, sorted. Raises ManifestError for what Kubernetes would not take."""
    demand_carried(bundle.plan, KUBERNETES)
    chosen = options.resolve(bundle)
    checks.namespace(chosen.namespace)
    checks.agent_image(chosen.agent_image)
    checks.plan(bundle)
    carried = kubernetes_files.carry(bundle)
    base = {**_chosen(bundle, chosen), **_fixed()}
    files = {**_experiment(bundle, base), **_plan(bundle, base)}
    files |= _files(bundle, base, carried) | _services(bundle, base, carried)
    files = dict(sorted(files.items()))
    if chosen.kustomize:
        files["kustomization.yaml"] = fill(
            "kubernetes/kustomization.yaml.j2", {**base, "files": list(files)}
        )
    return files


def _chosen(bundle: Bundle, chosen: Options) -> dict[str, object]:
    """What templates say of this plan and of these options."""
    own = notes(bundle.digest)
    return {
        "namespace": chosen.namespace,
        "digest": bundle.digest,
        "version": TOOL_VERSION,
        "annotations": own,
        "pod_notes": {**own, **MESH_NOTES},
        "staying": {**own, **STAYS, **MESH_NOTES},
        "agent_image": chosen.agent_image,
        "agent_cpu": quantity(chosen.agent_cpu_millis, "m"),
        "deadline_seconds": chosen.deadline_seconds,
        "end_seconds": _END_SECONDS
        + max(map(end_seconds, bundle.plan.topology.services), default=0),
        "nodes": parse(chosen.nodes),
        "runs_commands": any(one.kind == RUN for one in bundle.plan.expectations),
        "plan_names": [f"tstorm-{key}" for key in bundle.shards],
    }


def _fixed() -> dict[str, object]:
    """What they say of every plan."""
    return {
        "agent_selector": selector(*_AGENT),
        "agent_udp": AGENT_UDP,
        "agent_tcp": AGENT_TCP,
        "supervisor_tcp": SUPERVISOR_TCP,
        "coordinator_selector": selector(*_COORDINATOR),
        "instances": component_selector("instance"),
        "mesh_labels": MESH_NAMESPACE_LABELS,
        "mesh_notes": MESH_NAMESPACE_NOTES,
        "user": USER,
    }


def _experiment(bundle: Bundle, base: Mapping[str, object]) -> dict[str, str]:
    """What there is one of."""

    def text(template: str, name: str, component: str) -> str:
        labels = common(name, component, bundle.digest)
        values = {**base, "labels": labels, "pod_labels": {**labels, **MESH_LABELS}}
        return fill(f"kubernetes/{template}.yaml.j2", values)

    return {
        "00-namespace.yaml": text("namespace", "thunderstorm", "experiment"),
        "10-rbac.yaml": text("rbac", "thunderstorm", "access"),
        "30-network-policy.yaml": text("network-policy", "thunderstorm", "access"),
        "40-agent.yaml": text("agent", *_AGENT),
        "50-coordinator.yaml": text("coordinator", *_COORDINATOR),
    }


def _plan(bundle: Bundle, base: Mapping[str, object]) -> dict[str, str]:
    """One ConfigMap for each shard."""
    labels = common("thunderstorm", "plan", bundle.digest)
    files = {}
    for key, data in bundle.shards.items():
        shard = {
            "name": f"tstorm-{key}",
            "key": key,
            "count": str(len(bundle.shards)),
            "base64": base64.b64encode(data).decode("ascii"),
        }
        text = fill("kubernetes/plan.yaml.j2", {**base, "labels": labels, "shard": shard})
        files[f"20-{key}.yaml"] = text
    return files


def _files(bundle: Bundle, base: Mapping[str, object], carried: Carried) -> dict[str, str]:
    """One ConfigMap for some files of services, or for a large one."""
    labels = common("thunderstorm", "files", bundle.digest)
    files = {}
    for name, contents in carried.maps.items():
        data = {key: base64.b64encode(one).decode("ascii") for key, one in contents.items()}
        text = fill(
            "kubernetes/files.yaml.j2", {**base, "labels": labels, "name": name, "data": data}
        )
        files[f"25-{name.removeprefix('tstorm-')}.yaml"] = text
    return files


def _services(bundle: Bundle, base: Mapping[str, object], carried: Carried) -> dict[str, str]:
    """A headless Service and a StatefulSet for each service, also for one without instances.

    Services of a large plan differ in little but their names: the text of those that do is filled
    once. No text in a plan has the plan's digest, so none has what stands for the names.
    """
    services = bundle.plan.topology.services
    names = object_names(service.name for service in services)
    own, known = f"service-{bundle.digest}", f"object-{bundle.digest}"
    texts: dict[Service, str] = {}
    files = {}
    for service in services:
        alike = replace(service, name=own)
        if alike not in texts:
            texts[alike] = _service(bundle, base, carried, alike, known)
        name = names[service.name]
        text = texts[alike].replace(own, service.name).replace(known, name)
        checks.size(service.name, text)
        files[f"60-service-{name}.yaml"] = text
    return files


def _service(
    bundle: Bundle, base: Mapping[str, object], carried: Carried, service: Service, name: str
) -> str:
    """The objects of one service, which is called `name` in the cluster."""
    found = service_values(service, name, bundle.digest, bundle.plan.seed)
    found["family"] = _FAMILIES.get(bundle.plan.topology.network, "")
    found["volumes"] = kubernetes_files.volumes(service, carried)
    found["files"] = kubernetes_files.mounts(service, carried)
    return fill("kubernetes/service.yaml.j2", {**base, "service": found})


# A label selector as `kubectl -l` takes it, as the requirements of a node affinity.
#
# `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a`, `!a`, joined by commas: all of them
# must hold. Both forms mean the same, also for nodes that do not have the label (labels.Parse and
# NodeSelectorRequirement of Kubernetes).

Requirement = dict[str, object]  # key, operator, values (not of Exists and DoesNotExist)

EXAMPLE = "use such as 'pool=test,disk in (ssd, nvme),!gpu'"
_MAX_PREFIX, _MAX_NAME = 253, 63

_PIECE = re.compile(r"(?:[^,()]|\([^()]*\))+")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<word>==|=|!=)\s*(?P<value>[^\s=!]*)")
_PRESENT = re.compile(r"(?P<word>!?)\s*(?P<key>[^\s=!()]+)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


def parse(text: str) -> list[Requirement]:
    """The requirements in the order of `text`, none for "". Raises ManifestError."""
    if not text:
        return []
    pieces = _PIECE.findall(text)
    if ",".join(pieces) != text:
        raise ManifestError(f"{text!r:.200} is not a selector of nodes", EXAMPLE)
    found = [_requirement(piece.strip()) for piece in pieces]
    raise_all(error for one in found for error in _errors(one))
    return found


def _requirement(text: str) -> Requirement:
    if found := _SET.fullmatch(text):
        operator = {"in": "In", "notin": "NotIn"}[found["word"]]
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": operator, "values": values}
    if found := _EQUAL.fullmatch(text):
        operator = "NotIn" if found["word"] == "!=" else "In"
        return {"key": found["key"], "operator": operator, "values": [found["value"]]}
    if found := _PRESENT.fullmatch(text):
        return {"key": found["key"], "operator": "DoesNotExist" if found["word"] else "Exists"}
    raise ManifestError(f"{text!r:.80} selects no nodes", EXAMPLE)


def _errors(requirement: Requirement) -> Iterator[ManifestError]:
    key, values = requirement["key"], requirement.get("values", [])
    assert isinstance(key, str)
    assert isinstance(values, list)
    prefix, slash, name = key.rpartition("/")
    legal = not slash or (len(prefix) <= _MAX_PREFIX and _DOMAIN.fullmatch(prefix))
    if not legal or not _name(name):
        yield ManifestError(
            f"no node has a label called {key!r:.80}",
            "'kubectl get nodes --show-labels' shows those that there are",
        )
    for value in values:
        if value and not _name(value):
            yield ManifestError(f"no label has the value {value!r:.80}", EXAMPLE)


def _name(text: str) -> bool:
    return len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None
