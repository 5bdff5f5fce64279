"""A plan as objects of Kubernetes.

Input: a bundle and options. Output: texts by file name, to be applied in the order of their names;
with `kustomize` a kustomization.yaml beside them. Every value in a template goes through the
serializer (manifests/templating.py). What each object is for: docs/kubernetes.md.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from manifests import kubernetes_checks as checks
from manifests.bundle import Bundle
from manifests.kubernetes_labels import STAYS, common, notes, selector
from manifests.kubernetes_services import values as service_values
from manifests.names import labels as object_names
from manifests.settings import Options
from manifests.templating import fill

AGENT_UDP = 7473  # between agents
AGENT_TCP = 7474  # from the coordinator
USER = 65_532  # of what needs no privilege; any number but 0 would do

_AGENT = ("tstorm-agent", "agent")
_COORDINATOR = ("tstorm-coordinator", "coordinator")


def render(bundle: Bundle, options: Options) -> dict[str, str]:
    """The files by name, sorted. Raises ManifestError for what Kubernetes would not take."""
    chosen = options.resolve(bundle)
    checks.namespace(chosen.namespace)
    checks.agent_image(chosen.agent_image)
    checks.topology(bundle.plan.topology)
    base: dict[str, object] = {
        "namespace": chosen.namespace,
        "digest": bundle.digest,
        "annotations": notes(bundle.digest),
        "staying": {**notes(bundle.digest), **STAYS},
        "agent_image": chosen.agent_image,
        "agent_selector": selector(*_AGENT),
        "agent_udp": AGENT_UDP,
        "agent_tcp": AGENT_TCP,
        "coordinator_selector": selector(*_COORDINATOR),
        "plan_names": [f"tstorm-{key}" for key in bundle.shards],
        "user": USER,
    }
    files = {**_experiment(bundle, base), **_plan(bundle, base), **_services(bundle, base)}
    files = dict(sorted(files.items()))
    if chosen.kustomize:
        files["kustomization.yaml"] = fill(
            "kubernetes/kustomization.yaml.j2", {**base, "files": list(files)}
        )
    return files


def _experiment(bundle: Bundle, base: Mapping[str, object]) -> dict[str, str]:
    """What there is one of."""

    def text(template: str, name: str, component: str) -> str:
        labels = common(name, component, bundle.digest)
        return fill(f"kubernetes/{template}.yaml.j2", {**base, "labels": labels})

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


def _services(bundle: Bundle, base: Mapping[str, object]) -> dict[str, str]:
    """A headless Service and a StatefulSet for each service, also for one without instances."""
    services = bundle.plan.topology.services
    names = object_names(service.name for service in services)
    files = {}
    for service in services:
        name = names[service.name]
        found = service_values(service, name, bundle.digest, bundle.plan.seed)
        text = fill("kubernetes/service.yaml.j2", {**base, "service": found})
        checks.size(service.name, text)
        files[f"60-service-{name}.yaml"] = text
    return files
