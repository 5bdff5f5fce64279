"""What a cluster can do for a run, asked of its API server before anything is applied.

Input: a connection, the namespace and image a run would use, the selector of its nodes. Output: the
rows of `tstorm doctor --backend k8s`; a run begins only if none of them is a failure. What only an
agent on a node can find out (datapaths, clocks) is checked by the coordinator before the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.doctor.findings import FAIL, OK, WARN, Check
from runtime.errors import MachineError
from runtime.say import some
from tstorm.k8s.connection import (
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    ApiConnection,
    JsonObject,
    ServerError,
)
from tstorm.k8s.documents import path_of

OLDEST = (1, 30)  # the agents say their AppArmor profile in a field
SHOWN = 5
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_BARRED = {  # nodes that are none, by label
    ("eks.amazonaws.com/compute-type", "fargate"): "Fargate",
    ("type", "virtual-kubelet"): "a virtual kubelet",
    ("kubernetes.azure.com/role", "virtual-node"): "a virtual kubelet",
    ("sandbox.gke.io/runtime", "gvisor"): "gVisor",
}
_VMS = ("gvisor", "runsc", "kata")  # handlers that keep a pod's network from its node


@dataclass(frozen=True, slots=True)
class WantedOfCluster:
    """What a run would use."""

    namespace: str
    nodes: str  # label selector, '' for all
    image: str  # of agents and coordinator
    is_given: bool = False  # the namespace is there, and stays


_APPLIED = (  # group, resource; server-side apply patches what it creates
    *(("", name) for name in ("configmaps", "secrets", "serviceaccounts", "services")),
    *(("apps", name) for name in ("daemonsets", "statefulsets")),
    ("batch", "jobs"),
    ("networking.k8s.io", "networkpolicies"),
    *(("rbac.authorization.k8s.io", name) for name in ("roles", "rolebindings")),
)
_LOOKED_AT = (
    *(("", name) for name in ("pods", "events", "services")),
    *(("apps", name) for name in ("daemonsets", "statefulsets")),
    ("batch", "jobs"),
)
_CREATING = "create", "", "namespaces"
RIGHTS = (  # verb, group, resource with subresource: docs/kubernetes.md, rights
    _CREATING,
    *((verb, "", "namespaces") for verb in ("get", "patch", "delete")),
    *((verb, *kind) for kind in _APPLIED for verb in ("create", "patch")),
    *(("list", *kind) for kind in _LOOKED_AT),
    # A command in a container: of websockets old API servers ask for the first, new ones for both.
    ("get", "", "pods/exec"),
    ("create", "", "pods/exec"),
    # What the coordinator is given: nobody can give a right that he lacks.
    ("get", "", "pods"),
    ("watch", "", "pods"),
    ("get", "", "pods/log"),
)

RIGHTS_WHERE_GIVEN = (  # in the namespace, and none outside of it
    *(right for right in RIGHTS if right[2] != "namespaces"),
    ("get", "", "configmaps"),
    ("delete", "", "configmaps"),
)


def is_given(connection: ApiConnection, namespace: str) -> bool:
    """Whether a namespace that the user has named has to be there: he may create none."""
    return not _may(connection, namespace, *_CREATING)


def checks(connection: ApiConnection, asked: WantedOfCluster) -> list[Check]:
    """All of them, in a fixed order. ServerError if the API server does not answer at all."""
    found = [_version(connection)]
    found.append(_rights(connection, asked))
    nodes = _nodes(connection, asked.nodes)
    if isinstance(nodes, Check):
        return [*found, nodes]
    chosen = _chosen(nodes, asked.nodes)
    if chosen.status == FAIL:
        return [*found, chosen]
    useful = [node for node in nodes if not _why_not(node)]
    return [
        *found,
        chosen,
        _real(useful),
        _runtime_classes(connection),
        _image(useful, asked.image),
    ]


def demand(found: Iterable[Check]) -> None:
    """MachineError if the cluster cannot do it."""
    failed = [check for check in found if check.status == FAIL]
    if failed:
        raise MachineError(
            "; ".join(f"{check.name}: {check.detail}" for check in failed),
            "; ".join(dict.fromkeys(check.remedy for check in failed if check.remedy)),
        )


def _version(connection: ApiConnection) -> Check:
    said = connection.get("/version")
    text = str(said.get("gitVersion", "?"))
    detail = f"{text} at {connection.server}"
    major, minor = (_digits(str(said.get(key, ""))) for key in ("major", "minor"))
    if (major, minor) < OLDEST:
        return Check("API server", FAIL, detail, f"Kubernetes {_dotted(OLDEST)} or newer is needed")
    return Check("API server", OK, detail)


def _digits(text: str) -> int:
    digits = "".join(character for character in text if character.isdigit())
    return int(digits) if digits else 0


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _rights(connection: ApiConnection, asked: WantedOfCluster) -> Check:
    """Asked of the server, one by one: nobody else knows all that decides."""
    lacking = [
        f"{verb} {resource}" + (f".{group}" if group else "")
        for verb, group, resource in (RIGHTS_WHERE_GIVEN if asked.is_given else RIGHTS)
        if not _may(connection, asked.namespace, verb, group, resource)
    ]
    name, where = "rights", f"namespace {asked.namespace}, which stays: you may create none"
    if not lacking:
        found = "all that a run needs"
        return Check(name, OK, f"{found} in {where}" if asked.is_given else found)
    remedy = "ask for these rights, or use another --context; docs/kubernetes.md lists them"
    if "create namespaces" in lacking:
        remedy += "; who may create no namespace can name one that he was given (--namespace)"
    return Check(name, FAIL, f"you may not: {', '.join(lacking)}", remedy)


def _may(connection: ApiConnection, namespace: str, verb: str, group: str, resource: str) -> bool:
    resource, _, inner = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": inner}
    if resource != "namespaces":
        attributes["namespace"] = namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(connection.create(_REVIEW, body).get("status", {}).get("allowed"))


def _nodes(connection: ApiConnection, selector: str) -> list[JsonObject] | Check:
    """The nodes of the selection, or why there are none."""
    query = {"labelSelector": selector} if selector else {}
    try:
        return connection.items(path_of("Node"), **query)
    except ServerError as error:
        if error.status == FORBIDDEN:
            detail = "you may not list nodes, so nothing is known of them"
            return Check("nodes", WARN, detail)
        if error.status in (400, INVALID):
            return Check("nodes", FAIL, error.message, "write --nodes such as disk=ssd,zone!=b")
        raise


def _chosen(nodes: list[JsonObject], selector: str) -> Check:
    of = f" of --nodes {selector}" if selector else ""
    if not nodes:
        remedy = "kubectl get nodes --show-labels shows what there is"
        return Check("nodes", FAIL, f"no node has the labels{of}", remedy)
    useful = [node for node in nodes if not _why_not(node)]
    refused = [f"{_name(node)} ({_why_not(node)})" for node in nodes if _why_not(node)]
    detail = f"{len(useful)} of {len(nodes)}{of} take pods"
    detail += f"; not {some(refused, SHOWN)}" if refused else ""
    if useful:
        return Check("nodes", WARN if refused and selector else OK, detail)
    return Check("nodes", FAIL, detail, "make a node ready, or choose others with --nodes")


def _why_not(node: Mapping[str, Any]) -> str:
    """Why our pods, which tolerate nothing, are not put on a node; '' if they are."""
    spec, status = node.get("spec", {}), node.get("status", {})
    if spec.get("unschedulable"):
        return "cordoned"
    system = status.get("nodeInfo", {}).get("operatingSystem", "linux")
    if system != "linux":
        return f"it runs {system}"
    for taint in spec.get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute"):
            return f"taint {taint['key']}"
    for condition in status.get("conditions", []):
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return f"not ready: {condition.get('message') or condition.get('reason')}"
    return ""


def _real(nodes: list[JsonObject]) -> Check:
    """Agents need the node's kernel: not so where a node is none. `nodes` take our pods."""
    name = "node kernels"
    barred = [f"{_name(node)} is {what}" for node in nodes if (what := _pretends(node))]
    if barred:
        remedy = "leave them out with --nodes: agents need the kernel of a real node"
        return Check(name, FAIL, some(barred, SHOWN), remedy)
    infos = [node.get("status", {}).get("nodeInfo", {}) for node in nodes]
    kinds = sorted(
        {
            f"Linux {info.get('kernelVersion')} {info.get('architecture')}, "
            f"{info.get('containerRuntimeVersion')}"
            for info in infos
        }
    )
    return Check(name, OK, some(kinds, SHOWN))


