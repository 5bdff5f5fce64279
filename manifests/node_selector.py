"""A label selector as `kubectl -l` takes it, as the requirements of a node affinity.

`a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a`, `!a`, joined by commas: all of them
must hold. Both forms mean the same, also for nodes that do not have the label (labels.Parse and
NodeSelectorRequirement of Kubernetes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from manifests.refusal import ManifestError, raise_all

Requirement = dict[str, object]  # key, operator, values (not of Exists and DoesNotExist)

EXAMPLE = "use such as 'pool=test,disk in (ssd, nvme),!gpu'"
_MAX_PREFIX, _MAX_NAME = 253, 63

_PIECE = re.compile(r"(?:[^,()]|\([^()]*\))+")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<word>==|=|!=)\s*(?P<value>[^\s=!]*)")
_PRESENT = re.compile(r"(?P<word>!?)\s*(?P<key>[^\s=!()]+)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


def parse(text: str) -> list[Requirement]:
    """The requirements in the order of `text`, none for "". Raises ManifestError."""
    if not text:
        return []
    pieces = _PIECE.findall(text)
    if ",".join(pieces) != text:
        raise ManifestError(f"{text!r:.200} is not a selector of nodes", EXAMPLE)
    found = [_requirement(piece.strip()) for piece in pieces]
    raise_all(error for one in found for error in _errors(one))
    return found


def _requirement(text: str) -> Requirement:
    if found := _SET.fullmatch(text):
        operator = {"in": "In", "notin": "NotIn"}[found["word"]]
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": operator, "values": values}
    if found := _EQUAL.fullmatch(text):
        operator = "NotIn" if found["word"] == "!=" else "In"
        return {"key": found["key"], "operator": operator, "values": [found["value"]]}
    if found := _PRESENT.fullmatch(text):
        return {"key": found["key"], "operator": "DoesNotExist" if found["word"] else "Exists"}
    raise ManifestError(f"{text!r:.80} selects no nodes", EXAMPLE)


def _errors(requirement: Requirement) -> Iterator[ManifestError]:
    key, values = requirement["key"], requirement.get("values", [])
    assert isinstance(key, str)
    assert isinstance(values, list)
    prefix, slash, name = key.rpartition("/")
    legal = not slash or (len(prefix) <= _MAX_PREFIX and _DOMAIN.fullmatch(prefix))
    if not legal or not _name(name):
        yield ManifestError(
            f"no node has a label called {key!r:.80}",
            "'kubectl get nodes --show-labels' shows those that there are",
        )
    for value in values:
        if value and not _name(value):
            yield ManifestError(f"no label has the value {value!r:.80}", EXAMPLE)


def _name(text: str) -> bool:
    return len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None
