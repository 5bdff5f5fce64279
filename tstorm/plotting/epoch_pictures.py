"""The network from each of its changes on: a file for each epoch of a plan.

Input: a plan, and of a run what its links carried. Output: files by name, `002-5s.svg`, each made
when it is asked for. In all pictures the nodes stand at the same places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from runtime.errors import RunError
from tstorm import units
from tstorm.plotting.subject import Subject
from tstorm.plotting.topology_picture import TopologyPictures
from tstorm.plotting.topology_text import SUFFIXES, text

MOST = 500
_FILE = re.compile(r"[0-9]{3}-[0-9a-z.]+(\.svg|\.png|\.dot|\.mmd|\.graphml)", re.ASCII)
_HEADS = {
    ".svg": b"<?xml",
    ".png": b"\x89PNG",
    ".dot": b"digraph network {",
    ".mmd": b"---\ntitle:",
    ".graphml": b"<?xml",
}


def is_one(name: str, head: bytes) -> bool:
    """Whether a file that begins so is one of these."""
    found = _FILE.fullmatch(name)
    return found is not None and head.startswith(_HEADS[found[1]])


class EpochPictures:
    """RunError for more epochs than anybody looks at, CommandError without matplotlib."""

    def __init__(self, what: Subject, suffix: str) -> None:
        self._what, self._suffix = what, suffix
        self._times = [epoch.at_ns for epoch in what.plan.epochs]
        if len(self._times) > MOST:
            message = f"the network has {len(self._times):,} epochs; at most {MOST} are drawn"
            raise RunError(message, "--at T draws one of them")
        self.notes: dict[str, None] = {}

    def files(self) -> Mapping[str, Iterable[bytes]]:
        return {
            f"{number:03}-{units.duration(at_ns)}{self._suffix}": self._file(at_ns)
            for number, at_ns in enumerate(self._times)
        }

    def _file(self, at_ns: int) -> Iterator[bytes]:
        if self._suffix in SUFFIXES:
            yield text(self._what, at_ns, self._suffix).encode()
            return
        drawn = self._pictures.at(at_ns, self._suffix)
        self.notes |= dict.fromkeys(drawn.notes)
        yield drawn.data

    @cached_property
    def _pictures(self) -> TopologyPictures:
        return TopologyPictures(self._what)