def _pretends(node: Mapping[str, Any]) -> str:
    labels = node["metadata"].get("labels") or {}
    for (label, value), what in _BARRED.items():
        if labels.get(label) == value and what:
            return what
    return ""


def _runtime_classes(connection: ApiConnection) -> Check:
    """Our pods ask for none, so another one than the usual is a cluster's own doing."""
    name = "runtime classes"
    found = runtime_classes(connection)
    if found is None:
        return Check(name, OK, "they cannot be listed; instances ask for none")
    odd = [
        str(one["metadata"]["name"])
        for one in found
        if any(word in str(one.get("handler", "")) for word in _VMS)
    ]
    if odd:
        detail = f"{some(odd, SHOWN)} would keep agents out; instances ask for none"
        return Check(name, OK, detail)
    return Check(name, OK, "instances use the nodes' usual one")


def runtime_classes(connection: ApiConnection) -> list[JsonObject] | None:
    """All of the cluster; None where nobody may list them or there is no such thing."""
    try:
        return connection.items("/apis/node.k8s.io/v1/runtimeclasses")
    except ServerError as error:
        if error.status in (FORBIDDEN, NOT_FOUND):
            return None
        raise


def _image(useful: list[JsonObject], image: str) -> Check:
    """Nodes list their larger images only, and nobody can try a pull for them."""
    name = "agent image"
    having = [node for node in useful if _spelled(image) & _images(node)]
    if len(having) == len(useful):
        return Check(name, OK, f"{image} is on all nodes")
    lacking = [_name(node) for node in useful if node not in having]
    detail = f"{image} is not seen on {some(lacking, SHOWN)}, which have to pull it"
    return Check(
        name,
        WARN,
        detail,
        "tstorm image build makes it; kind load, k3s ctr images import or a push",
    )


def _images(node: Mapping[str, Any]) -> set[str]:
    images = node.get("status", {}).get("images") or []
    return {str(name) for image in images for name in image.get("names") or []}


def _spelled(image: str) -> set[str]:
    """How a node may spell it: with registry and tag."""
    tagged = image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"
    return {image, tagged, f"docker.io/{tagged}", f"docker.io/library/{tagged}"}


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])
