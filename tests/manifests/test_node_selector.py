"""Selectors of nodes: what `kubectl -l` takes, as a node affinity, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from manifests.kubernetes import parse
from manifests.refusal import ManifestError


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    found: dict[str, Any] = {"key": key, "operator": operator}
    return {**found, "values": list(values)} if values else found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("a=b", [requirement("a", "In", "b")]),
        ("a==b, c != d", [requirement("a", "In", "b"), requirement("c", "NotIn", "d")]),
        (
            "e in (x, y),f notin (z)",
            [requirement("e", "In", "x", "y"), requirement("f", "NotIn", "z")],
        ),
        ("g,!h", [requirement("g", "Exists"), requirement("h", "DoesNotExist")]),
        ("in", [requirement("in", "Exists")]),
        ("a=", [requirement("a", "In", "")]),
        ("kubernetes.io/arch=arm64", [requirement("kubernetes.io/arch", "In", "arm64")]),
        ("n=" + "x" * 63, [requirement("n", "In", "x" * 63)]),
    ],
)
def test_what_is_taken(text: str, wanted: list[dict[str, Any]]) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=b,,c", "'a=b,,c' is not a selector of nodes"),
        ("a=b,", "is not a selector of nodes"),
        ("a in (x", "is not a selector of nodes"),
        (" ", "'' selects no nodes"),
        ("a b", "'a b' selects no nodes"),
        ("a in x", "'a in x' selects no nodes"),
        ("a in ((x))", "is not a selector of nodes"),
        ("=b", "'=b' selects no nodes"),
        ("a>1", "no node has a label called 'a>1'"),
        ("a/b/c=d", "no node has a label called 'a/b/c'"),
        ("-a", "no node has a label called '-a'"),
        ("A/b", "no node has a label called 'A/b'"),
        ("x" * 64, "no node has a label called"),
        ("a=é", "no label has the value 'é'"),
        ("a in (x, -y)", "no label has the value '-y'"),
        ("a=b\nc", "selects no nodes"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(reason)):
        parse(text)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(ManifestError, match="2 things cannot be rendered"):
        parse("-a=b,c=-d")
