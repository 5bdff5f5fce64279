"""What must hold of instances with an interface for each of their links (`interfaces`).

Input: a topology whose instances are in order. Output: how many end points it has, instances and
further interfaces; PlanError where one of these is not as docs/plan.md says.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address, ip_interface

from compiler.plan.format import MAX_INSTANCES, Place
from compiler.plan.types import Node, Topology


def check(found: Topology, instances: int, place: Place) -> int:
    nodes = found.nodes
    last, number, position = -1, 0, instances
    for node in nodes[instances:]:
        if node.owner < 0:
            break
        if not last <= node.owner < instances:
            place.fail(f"{node.name} belongs to no instance, or is not in order")
        owner = nodes[node.owner]
        number = number + 1 if node.owner == last else 1
        last = node.owner
        if node.name != f"{owner.name}.eth{number}":
            place.fail(f"node {position} must be {owner.name}.eth{number}")
        said = found.services[owner.service].interfaces_at[1]
        if not said or (node.service, node.tags) != (owner.service, owner.tags):
            place.fail(f"{node.name} is not an interface of its instance's service")
        position += 1
    if position > MAX_INSTANCES:
        place.fail(f"more than {MAX_INSTANCES} instances and interfaces of theirs")
    for index, node in enumerate(nodes):
        if node.owner >= 0 and not instances <= index < position:
            place.fail(f"{node.name} does not come among interfaces")
    _links(found, place)
    return position


def _links(found: Topology, place: Place) -> None:
    """Each interface is the end of one link, in the order of the links."""
    if not any(service.interfaces_at[1] for service in found.services):
        return
    degree = Counter(link.src for link in found.links)
    firsts: dict[int, int] = {}
    for index, link in enumerate(found.links):
        firsts.setdefault(link.src, index // 2)
    last = -1
    for index, node in enumerate(found.nodes):
        if node.service < 0 or not found.services[node.service].interfaces_at[1]:
            continue
        is_further = node.owner >= 0
        if degree[index] > 1 or (is_further and not degree[index] == degree[node.owner] == 1):
            place.fail(f"{node.name} is an interface, and not the end of one link")
        if is_further:
            before = last if found.nodes[index - 1].owner == node.owner else firsts[node.owner]
            last = firsts[index]
            if last < before:
                place.fail(f"{node.name} has a link before that of the interface before it")


def check_frames(found: Topology, place: Place) -> None:
    """A link carries frames at both ends or at neither; an end point has one such link at most."""
    nodes = found.nodes
    if any(node.frames for node in nodes) != bool(found.frames_at[1]):
        place.fail("frames_at stands where something carries frames")
    if not any(node.frames for node in nodes):
        return
    degree = Counter(link.src for link in found.links)
    for index, node in enumerate(nodes):
        if node.frames and node.service >= 0 and degree[index] != 1:
            place.fail(f"{node.name} carries frames, and is not the end of one link")
        if node.frames:
            _addresses_of_end(node, place)
    for link in found.links:
        if nodes[link.src].frames != nodes[link.dst].frames:
            place.fail(f"{link.name} carries frames at one end only")
    _check_radios(found, place)


def _check_radios(found: Topology, place: Place) -> None:
    """A radio has a link to one end point, and further ones to other radios only."""
    nodes = found.nodes
    stations: Counter[int] = Counter()
    for link in found.links:
        if nodes[link.src].air and nodes[link.dst].service >= 0:
            stations[link.src] += 1
        elif nodes[link.src].air and not nodes[link.dst].air:
            place.fail(f"{link.name} leads from a radio to neither its station nor a radio")
    for index, node in enumerate(nodes):
        if node.air and not (node.frames and node.service < 0 and stations[index] == 1):
            place.fail(f"{node.name} is no radio of one station")


def _addresses_of_end(node: Node, place: Place) -> None:
    is_lan = node.service < 0
    for text, prefix, gateway in zip(
        (node.ipv4, node.ipv6), node.prefixes, node.gateways, strict=True
    ):
        if bool(text) != bool(prefix) or (is_lan and text) or (gateway and not text):
            place.fail(f"{node.name} has an address without its prefix, or none of its own")
        try:
            same = not text or str(ip_interface(f"{text}/{prefix}").ip) == text
            same = same and (not gateway or str(ip_address(gateway)) == gateway)
        except ValueError:
            same = False
        if not same:
            place.fail(f"{node.name} has no address in canonical form")
