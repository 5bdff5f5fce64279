"""For the tests of Kubernetes output: plans by hand, documents, and what a container sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from compiler.pipeline import compile_source
from compiler.plan.reader import decode
from compiler.plan.routes.routing import snapshots
from compiler.plan.types import Node, Service, Topology
from compiler.plan.writer import PlanContents, encode
from compiler.sources import SourceFolder
from manifests import bundle, kubernetes
from manifests.bundle import Bundle
from manifests.render_options import Options

ROOT = Path(__file__).resolve().parents[2]
# What pods cannot have: equal paths, queues, traces, paths of links, interfaces, routers,
# reactions, and nodes that move (docs/limits.md); and examples without images.
_ONE_MACHINE = {
    *(
        "air",
        "bufferbloat",
        "card",
        "failovers",
        "fattree",
        "leaders",
        "leases",
        "lte",
        "machines",
        "measured",
        "outbox",
        "phone",
        "register",
        "tornlog",
    ),
    *("mesh", "ring", "satellites", "static", "triangle", "vehicles"),
}
EXAMPLES, WITH_FILES = (  # the second have their files beside them
    sorted(one for one in (ROOT / "examples").glob(names) if one.stem not in _ONE_MACHINE)
    for names in ("*.tdl", "*/*.tdl")
)
Document = dict[str, Any]

_VARIABLE = re.compile(r"\$(\$|\(([^)]*)\))")


def service(name: str = "web", **changed: Any) -> Service:
    """A service with an image and one instance, and whatever else is said."""
    values: dict[str, Any] = {
        "name": name,
        "image": "nginx:1.27",
        "exec": (),
        "entrypoint": (),
        "command": (),
        "replicas": 1,
        "tags": (),
        "env": (),
        "ports": (),
        "cpu_millis": 0,
        "mem_bytes": 0,
        "options": (),
    }
    return Service(**{**values, **changed})


def bundle_of(
    *services: Service,
    seed: int = 7,
    source: bytes = b"",
    boot: str = "",
    contents: Iterable[bytes] = (),
    **settings: Any,
) -> Bundle:
    """The bundle of a plan with these services, no network and no events; `contents` of files."""
    nodes = []
    for number, item in enumerate(services):
        for index in range(item.replicas):
            k = len(nodes) + 1
            address = (f"10.77.{k >> 8}.{k & 255}", f"fd77:7473::{k:x}")
            nodes.append(Node(f"{item.name}.{index}", number, *address, item.tags))
    topology = Topology(services, tuple(nodes), (), boot, "delay", **settings)
    plan = PlanContents(
        source, seed, topology, (), 0, snapshots(topology, ()), attached=list(contents)
    )
    return bundle.make(decode(encode(plan)))


@cache
def example(path: Path) -> Bundle:
    return bundle.make(compile_source(path.read_bytes(), sources=SourceFolder(path.parent)).plan)


def documents(files: Mapping[str, str]) -> list[Document]:
    """All documents of all files, in order; kustomization.yaml is none of them."""
    return [
        document
        for name, text in files.items()
        if name != "kustomization.yaml"
        for document in yaml.safe_load_all(text)
    ]


def rendered(*services: Service, **options: Any) -> list[Document]:
    return documents(kubernetes.render(bundle_of(*services), Options(**options)))


def one(found: Iterable[Document], kind: str, name: str) -> Document:
    """The only document of this kind and name."""
    [document] = [d for d in found if d["kind"] == kind and d["metadata"]["name"] == name]
    return document


def workload(found: Iterable[Document], name: str) -> tuple[Document, Document]:
    """The pod's spec of a service's StatefulSet, and its only container."""
    pod = one(found, "StatefulSet", name)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    return pod, container


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """What Kubernetes makes of $(NAME) and $$ in a container's strings.

    After "Define Dependent Environment Variables" of its documentation: $$ is a dollar sign, and
    what is not a known variable stays as it is.
    """

    def replace(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return variables.get(found[2], found[0])

    return _VARIABLE.sub(replace, text)


def seen(container: Document, index: int) -> dict[str, str]:
    """The environment of instance `index`, as its program sees it."""
    variables: dict[str, str] = {}
    for entry in container["env"]:
        if "valueFrom" in entry:
            field = entry["valueFrom"]["fieldRef"]["fieldPath"]
            variables[entry["name"]] = {
                "metadata.labels['apps.kubernetes.io/pod-index']": str(index),
                "status.podIPs": "10.244.1.7,fd00::7",
            }[field]
        else:
            variables[entry["name"]] = expanded(entry.get("value", ""), variables)
    return variables


def arguments(container: Document, index: int = 0) -> list[str]:
    """What is executed: the image's own entrypoint is not part of it."""
    variables = seen(container, index)
    words = [*container.get("command", ()), *container.get("args", ())]
    return [expanded(word, variables) for word in words]
