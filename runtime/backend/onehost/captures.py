"""Files of packets, one a link of the plan, that pktd writes (docs/pktd.md, The record of packets).

A file is named by what it records, as far as that is safe: a plan may be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from compiler.plan.types import Link, Topology
from runtime.errors import unwritten
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import PACKETS

SUFFIX = ".pcapng"
MAX_NAME = 200
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def make(run: HeldDirectory) -> HeldDirectory:
    """The folder in a run directory. RunError."""
    try:
        return run.make(PACKETS)
    except OSError as error:
        raise unwritten(error) from error


def file_names(topology: Topology) -> list[str]:
    """Of each link, both directions of it: links 2k and 2k + 1 have the k-th name."""
    names: list[str] = []
    taken: set[str] = set()
    for link in topology.links[::2]:
        both = link.name.replace("->", "--")
        name = _UNSAFE.sub("_", both).lstrip(".")[:MAX_NAME] or "link"
        while name.lower() in taken:  # a file system may not tell them apart
            name += "_"
        taken.add(name.lower())
        names.append(name + SUFFIX)
    return names


def lines(topology: Topology) -> Iterator[str]:
    """What pktd is told once the links are declared."""
    for number, name in enumerate(file_names(topology)):
        both = range(2 * number, min(2 * number + 2, len(topology.links)))
        words = (f"{link}={_interface(topology.links[link])}" for link in both)
        yield f"capture {name} {' '.join(words)}"


def _interface(link: Link) -> str:
    return re.sub(r"[^!-~]", "_", link.name)[:MAX_NAME]


def counts(values: Mapping[str, str]) -> dict[str, int]:
    """What pktd tells of its files: packets written, lost and unwritten, and an errno."""
    return {key: int(value) for key, value in values.items() if value.isdecimal()}


def arguments(packets: HeldDirectory) -> Sequence[str]:
    """For pktd's command line; the descriptor is inherited."""
    return ("--captures", str(packets.descriptor))
