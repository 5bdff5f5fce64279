"""Names of the language as names of Kubernetes objects: labels of RFC 1035, and so of RFC 1123.

A name stays as it is if it is such a label already, has at most 45 characters, does not begin as
the names of our own objects do and does not end as a changed name does. Every other name becomes
its letters and digits in lower case, and `-` with 8 hexadecimal digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from manifests.refusal import ManifestError

OWN_PREFIX = "tstorm-"
# A pod is NAME-64999, and Kubernetes labels pods with NAME and a hash: both must fit into 63.
MAX_NAME = 45
MAX_LABEL = 63

_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)
_CHANGED = re.compile(r"-[0-9a-f]{8}\Z")
_TAG = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)


def label(name: str) -> str:
    """The object name for `name`. Two names of one plan: see labels()."""
    plain = _LABEL.fullmatch(name) and len(name) <= MAX_NAME
    if plain and not name.startswith(OWN_PREFIX) and not _CHANGED.search(name):
        return name
    return _changed(name, MAX_NAME)


def _changed(name: str, limit: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    body = re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")
    if not body or not "a" <= body[0] <= "z" or body.startswith(OWN_PREFIX):
        body = f"x{body}"
    return f"{body[: limit - 9].rstrip('-')}-{digest}"


def labels(names: Iterable[str]) -> dict[str, str]:
    """label() of each. Raises ManifestError should two be the same (equal halves of a SHA-256)."""
    return _distinct(names, label)


def tag(name: str) -> str:
    """The name part of a label key for the tag `name`: at most 63 of `A-Za-z0-9_.-`."""
    if _TAG.fullmatch(name) and len(name) <= MAX_LABEL and not _CHANGED.search(name):
        return name
    return _changed(name, MAX_LABEL)


def tags(names: Iterable[str]) -> dict[str, str]:
    """tag() of each. Raises ManifestError should two be the same."""
    return _distinct(names, tag)


def _distinct(names: Iterable[str], rename: Callable[[str], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        new = rename(name)
        if taken.setdefault(new, name) != name:
            raise ManifestError(
                f"{taken[new]!r} and {name!r} would both be called {new!r} in a cluster",
                "rename one of them",
            )
        found[name] = new
    return found


def namespace(text: str) -> str:
    """`text`, if it can name a namespace; else ManifestError."""
    if len(text) > MAX_LABEL or not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", text, re.ASCII):
        raise ManifestError(
            f"{text!r:.80} cannot name a namespace",
            f"use at most {MAX_LABEL} lower-case letters, digits and '-', no '-' at the ends",
        )
    return text


def doubled(text: str) -> str:
    """`text` for a place where Kubernetes expands $(VAR) or Compose $VAR: every `$` twice."""
    return text.replace("$", "$$")
