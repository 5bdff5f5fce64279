"""/etc/hosts of instances: `server.0`, its host name `server-0`, `server` for every one, interfaces
as `server.0.eth1`, and the bridges that answer.

All have the same names, and each has a file of its own, as on a machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from compiler.plan.parts.host_names import LOOPBACK, own_names
from compiler.plan.parts.service_words import aliases
from compiler.plan.types import Node, Topology
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import HOSTS, PRIVATE

MOST_BYTES = 128 << 20  # of all files together: with more than some 1,200 instances there is one
# Names resolve to IPv4 first. glibc would take IPv6 first, whatever the order of lines; its table
# must be whole (gai.conf(5)). What has a table of its own (musl, Go) takes IPv4 before fd77::.
GAI = """\
precedence ::1/128 50
precedence ::/0 40
precedence 2002::/16 30
precedence ::/96 20
precedence ::ffff:0:0/96 100
"""


def entries(topology: Topology, addresses: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each address, those of IPv4 first; `addresses` are IPv4 and IPv6 of each instance,
    '' for the one that it has not."""
    services = topology.services
    instances = [(node, own) for node, own in own_names(topology) if node.is_instance]
    for family in (0, 1):
        for (node, own), pair in zip(instances, addresses, strict=True):
            if pair[family]:
                service = services[node.service]
                yield " ".join((pair[family], *own, service.name, *aliases(service)))


def addressed(topology: Topology, node: Node) -> Node:
    """The node with the addresses that instances have in this network (`network ipv4`)."""
    ipv4 = node.ipv4 if topology.network != "ipv6" else ""
    ipv6 = node.ipv6 if topology.network != "ipv4" else ""
    return replace(node, ipv4=ipv4, ipv6=ipv6)


def lines(topology: Topology, *, hops: bool) -> Iterator[str]:
    """With `hops` bridges answer in this run."""
    yield from (" ".join((address, *names)) for address, names in LOOPBACK)
    nodes = [addressed(topology, node) for node in topology.nodes]
    yield from entries(topology, [_named(topology, node) for node in nodes if node.is_instance])
    for node in nodes:
        if node.owner >= 0:
            yield from (f"{one} {node.name}" for one in (node.ipv4, node.ipv6) if one)
    for node in nodes:
        if hops and node.service < 0:
            yield from (f"{address} {node.name}" for address in (node.ipv4, node.ipv6) if address)


def _named(topology: Topology, node: Node) -> tuple[str, str]:
    """IPv4 and IPv6 of who answers to an instance's name: of one machine behind a network card that
    machine, else the instance itself."""
    external = topology.services[node.service].external
    if external is not None and external.behind.endswith("/32"):
        return external.behind.removesuffix("/32"), ""
    return node.ipv4, node.ipv6


def text(topology: Topology, *, hops: bool) -> str:
    return "\n".join(lines(topology, hops=hops)) + "\n"


class OwnHosts:
    """The file of each of these instances, which it finds in its next life as it has left it.
    Those that stay as they are do not outlive the run (discard). `homes` are the instances'
    directories. OSError.

    paths    by instance; empty where they would be too much together
    """

    def __init__(
        self, homes: HeldDirectory, topology: Topology, names: Sequence[str], *, hops: bool
    ) -> None:
        self._homes = homes
        self._data = text(topology, hops=hops).encode("ascii")
        fits = len(self._data) * len(names) <= MOST_BYTES
        self.paths = {name: self._make(name) for name in names if fits}

    def _make(self, name: str) -> str:
        folder = _folder(_folder(self._homes, PRIVATE), name)
        folder.write(HOSTS, self._data)
        os.chmod(HOSTS, 0o644, dir_fd=folder.descriptor)  # whoever the instance's programs are
        return str(folder / HOSTS)


def _folder(parent: HeldDirectory, name: str) -> HeldDirectory:
    with suppress(FileExistsError):
        return parent.make(name)
    return parent.enter(name)
