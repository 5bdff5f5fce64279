"""What must hold between the records of a plan. Each function raises PlanError or returns.

Rules in docs/plan.md.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from compiler.plan import types
from compiler.plan.format import (
    MAX_DELAYS,
    MAX_INSTANCES,
    MAX_LINKS,
    MAX_NODES,
    MAX_PARAM,
    MAX_PARAMS,
    MAX_TRACES,
    SNAPSHOTS,
    TIMELINE,
    TOPOLOGY,
    Place,
    PlanError,
)
from compiler.plan.packet_class import is_sound
from compiler.plan.parts import services
from compiler.plan.rules import interface_rules
from compiler.plan.state import epochs as fold_epochs
from compiler.plan.state import follows

_WORD = r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*"
# Of a part of a machine (sat.3.app), or of the radio of one (sat.3.app.0.sky).
_NAME = re.compile(rf"{_WORD}(\.[0-9]+\.{_WORD}){{0,2}}", re.ASCII)


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)


def params(found: Mapping[str, str], place: Place) -> None:
    """Names and values of parameters, as a source may have them."""
    if len(found) > MAX_PARAMS:
        place.fail(f"more than {MAX_PARAMS} params")
    for name, value in found.items():
        if not _VARIABLE.fullmatch(name) or len(value) > MAX_PARAM:
            place.fail(f"the param {name!r:.60} has no name or value of one")


def topology(found: types.Topology) -> int:
    """Returns the number of instances."""
    place = Place(TOPOLOGY, 1)
    if len(found.nodes) > MAX_NODES or len(found.links) > MAX_LINKS:
        place.fail(f"more than {MAX_NODES} nodes or {MAX_LINKS} links")
    bridges = [node.name for node in found.nodes if node.service < 0]
    for name in (*(service.name for service in found.services), *bridges):
        if not _NAME.fullmatch(name):
            place.fail(f"{name!r:.60} is not a name")
    _unique([service.name for service in found.services] + bridges, place)
    _unique([node.name for node in found.nodes], place)
    for service in found.services:
        services.check(service, place)
    instances = _instances(found, place)
    endpoints = interface_rules.check(found, instances, place)
    _addresses(found.nodes, endpoints, place)
    interface_rules.check_frames(found, place)
    for node in found.nodes[endpoints:]:
        if node.service != -1:
            place.fail(f"{node.name} is not an instance and comes among bridges")
    _links(found, place)
    if len(found.traces) > MAX_TRACES:
        place.fail(f"more than {MAX_TRACES} traces")
    if (
        len({one.name for one in found.delays}) < len(found.delays)
        or len(found.delays) > MAX_DELAYS
    ):
        place.fail(f"delays have names, each once, and are at most {MAX_DELAYS}")
    _movement(found, place)
    _machines(found, instances, place)
    if any(a >= b for a, b in pairwise((-1, *found.quit_when, len(found.services)))):
        place.fail("quit_when must hold services, each once, ascending")
    return instances


def _movement(found: types.Topology, place: Place) -> None:
    moving = [node for one in found.mobility for node in one.nodes]
    if len(found.mobility) > 1 or len(set(moving)) < len(moving):
        place.fail("nodes move once")
    routers = [
        node
        for node in moving
        if found.nodes[node].is_instance and found.services[found.nodes[node].service].router
    ]
    if len(routers) < len(moving) and (routers or any(found.nodes[n].service >= 0 for n in moving)):
        place.fail("bridges move, or routers")
    if not routers and any(one.transceivers for one in found.mobility):
        place.fail("programs ask for links of routers")


def _machines(found: types.Topology, instances: int, place: Place) -> None:
    _unique([one.name for one in found.machines], place)
    taken: set[int] = set()
    for one in found.machines:
        nodes = [*one.members, *one.bridges]
        if not one.members or not taken.isdisjoint(nodes) or len(set(nodes)) < len(nodes):
            place.fail(f"machine {one.name!r:.60} has no members, or some that are not its own")
        if any(a >= b for nodes in (one.members, one.bridges) for a, b in pairwise(nodes)):
            place.fail(f"the parts of machine {one.name!r:.60} do not ascend")
        if max(one.members) >= instances or any(found.nodes[at].service >= 0 for at in one.bridges):
            place.fail(f"members of machine {one.name!r:.60} are instances, and bridges bridges")
        taken.update(nodes)
        for lan in one.lans:
            _kernel_lan(lan, one, place)
    _unique([lan.name for lan in types.kernel_lans(found.machines)], place)


def _kernel_lan(lan: types.PlannedLan, machine: types.PlannedMachine, place: Place) -> None:
    """Its ends are members of its machine, with addresses of their families."""
    ends = [end.node for end in lan.ends]
    if lan.name != f"{machine.name}.{lan.device}" or not set(ends) <= set(machine.members):
        place.fail(f"lan {lan.name!r:.60} is not one of machine {machine.name!r:.60}")
    if any(a >= b for a, b in pairwise(ends)):
        place.fail(f"the ends of lan {lan.name!r:.60} do not ascend")
    for end in lan.ends:
        for text, family in ((end.ipv4, 4), (end.ipv6, 6)):
            if text and not _is_interface(text, family):
                place.fail(f"lan {lan.name!r:.60} has {text!r:.60} for an address of IPv{family}")


def _is_interface(text: str, family: int) -> bool:
    try:
        found = ipaddress.ip_interface(text)
    except ValueError:
        return False
    return found.version == family and str(found) == text


def _unique(names: Iterable[str], place: Place) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            place.fail(f"the name {name!r:.60} appears twice")
        seen.add(name)


def _instances(found: types.Topology, place: Place) -> int:
    """Instances come first, by service and index."""
    position = 0
    for number, service in enumerate(found.services):
        for index in range(service.replicas):
            if position == len(found.nodes):
                place.fail(f"instances of service {service.name} are missing")
            node = found.nodes[position]
            if node.service != number or node.name != f"{service.name}.{index}":
                place.fail(f"node {position} must be instance {service.name}.{index}")
            position += 1
    if position > MAX_INSTANCES:
        place.fail(f"more than {MAX_INSTANCES} instances")
    return position


def _addresses(nodes: Sequence[types.Node], endpoints: int, place: Place) -> None:
    """Every end point has both, a bridge and an end of frames those that they have. The latter's
    may occur in several networks."""
    plain = [node for node in nodes if not node.frames]
    is_end = [i < endpoints for i, node in enumerate(nodes) if not node.frames]
    families: tuple[tuple[type[ipaddress.IPv4Address | ipaddress.IPv6Address], list[str]], ...] = (
        (
            ipaddress.IPv4Address,
            [one.ipv4 for i, one in enumerate(plain) if one.ipv4 or is_end[i]],
        ),
        (
            ipaddress.IPv6Address,
            [one.ipv6 for i, one in enumerate(plain) if one.ipv6 or is_end[i]],
        ),
    )
    for family, texts in families:
        _unique(texts, place)
        for text in texts:
            try:
                found = family(text)
                # Releases of Python differ in how they write IPv6 with dots; % names a zone.
                is_plain = found.version == 4 or not set(text) & set(".%")
                same = is_plain and str(found) == text
            except ValueError:
                same = False
            if not same:
                place.fail(f"{text!r:.60} is not an address in canonical form")


def _links(found: types.Topology, place: Place) -> None:
    nodes, links = found.nodes, found.links
    names = {node.name for node in nodes if node.owner < 0}
    elements = names | {service.name for service in found.services}
    if len(links) % 2:
        place.fail("a link has only one direction")
    between: dict[tuple[int, int], set[str]] = {}  # what links between these two are called
    for index, link in enumerate(links):
        if link.src >= len(nodes) or link.dst >= len(nodes) or link.src == link.dst:
            place.fail(f"link {index} has an end that is no other node")
        called = called_after_ends(link, index, nodes, place)
        if called and (called in elements or not _NAME.fullmatch(called)):
            place.fail(f"link {index} is called {called!r:.60}, which is no name for a link")
        other = links[index ^ 1]
        ends = (other.dst, other.src, called)
        if (link.src, link.dst, types.named_direction(other.name)[2]) != ends:
            place.fail(f"link {index} and {index ^ 1} are not the directions of one link")
        if not is_sound(link.state.only, names):
            place.fail(f"{link.name} has a class of packets that there are none of")
        if not follows(link.state, found):
            place.fail(f"{link.name} is not what a trace or delays of the plan have")
        pair = types.owner_of(nodes, link.src), types.owner_of(nodes, link.dst)
        beside = between.setdefault(pair, set())
        if called in beside:
            place.fail(f"{link.name} appears twice")
        if beside and "" in {called, *beside}:
            place.fail(f"{link.name} is one of several between its ends, and one has no name")
        beside.add(called)


def called_after_ends(
    link: types.Link, index: int, nodes: Sequence[types.Node], place: Place
) -> str:
    """What it is called besides."""
    _, _, called = types.named_direction(link.name)
    if link.name != types.direction_name(*types.end_names(nodes, link), called):
        place.fail(f"link {index} must be called after its ends")
    return called


def event(found: types.Event, last: types.Event | None, end_ns: int, place: Place) -> None:
    """Place in the order; whether the event is possible is for the fold to say."""
    wanted = last.seq + 1 if last else 0
    if found.seq != wanted:
        place.fail(f"event {found.seq} where {wanted} is expected")
    if last and found.at_ns < last.at_ns:
        place.fail(f"at {found.at_ns} ns, before the event above it at {last.at_ns} ns")
    if found.at_ns > end_ns:
        place.fail(f"at {found.at_ns} ns, after the end at {end_ns} ns")
    if found.kind == "quit" and found.at_ns != end_ns:
        place.fail(f"quit at {found.at_ns} ns is not the end at {end_ns} ns")


def epoch(found: types.Epoch, last: types.Epoch | None, place: Place) -> None:
    """Place in the order; contents are compared in folded()."""
    index = last.index + 1 if last else 0
    first = last.last_seq if last else 0
    if found.index != index or found.first_seq != first or found.last_seq < first:
        place.fail(f"epoch {index} with events from {first} is expected here")
    if last is None and found.at_ns:
        place.fail("the first epoch must start at 0")
    if last and (found.at_ns <= last.at_ns or found.last_seq == first):
        place.fail("an epoch needs a later time and an event of its own")


def folded(
    topology: types.Topology, events: Sequence[types.Event], epochs: Sequence[types.Epoch]
) -> None:
    """The epochs must be exactly what the events make of the topology."""
    wanted = list(fold_epochs(topology, events))
    for number, (want, have) in enumerate(zip(wanted, epochs, strict=False), 1):
        if want != have:
            raise PlanError(
                SNAPSHOTS, f"epoch {have.index} is not what {TIMELINE} makes of it", line=number
            )
    if len(wanted) != len(epochs):
        raise PlanError(SNAPSHOTS, f"{len(epochs)} epochs where {TIMELINE} makes {len(wanted)}")
