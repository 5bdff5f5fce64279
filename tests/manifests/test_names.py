"""Names of the language become names that Kubernetes takes, and no two become one."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifests import object_names
from manifests.refusal import ManifestError

# RFC 1035, 2.3.1, in lower case: what the names of Services must be.
LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)
# The name part of a label's key (Kubernetes documentation, "Labels and Selectors").
KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*", fullmatch=True)
NEAR = st.from_regex(r"[aA_][bB_]?(-[0-9a-f]{8}){0,2}", fullmatch=True)


@settings(deadline=None)
@given(NAMES | NEAR)
@example("_")
@example("_9")
@example("tstorm-agent")
@example("a" * 46)
@example("a" * 35 + "_" * 30)
def test_legal(name: str) -> None:
    label = object_names.label(name)
    assert LABEL.fullmatch(label)
    assert len(label) <= object_names.MAX_NAME
    assert not label.startswith(object_names.OWN_PREFIX)


@pytest.mark.parametrize("name", ["a", "server", "s1", "etcd-a", "a" * 45, "x-1234567", "tstorm"])
def test_what_is_legal_stays(name: str) -> None:
    assert object_names.label(name) == name


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Server", "server-"),
        ("my_db", "my-db-"),
        ("_", "x-"),
        ("_9", "x9-"),
        ("tstorm-agent", "xtstorm-agent-"),
        ("b" * 60, "b" * 36 + "-"),
        ("a-0123abcd", "a-0123abcd-"),
    ],
)
def test_what_is_not_is_changed_and_told_apart(name: str, wanted: str) -> None:
    label = object_names.label(name)
    assert re.fullmatch(re.escape(wanted) + "[0-9a-f]{8}", label)


@settings(deadline=None)
@given(st.sets(NAMES | NEAR, max_size=30))
@example({"a", "A", "_a", "a_", "A-a", "a-A"})
def test_injective(wanted: set[str]) -> None:
    found = object_names.labels(sorted(wanted))
    assert found.keys() == wanted
    assert len(set(found.values())) == len(wanted)


def test_a_changed_name_is_never_another_ones_own() -> None:
    changed = object_names.label("Server")
    found = object_names.labels(["Server", changed])
    assert found["Server"] == changed
    assert found[changed] != changed


def test_a_collision_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_names, "label", lambda _name: "same")
    with pytest.raises(ManifestError, match="'a' and 'b' would both be called 'same'"):
        object_names.labels(["a", "a", "b"])


@settings(deadline=None)
@given(st.text(max_size=80))
@example("x" * 64)
@example("a.b_c-D")
@example("-")
def test_tags(name: str) -> None:
    found = object_names.tag(name)
    assert KEY.fullmatch(found)
    assert len(found) <= object_names.MAX_LABEL
    assert object_names.tag(found) == found or object_names.tag(found) != object_names.tag(name)


@settings(deadline=None)
@given(st.sets(st.text(max_size=80), max_size=20))
def test_tags_are_injective(wanted: set[str]) -> None:
    assert len(set(object_names.tags(sorted(wanted)).values())) == len(wanted)


@pytest.mark.parametrize("name", ["a", "0", "tstorm-0123456789ab", "a-b", "x" * 63])
def test_namespaces(name: str) -> None:
    assert object_names.namespace(name) == name


@pytest.mark.parametrize("name", ["", "-", "a-", "-a", "A", "a_b", "a.b", "x" * 64, "a\n", "é"])
def test_what_is_no_namespace(name: str) -> None:
    with pytest.raises(ManifestError, match="cannot name a namespace"):
        object_names.namespace(name)


def test_doubled() -> None:
    assert object_names.doubled("$A $(B) $$") == "$$A $$(B) $$$$"
