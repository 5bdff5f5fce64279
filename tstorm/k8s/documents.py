"""Rendered manifests as what is applied: single YAML documents, each with the path of its object.

Input: the files of manifests.kubernetes by name. The text of a document is passed on as it is; it
is read only for the name of its object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SEPARATOR = "---\n"  # a line; rendered strings have no line ends in them (manifests/templating.py)

_GROUPS = {  # kind -> where its objects are
    "Namespace": "api/v1",
    "ServiceAccount": "api/v1",
    "ConfigMap": "api/v1",
    "Secret": "api/v1",
    "Service": "api/v1",
    "Role": "apis/rbac.authorization.k8s.io/v1",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1",
    "NetworkPolicy": "apis/networking.k8s.io/v1",
    "DaemonSet": "apis/apps/v1",
    "StatefulSet": "apis/apps/v1",
    "Job": "apis/batch/v1",
    "Pod": "api/v1",
    "Event": "api/v1",
    "Node": "api/v1",
}


@dataclass(frozen=True, slots=True)
class Document:
    kind: str
    name: str
    path: str
    text: str
    value: dict[str, Any]


def split(files: Mapping[str, str]) -> Iterator[Document]:
    """In the order of the files' names, and in it as they are written."""
    for name in sorted(files):
        for text in f"\n{files[name]}".split(f"\n{SEPARATOR}"):
            if text.strip():
                yield _document(text.removeprefix("\n"))


def _document(text: str) -> Document:
    import yaml

    value: dict[str, Any] = yaml.safe_load(text)
    kind, meta = str(value["kind"]), value["metadata"]
    path = path_of(kind, str(meta.get("namespace", "")), str(meta["name"]))
    return Document(kind, str(meta["name"]), path, text, value)


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """Of an object; without a name that of all objects of a kind."""
    plural = "networkpolicies" if kind == "NetworkPolicy" else f"{kind.lower()}s"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"/{_GROUPS[kind]}{inside}/{plural}" + (f"/{name}" if name else "")
