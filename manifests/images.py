"""Whether a text is an image reference: `[HOST[:PORT]/]PATH[:TAG][@ALGORITHM:HEX]`.

After the grammar of the Distribution project (its package `reference`), which containerd, CRI-O and
Docker read. A pod with another one is accepted by the API server and never starts.
"""

from __future__ import annotations

import re

MAX_REPOSITORY = 255  # characters, with the host

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
_REFERENCE = re.compile(
    rf"(?P<repository>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII
)


def problem(image: str) -> str:
    """What is wrong with `image` and what to do, or '' if nothing is."""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        if lower := _REFERENCE.fullmatch(image.lower()):
            meant = lower["repository"] + image[lower.end("repository") :]
            return f"a repository's name has no capitals: {meant!r:.80}?"
        return "it must be such as 'nginx:1.27' or 'registry.example/team/app:2'"
    if len(found["repository"]) > MAX_REPOSITORY:
        return f"its name has more than {MAX_REPOSITORY} characters"
    return ""


def resolved(image: str) -> str:
    """The whole reference, as container runtimes complete it: host, `library/`, tag."""
    host, slash, _ = image.partition("/")
    if not slash or not re.search(r"[.:]|\Alocalhost\Z", host):
        image = f"docker.io/{image}" if slash else f"docker.io/library/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
