"""A service of a plan as the values of templates/kubernetes/service.yaml.j2.

Nothing here is YAML: strings stay strings, and the template's serializer writes them.
"""

from __future__ import annotations

from compiler.plan.types import Service
from manifests.kubernetes_labels import (
    LABELS,
    MESH_LABELS,
    MESH_NOTES,
    STAYS,
    TAGS,
    common,
    notes,
    selector,
)
from manifests.names import doubled, tags

HOLD = "/tstorm/tstorm-hold"  # put there by the init container tstorm-install

_SUFFIXES = ("m", "", "k", "M", "G", "T", "P", "E")  # a factor of 1000 each

# Set by us, so that a service cannot claim to be another one (docs/tdl.md, env=).
_OWN = ("TSTORM_EXPERIMENT", "TSTORM_INDEX", "TSTORM_INSTANCE", "TSTORM_SEED", "TSTORM_SERVICE")


def values(service: Service, name: str, digest: str, seed: int) -> dict[str, object]:
    """`name` is the service's name in the cluster. Raises ManifestError."""
    labels = common(name, "instance", digest)
    labels.update({f"{TAGS}/{tag}": "true" for tag in tags(dict.fromkeys(service.tags)).values()})
    own = {**notes(digest), f"{LABELS}/service": service.name}
    return {
        "name": name,
        "labels": labels,
        "pod_labels": {**labels, **MESH_LABELS},
        "selector": selector(name, "instance"),
        "annotations": own,
        "pod_annotations": {
            **own,
            **STAYS,
            **MESH_NOTES,
            "kubectl.kubernetes.io/default-container": "instance",
        },
        "replicas": service.replicas,
        "image": service.image,
        "held": bool(service.entrypoint),
        "gate": [HOLD, "gate"],
        "entrypoint": [HOLD, "run", "--", *(doubled(word) for word in service.entrypoint)],
        "arguments": [doubled(word) for word in service.command],
        "env": _environment(service, digest, seed),
        "ports": _ports(service),
        "resources": _resources(service),
    }


def _environment(service: Service, digest: str, seed: int) -> list[tuple[str, str]]:
    """Beside TSTORM_INDEX, which only the cluster knows, and which comes first."""
    own = [
        ("TSTORM_SERVICE", service.name),
        ("TSTORM_INSTANCE", f"{service.name}.$(TSTORM_INDEX)"),
        ("TSTORM_SEED", str(seed)),
        ("TSTORM_EXPERIMENT", digest),
    ]
    return own + [(name, doubled(value)) for name, value in service.env if name not in _OWN]


def _ports(service: Service) -> list[dict[str, object]]:
    """Each once: two ports of one object must differ."""
    return [{"name": f"port-{number}", "number": number} for number in dict.fromkeys(service.ports)]


def _resources(service: Service) -> dict[str, dict[str, str]]:
    """Requests and limits alike: what an instance gets does not depend on its neighbours."""
    amounts = {}
    if service.cpu_millis:
        amounts["cpu"] = quantity(service.cpu_millis, "m")
    if service.mem_bytes:
        amounts["memory"] = quantity(service.mem_bytes, "")
    return {"requests": amounts, "limits": amounts} if amounts else {}


def quantity(amount: int, suffix: str) -> str:
    """In the server's own form, so that applying it again changes nothing: 1000m is 1."""
    place = _SUFFIXES.index(suffix)
    while amount % 1000 == 0 and place < len(_SUFFIXES) - 1:
        amount, place = amount // 1000, place + 1
    return f"{amount}{_SUFFIXES[place]}"
