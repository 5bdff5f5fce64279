"""Links that carry frames: which they are, and the addresses of their ends.

A link with an end that is a router or a lan carries whatever Ethernet frames enter it. Ends that
hear each other's broadcasts, over one link or over lans, are a *domain*. An end has what `address=`
says of it, or with `addresses auto` one of 10.78.0.0/16 (between two ends: /31, by the link's
number) or of 10.79.0.0/16 (at lans: /24, by the domain's number); else none. An end that is no
router's has a gateway: what `gateway=` says, else the only router of its domain.

Input: the declarations and the plan's topology. Output: the topology whose nodes know all this, and
what is wrong. Source: docs/nodes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from compiler.declare.nodes import stated_addresses
from compiler.phrases import declared_as
from compiler.plan.types import Link, Node, Topology
from tdl import ast
from tdl.building.address_actions import NO_GATEWAY

if TYPE_CHECKING:
    from compiler.declare.declared import Declared

_FIRST_BETWEEN, _FIRST_AT_LANS = (IPv4Address(text) for text in ("10.78.0.0", "10.79.0.0"))
_MOST_BETWEEN, _MOST_DOMAINS, _MOST_AT_LAN = 1 << 15, 1 << 8, 254
_FAMILIES = (4, 6)


class FrameProblem(NamedTuple):
    code: str
    span: ast.Span
    message: str
    hint: str
    is_warning: bool = False


class _FrameLink(NamedTuple):
    """One link between two nodes, and which of its statement's it is."""

    number: int
    link: Link
    statement: ast.LinkStatement
    position: int


def carries_frames(declared: Declared, link: ast.LinkStatement) -> bool:
    return any(is_frame_element(declared, end.text) for end in (link.a, link.b))


def is_frame_element(declared: Declared, name: str) -> bool:
    """A router or a lan."""
    service, bridge = declared.services.get(name), declared.bridges.get(name)
    return bool(service and service.forwards) or bool(bridge and bridge.lan)


def with_frames(
    declared: Declared, planned: Topology, pairs: Sequence[range]
) -> tuple[Topology, tuple[FrameProblem, ...]]:
    links = list(_frame_links(declared, planned, pairs))
    if not links and not any(bridge.lan for bridge in declared.bridges.values()):
        return planned, ()
    assigned = _Assignment(declared, planned, links)
    nodes = tuple(assigned.node(number, node) for number, node in enumerate(planned.nodes))
    found = replace(planned, nodes=nodes, frames_at=_first(declared))
    return found, tuple(assigned.problems)


def _frame_links(
    declared: Declared, planned: Topology, pairs: Sequence[range]
) -> Iterator[_FrameLink]:
    """Each with its place among those of its statement, over all machines where it is for each."""
    seen: dict[ast.Span, int] = {}
    for statement, numbers in zip(declared.links, pairs, strict=True):
        first = seen.get(statement.span, 0) if statement.several else 0
        seen[statement.span] = first + len(numbers)
        if carries_frames(declared, statement):
            for at, number in enumerate(numbers, first):
                yield _FrameLink(number, planned.links[2 * number], statement, at)


def _first(declared: Declared) -> tuple[str, int]:
    """File and line of the first router or lan."""
    routers = (word.span for one in declared.services.values() if (word := one.forwards))
    lans = (one.name.span for one in declared.bridges.values() if one.lan)
    return min((*routers, *lans), key=lambda span: (span.file, span.line)).place


