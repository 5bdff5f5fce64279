"""Every document has the form that each supported version of Kubernetes specifies.

The schemas are those of the API's own OpenAPI documents, in the package kubernetes-validate;
strict: an unknown field is an error. What schemas do not say (names, labels) is checked here as the
API server does, and against a real one in tests/cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
from kubernetes_validate import utils

from manifests import kubernetes
from manifests.render_options import Options
from tests.manifests.kube import (
    EXAMPLES,
    WITH_FILES,
    Document,
    bundle_of,
    documents,
    example,
    rendered,
    service,
)

OLDEST = (1, 30)  # a container's AppArmor profile is a field since then
VERSIONS = [
    f"{major}.{minor}"
    for major, minor in sorted(
        tuple(map(int, version.split(".")[:2])) for version in utils.all_versions()
    )
    if (major, minor) >= OLDEST
]

ODD = (
    service(
        "Everything_At_Once",
        entrypoint=("serve", "--x"),
        command=("a", "$(B)"),
        replicas=3,
        tags=("front-end", "_odd", "T" * 63),
        env=(("A", "1"), ("B.c-d", ""), ("TSTORM_SEED", "mine")),
        ports=(80, 65_535, 8080),
        cpu_millis=1500,
        mem_bytes=512 << 20,
    ),
    service(
        "stated",
        entrypoint=("serve",),
        user="db:ssl",
        cwd="/srv/x",
        sysctls=(("net.ipv4.tcp_fin_timeout", "9"), ("net.core.somaxconn", "1")),
        setup=("init", "-x"),
        ready=("check", "$TSTORM_IPV4"),
        stop="SIGINT",
        grace_ns=30_000_000_001,
        fs="private",
    ),
    service("numbered", user="70:71", cwd="/tmp", ready=("check",), ports=(80,)),
    service("asked", ready=("tcp:80",)),
    service("n" * 63, command=("80",), image=f"registry.example:5000/{'x' * 200}:tag"),
    service("never", replicas=0),
    service("_"),
    service("agent", tags=("agent",)),
    service("tstorm-agent"),
)

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RFC1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_NAME = re.compile(r"(?=.{1,15}\Z)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


_SCHEMAS = cache(utils.schema_contents)


@pytest.fixture(autouse=True)
def _schemas_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "schema_contents", _SCHEMAS)


def test_the_versions_are_those_that_the_documentation_names() -> None:
    assert VERSIONS[0] == "1.30" and "1.33" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_an_odd_plan_has_the_form_of_every_version(version: str) -> None:
    for document in rendered(*ODD):
        assert kubernetes_validate.validate(document, version, strict=True) == version


@pytest.mark.parametrize("path", [*EXAMPLES, *WITH_FILES], ids=lambda path: path.stem)
def test_every_example_has_the_form_of_the_oldest_and_the_newest(path: Any) -> None:
    for document in documents(kubernetes.render(example(path), Options())):
        for version in (VERSIONS[0], VERSIONS[-1]):
            assert kubernetes_validate.validate(document, version, strict=True) == version


def test_the_schemas_do_find_mistakes() -> None:
    broken = rendered(service("a"))[-1]
    broken["spec"]["replica"] = broken["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def metadata(document: Document) -> Iterator[Document]:
    yield document["metadata"]
    if "template" in document.get("spec", {}):
        yield document["spec"]["template"]["metadata"]


def key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    legal = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None)
    return legal and _LABEL_NAME.fullmatch(name) is not None


@pytest.mark.parametrize("services", [ODD, *[(s,) for s in ODD]], ids=lambda s: s[0].name[:20])
def test_labels_and_annotations_are_legal(services: Any) -> None:
    for document in rendered(*services):
        for found in metadata(document):
            for name, value in found.get("labels", {}).items():
                assert key(name) and _LABEL_VALUE.fullmatch(value), (name, value)
            for name, value in found.get("annotations", {}).items():
                assert key(name) and isinstance(value, str)


def test_names_are_legal() -> None:
    for document in rendered(*ODD):
        name = document["metadata"]["name"]
        assert _SUBDOMAIN.fullmatch(name), name
        if document["kind"] in ("Service", "StatefulSet", "Namespace"):
            # A pod is labelled with the StatefulSet's name, '-' and up to ten more characters.
            assert _RFC1035.fullmatch(name) and len(name) <= 52, name
        if document["kind"] == "StatefulSet":
            assert len(f"{name}-64999") <= 63


def test_names_of_ports_are_legal_and_distinct() -> None:
    found = [d for d in rendered(*ODD) if d["kind"] == "Service"]
    counts = []
    for document in found:
        names = [port["name"] for port in document["spec"].get("ports", ())]
        assert all(_PORT_NAME.fullmatch(name) for name in names)
        assert len(names) == len(set(names))
        counts.append(len(names))
    assert 3 in counts


def test_no_service_takes_the_name_of_something_of_ours() -> None:
    found = rendered(*ODD)
    workloads = ("StatefulSet", "DaemonSet", "Job")
    names = [d["metadata"]["name"] for d in found if d["kind"] in workloads]
    assert len(names) == len(set(names)) == len(ODD) + 2
    assert [name for name in names if name.startswith("tstorm-")] == [
        "tstorm-agent",
        "tstorm-coordinator",
    ]


def test_metadata_is_small_enough() -> None:
    packed = bundle_of(*ODD)
    for document in documents(kubernetes.render(packed, Options())):
        for found in metadata(document):
            assert sum(len(k) + len(v) for k, v in found["annotations"].items()) < 10_000
