"""Which of several equal links the packets of a flow take, as the engine decides it.

Input: what packets have in common (addresses, protocol, ports, flow label), and links with their
seeds. Output: the link whose number, drawn from its seed and the flow's number, is the highest:
rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
1998), so that a link that goes down moves its own flows only. Specified in docs/plan.md (Routes);
tcal_c/pktd/core/engine.c does the same in C, and a test holds them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Protocol

from compiler.plan.numbered_draws import bits
from compiler.plan.types import Link, Node

_KEY = 0x666C6F77  # `flow`
TCP, UDP, SCTP, ICMP, ICMP6 = 6, 17, 132, 1, 58


@dataclass(frozen=True, slots=True)
class FlowTuple:
    """Ports of TCP, UDP and SCTP, 0 of others and of fragments. `version` 0: what probes have,
    IPv4 where the network has it, else IPv6."""

    protocol: int
    source_port: int = 0
    dest_port: int = 0
    label: int = 0  # of IPv6
    version: int = 0

    def back(self) -> FlowTuple:
        """What answers it."""
        return replace(self, source_port=self.dest_port, dest_port=self.source_port)

    def number(self, source: Node, dest: Node, network: str = "dual") -> int | None:
        """64 bits that stand for it between these instances; None: they have no such addresses."""
        version = self.version or (6 if network == "ipv6" else 4)
        ends = [node.ipv4 if version == 4 else node.ipv6 for node in (source, dest)]
        if network not in ("dual", f"ipv{version}") or not all(ends):
            return None
        protocol = ICMP6 if version == 6 and self.protocol == ICMP else self.protocol
        rest = version << 60 | protocol << 52 | self.label << 32
        found = 0
        for end in ends:
            address = ip_address(end).packed.ljust(16, b"\0")
            found = bits(found, int.from_bytes(address[:8], "big"))
            found = bits(found, int.from_bytes(address[8:], "big"))
        return bits(found, rest | self.source_port << 16 | self.dest_port)


PROBES = FlowTuple(253)  # that a run sends itself (docs/probes.md)


class Numbered(Protocol):
    """What of a topology tells flows and links apart."""

    @property
    def network(self) -> str: ...
    @property
    def nodes(self) -> Sequence[Node]: ...
    @property
    def links(self) -> Sequence[Link]: ...


class FlowChoice:
    """Of one flow between two instances, given by node."""

    def __init__(self, topology: Numbered, src: int, dst: int, flow: FlowTuple) -> None:
        self._topology = topology
        self._ends = src, dst
        self._flow = flow
        self._number: int | None = None  # found when it is first needed

    def link(self, equal: tuple[int, ...]) -> int:
        """The one of these links that its packets take; the first if there are no such packets."""
        if len(equal) == 1:
            return equal[0]
        if self._number is None:
            source, dest = (self._topology.nodes[node] for node in self._ends)
            self._number = self._flow.number(source, dest, self._topology.network)
            if self._number is None:
                return equal[0]
        number, links = self._number, self._topology.links
        return max(equal, key=lambda link: (bits(links[link].seed ^ _KEY, number), -link))