class _Assignment:
    """Addresses and gateways of all ends. `own`: by end and family, an address and its prefix."""

    def __init__(self, declared: Declared, planned: Topology, links: list[_FrameLink]) -> None:
        self._declared = declared
        self._nodes = planned.nodes
        self._links = links
        self._services = list(declared.services.values())
        self._lans = {
            number
            for number, node in enumerate(planned.nodes)
            if node.service < 0 and declared.bridges[node.name].lan
        }
        self.problems: list[FrameProblem] = []
        self._domain = _domains(links, self._lans)
        self._check_degree(planned.links)
        self._own: dict[tuple[int, int], tuple[str, int]] = {}
        self._taken: dict[tuple[int, str], str] = {}  # by domain and address, whose it is
        for one in links:
            self._state(one)
        if declared.auto_addresses is not None:
            self._fill(declared.auto_addresses.span)
        self._gateways = dict(self._find_gateways())
        self._find_strangers()

    def node(self, number: int, node: Node) -> Node:
        if number not in self._domain:
            return replace(node, frames=True) if number in self._lans else node
        if number in self._lans:
            return replace(node, ipv4="", ipv6="", frames=True)
        four, six = (self._own.get((number, family), ("", 0)) for family in _FAMILIES)
        return replace(
            node,
            ipv4=four[0],
            ipv6=six[0],
            frames=True,
            prefixes=(four[1], six[1]),
            gateways=self._gateways.get(number, ("", "")),
        )

    def _check_degree(self, links: Sequence[Link]) -> None:
        degree = Counter(link.src for link in links)
        told: set[int] = set()
        for node in self._domain:
            service = self._nodes[node].service
            if service < 0 or degree[node] < 2 or service in told:
                continue
            told.add(service)
            name = self._services[service].name
            message = f"{name.text!r} has several links, some of which carry frames"
            hint = "each must be an interface of its own: write "
            hint += f"`service {declared_as(name.text)} interfaces`"
            self._problem("TS0604", name.span, message, hint)

    # -- addresses ------------------------------------------------------------------------------

    def _state(self, one: _FrameLink) -> None:
        """What `address=` says of the ends of a link."""
        a, b = one.statement.address_a, one.statement.address_b
        if b is None and one.link.src in self._lans:
            a, b = None, a
        for node, said in ((one.link.src, a), (one.link.dst, b)):
            if said is not None and node in self._lans:
                message = f"{self._nodes[node].name!r} is a lan, and has no address"
                hint = "address=A/P is of the end that is a service's"
                self._problem("TS0605", said.span, message, hint)
            elif said is not None:
                other = one.link.dst if node == one.link.src else one.link.src
                for address in said.found:
                    self._give_stated(node, address, one.position, said.span, other in self._lans)

    def _give_stated(
        self,
        node: int,
        said: ast.InterfaceAddress,
        position: int,
        span: ast.Span,
        at_lan: bool,
    ) -> None:
        name = self._nodes[node].name
        address = stated_addresses.of_instance(said, position, at_lan=at_lan)
        if address is None:
            self._problem("TS0606", span, *stated_addresses.no_room(said, position, name))
            return
        text = str(address)
        key = self._domain[node], text
        before = self._taken.setdefault(key, name)
        if before != name:
            words = stated_addresses.taken(said, position, text, (before, name))
            self._problem("TS0602", span, *words)
            return
        self._own[node, address.version] = text, said.prefix

    def _fill(self, span: ast.Span) -> None:
        """`addresses auto`."""
        numbers: dict[int, int] = {}  # of domains with lans, in order
        for one in self._links:
            ends = [end for end in (one.link.src, one.link.dst) if end not in self._lans]
            if any((end, family) in self._own for end in ends for family in _FAMILIES):
                continue
            if len(ends) == 2:
                self._give_between(one, ends, span)
                continue
            for end in ends:
                domain = self._domain[end]
                self._give_at_lan(end, numbers.setdefault(domain, len(numbers)), span)

    def _give_between(self, one: _FrameLink, ends: list[int], span: ast.Span) -> None:
        if one.number >= _MOST_BETWEEN:
            message = f"10.78.0.0/16 has addresses for {_MOST_BETWEEN:,} links"
            self._problem("TS0606", span, message, "write address= at the others")
            return
        for side, end in enumerate(ends):
            self._own[end, 4] = str(_FIRST_BETWEEN + 2 * one.number + side), 31

    def _give_at_lan(self, end: int, number: int, span: ast.Span) -> None:
        first = _FIRST_AT_LANS + (number << 8)
        domain, name = self._domain[end], self._nodes[end].name
        for host in range(1, _MOST_AT_LAN + 1) if number < _MOST_DOMAINS else ():
            text = str(first + host)
            if (domain, text) not in self._taken:
                self._taken[domain, text] = name
                self._own[end, 4] = text, 24
                return
        message = f"there is no address left for {name} in 10.79.0.0/16"
        hint = f"it has {_MOST_AT_LAN} in each of {_MOST_DOMAINS} networks: write address="
        self._problem("TS0606", span, message, hint)

    # -- gateways -------------------------------------------------------------------------------

    def _is_router(self, node: int) -> bool:
        return self._services[self._nodes[node].service].forwards is not None

    def _find_gateways(self) -> Iterator[tuple[int, tuple[str, str]]]:
        routers: dict[tuple[int, int], list[str]] = {}  # their addresses, by domain and family
        for (node, family), (text, _) in self._own.items():
            if self._is_router(node):
                routers.setdefault((self._domain[node], family), []).append(text)
        warned: set[tuple[int, int]] = set()
        for one in self._links:
            for end in (one.link.src, one.link.dst):
                if end in self._lans or self._is_router(end):
                    continue
                four, six = (self._gateway(one, end, family, routers) for family in _FAMILIES)
                yield end, (four, six)
                domain = self._domain[end]
                several = len(routers.get((domain, 4), ())) > 1
                key = (self._nodes[end].service, domain)
                if several and one.statement.gateway is None and key not in warned:
                    warned.add(key)
                    message = f"{self._nodes[end].name} has no default route: it hears "
                    message += f"{len(routers[domain, 4])} routers"
                    hint = f"write gateway={routers[domain, 4][0]}, or gateway=none"
                    self._problem("TS0984", one.statement.span, message, hint, is_warning=True)

    def _find_strangers(self) -> None:
        """Warns of ends that hear others, of whose addresses none is in their own network."""
        own = {key: ip_interface(f"{text}/{prefix}") for key, (text, prefix) in self._own.items()}
        heard: dict[tuple[int, int], list[IPv4Address | IPv6Address]] = {}  # by domain and family
        networks: Counter[tuple[int, object]] = Counter()
        for (node, family), address in own.items():
            heard.setdefault((self._domain[node], family), []).append(address.ip)
            networks[self._domain[node], address.network] += 1
        told: set[ast.Span] = set()
        for one in self._links:
            for key in product((one.link.src, one.link.dst), _FAMILIES):
                if key not in own or one.statement.span in told:
                    continue
                address, domain = own[key], self._domain[key[0]]
                if networks[domain, address.network] > 1 or address.network.num_addresses == 1:
                    continue
                others = [other for other in heard[domain, key[1]] if other != address.ip]
                if others and not any(other in address.network for other in others):
                    told.add(one.statement.span)
                    message = f"{self._nodes[key[0]].name} has {address}, and hears nobody of "
                    message += f"{address.network}, but {others[0]}"
                    hint = "write addresses of one network, or let programs set the routes"
                    span = one.statement.span
                    self._problem("TS0985", span, message, hint, is_warning=True)

    def _gateway(
        self,
        one: _FrameLink,
        end: int,
        family: int,
        routers: dict[tuple[int, int], list[str]],
    ) -> str:
        own = self._own.get((end, family))
        said = one.statement.gateway
        if own is None or said == NO_GATEWAY:
            return ""
        network = ip_interface(f"{own[0]}/{own[1]}").network
        if said is not None:
            if ip_address(said).version != family:
                return ""
            if ip_address(said) in network and said != own[0]:
                return said
            message = f"{said} is no neighbour of {own[0]}/{own[1]}"
            self._problem("TS0608", one.statement.span, message, f"it is not in {network}")
            return ""
        found = routers.get((self._domain[end], family), [])
        return found[0] if len(found) == 1 and ip_address(found[0]) in network else ""

    def _problem(
        self, code: str, span: ast.Span, message: str, hint: str, *, is_warning: bool = False
    ) -> None:
        self.problems.append(FrameProblem(code, span, message, hint, is_warning))


def _domains(links: Sequence[_FrameLink], lans: set[int]) -> dict[int, int]:
    """Of each end its domain: the lowest of the nodes in it. An end has one link, so that only lans
    join links."""
    root: dict[int, int] = {}

    def find(node: int) -> int:
        root.setdefault(node, node)
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for lan in lans:
        find(lan)
    for one in links:
        a, b = sorted((find(one.link.src), find(one.link.dst)))
        root[b] = a
    return {node: find(node) for node in list(root)}
