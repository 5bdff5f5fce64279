"""Packets that pktd writes (docs/pktd.md, The record of packets): into files, one a link of the
plan, and which of them a live capture is of.

A file is named by what it records, as far as that is safe: a plan may be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.plan.types import Link, Topology, end_names
from runtime.datapath.capture_pipe import MOST_PLACES, OFFERED
from runtime.errors import RunError, no_instance, unwritten
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import PACKETS

SUFFIX = ".pcapng"
MAX_NAME = 200
_MACHINE = re.compile(r"^([^.]+)\.[0-9]+\.(?=[A-Za-z_])")  # of a part's name, sat.3.gw
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


@dataclass(frozen=True, slots=True)
class CapturePlace:
    """A direction of a link, before its queue or behind the link."""

    link: int
    name: str
    offered: bool

    @property
    def interface(self) -> str:
        """What it is called in a capture."""
        return self.name + OFFERED if self.offered else self.name

    @property
    def file(self) -> int:
        """Which of `file_names` has it, in a run that keeps packets."""
        return self.link // 2


def at_instance(topology: Topology, instance: str) -> list[CapturePlace]:
    """What an instance sends, as it comes to its links, and what leaves links to it. RunError."""
    known = {one.name: number for number, one in enumerate(topology.nodes) if one.is_instance}
    if instance not in known:
        raise no_instance(instance, list(known))
    node = known[instance]
    own = {node, *(n for n, one in enumerate(topology.nodes) if one.owner == node)}
    found = [
        CapturePlace(number, _interface(link), offered=link.src in own)
        for number, link in enumerate(topology.links)
        if own & {link.src, link.dst}
    ]
    return _few(found, instance)


def at(topology: Topology, target: str, *, is_link: bool) -> list[CapturePlace]:
    """RunError."""
    return at_link(topology, target) if is_link else at_instance(topology, target)


def at_link(topology: Topology, link: str) -> list[CapturePlace]:
    """Both directions of a--b, or the one of a->b, each before and behind it. RunError."""
    both = "--" in link
    called, _, ends = link.rpartition(":")
    first, _, second = ends.partition("--" if both else "->")
    nodes = topology.nodes
    found = []
    for number, one in enumerate(topology.links):
        src, dst = end_names(nodes, one)
        name = one.name.rpartition(":")[0]
        forward = _is_end(src, first) and _is_end(dst, second)
        back = both and _is_end(dst, first) and _is_end(src, second)
        if (forward or back) and called in ("", name):
            text = _interface(one)
            found += [
                CapturePlace(number, text, offered=True),
                CapturePlace(number, text, offered=False),
            ]
    if not found:
        names = [one.name.replace("->", "--") for one in topology.links[::2]]
        raise RunError(f"the run has no link {link!r}", f"there are: {', '.join(names[:20])}")
    return _few(found, link)


def _is_end(node: str, word: str) -> bool:
    """A service stands for all its instances, a part of a node for that of each machine."""
    names = (node, node.rpartition(".")[0])
    return word in names or word in (_MACHINE.sub(r"\1.", name) for name in names)


def _few(places: list[CapturePlace], what: str) -> list[CapturePlace]:
    if len(places) > MOST_PLACES:
        raise RunError(
            f"{what!r} is {len(places)} places, and a capture has at most {MOST_PLACES}",
            "name one link, such as --link " + places[0].name.replace("->", "--"),
        )
    return places
