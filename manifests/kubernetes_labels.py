"""Labels and annotations of our objects: the recommended ones of Kubernetes, and our own prefix."""

from __future__ import annotations

from compiler.plan.format import TOOL_VERSION

LABELS = "thunderstorm.dev"
TAGS = f"tag.{LABELS}"

# For a pod whose eviction would end the experiment: autoscalers leave its node alone.
STAYS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

# Service meshes put a proxy into pods, or take over their traffic, unless these say no: Istio (with
# and without sidecars), Linkerd, Kuma, Consul. A proxy would answer in the place of a program.
MESH_LABELS = {
    "sidecar.istio.io/inject": "false",
    "istio.io/dataplane-mode": "none",
    "kuma.io/sidecar-injection": "disabled",
}
MESH_NOTES = {
    "linkerd.io/inject": "disabled",
    "consul.hashicorp.com/connect-inject": "false",
}
MESH_NAMESPACE_LABELS = {
    "istio-injection": "disabled",
    "istio.io/dataplane-mode": "none",
    "kuma.io/sidecar-injection": "disabled",
}
MESH_NAMESPACE_NOTES = {"linkerd.io/inject": "disabled"}

_PREFIX = "app.kubernetes.io"
_DIGITS = 12  # of the digest: a label has room for 63 characters, a digest has 64


def common(name: str, component: str, digest: str) -> dict[str, str]:
    """The labels that every object has."""
    return {
        f"{_PREFIX}/name": name,
        f"{_PREFIX}/instance": f"tstorm-{digest[:_DIGITS]}",
        f"{_PREFIX}/version": TOOL_VERSION,
        f"{_PREFIX}/component": component,
        f"{_PREFIX}/part-of": "thunderstorm",
        f"{_PREFIX}/managed-by": "tstorm",
    }


def selector(name: str, component: str) -> dict[str, str]:
    """What selects the pods of one workload in its namespace. Selectors can never change."""
    return {f"{_PREFIX}/name": name, f"{_PREFIX}/component": component}


def component_selector(component: str) -> dict[str, str]:
    """What selects the pods of all workloads of a kind."""
    return {f"{_PREFIX}/component": component}


def notes(digest: str) -> dict[str, str]:
    """The whole digest, and who rendered it: on every object."""
    return {f"{LABELS}/plan": digest, f"{LABELS}/version": TOOL_VERSION}
