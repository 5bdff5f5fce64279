"""A service of a plan as the values of templates/kubernetes/service.yaml.j2.

Nothing here is YAML: strings stay strings, and the template's serializer writes them.
"""

from __future__ import annotations

from compiler.plan.types import Service
from manifests import hold_options, unsupported
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
from manifests.object_names import doubled, tags

PROBE_SECONDS = 10  # that a command may take to say whether a program is ready
# That kubelet lets every pod set (1.32); others only where --allowed-unsafe-sysctls names them.
SAFE_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        *(f"net.ipv4.{name}" for name in ("ip_local_port_range", "ip_local_reserved_ports")),
        *(f"net.ipv4.{name}" for name in ("ip_unprivileged_port_start", "ping_group_range")),
        *(f"net.ipv4.tcp_{name}" for name in ("fin_timeout", "rmem", "syncookies", "wmem")),
        *(f"net.ipv4.tcp_keepalive_{name}" for name in ("intvl", "probes", "time")),
    )
)

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
        "held": unsupported.held(service),
        "gate": [hold_options.HOLD, "gate"],
        "entrypoint": [doubled(word) for word in hold_options.argv(service)],
        "arguments": _arguments(service),
        "cwd": service.cwd,
        "rights": _rights(service),
        "sysctls": _sysctls(service),
        "allowance": [name for name, _ in service.sysctls if name not in SAFE_SYSCTLS],
        "end_seconds": hold_options.end_seconds(service),
        "probe": _probe(service),
        "env": _environment(service, digest, seed),
        "ports": _ports(service),
        "resources": _resources(service),
    }


def _arguments(service: Service) -> list[str]:
    """tstorm-hold replaces the run's variables; Kubernetes does where it is not the first."""
    if unsupported.held(service):
        return [doubled(word) for word in service.command]
    return [unsupported.replaced(word, "$({})".format, doubled) for word in service.command]


def _rights(service: Service) -> dict[str, int]:
    """tstorm-hold has to be root to become a user whose name it looks up."""
    if unsupported.named_user(service):
        return {"runAsUser": 0, "runAsGroup": 0}
    keys = ("runAsUser", "runAsGroup")
    return dict(zip(keys, map(int, service.user.split(":")), strict=False)) if service.user else {}


def _sysctls(service: Service) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in service.sysctls]


def _probe(service: Service) -> dict[str, object]:
    """What kubelet asks: only where that is a port, or nobody else does."""
    port = unsupported.ready_port(service)
    if not service.ready and service.ports:
        port = service.ports[0]
    command = () if unsupported.held(service) else unsupported.ready_command(service)
    if port:
        return {"tcpSocket": {"port": port}, "periodSeconds": 2, "timeoutSeconds": 1}
    if command:
        how = {"command": list(command)}
        return {"exec": how, "periodSeconds": 1, "timeoutSeconds": PROBE_SECONDS}
    return {}


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
