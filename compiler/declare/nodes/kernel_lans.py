"""`lan NAME kernel` in a `node`: a bridge of the kernel's in each machine.

Input: the statement of a node. Output: the lans with the addresses of their ends, for the plan's
machines, and what is wrong with them. What passes such a lan is not emulated, so that a link to it
says `address=` and nothing else. Source: docs/nodes.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from itertools import product
from typing import NamedTuple

from compiler.declare.nodes import stated_addresses
from compiler.phrases import end_name
from compiler.plan.types import PlannedLan, PlannedLanEnd
from tdl import ast
from tdl.diagnostics import Sink

_MAX_DEVICE = 15  # characters of the name of a device, IFNAMSIZ - 1
_OTHER_DEVICES = re.compile(r"lo|outside|card|eth[0-9]+")  # in instances
_FAMILIES = (4, 6)
_EMULATED = "write `lan {}`, whose links the engine emulates"


class KernelLink(NamedTuple):
    """A link of the block to a lan of the kernel's; `part` is its other end."""

    statement: ast.LinkStatement
    lan: str
    part: ast.Name
    instance: int | None  # None: all of the part
    said: ast.EndAddresses | None  # of the part
    of_lan: ast.EndAddresses | None


class _End(NamedTuple):
    lan: str
    part: str
    instance: int  # by its number in its machine
    addresses: tuple[str, str]  # with prefixes, '' for none, IPv4 first


def lans_of(node: ast.NodeStatement) -> dict[str, ast.Bridges]:
    """Those of the kernel's, by name in the block."""
    return {
        name.text: one
        for one in node.body
        if isinstance(one, ast.Bridges) and one.of_kernel
        for name in one.names
    }


def is_apart(one: ast.Statement, lans: Iterable[str]) -> bool:
    """Whether a statement of the block declares one of these lans, or a link to one."""
    if isinstance(one, ast.Bridges):
        return one.of_kernel
    return isinstance(one, ast.LinkStatement) and bool({one.a.text, one.b.text} & set(lans))


def links_of(node: ast.NodeStatement) -> Iterator[KernelLink]:
    lans = lans_of(node)
    for one in node.body:
        if not isinstance(one, ast.LinkStatement):
            continue
        a, b = one.address_a, one.address_b
        if one.b.text in lans:
            yield KernelLink(one, one.b.text, one.a, one.a_index, a, b)
        elif one.a.text in lans:
            said, of_lan = (a, None) if b is None else (b, a)
            yield KernelLink(one, one.a.text, one.b, one.b_index, said, of_lan)


def linked(nodes: Iterable[ast.NodeStatement]) -> Iterator[tuple[str, int | None, str]]:
    """The services of machines that are at such lans, which instance (None: all) and the lan, by
    their full names."""
    for node in nodes:
        for link, at in product(list(links_of(node)), range(node.replicas)):
            machine = f"{node.name.text}.{at}"
            yield f"{machine}.{link.part.text}", link.instance, f"{machine}.{link.lan}"


def check_outside(statements: Iterable[ast.Statement], sink: Sink) -> None:
    """Reports TS0629 for those that are in no machine."""
    for one in statements:
        if isinstance(one, ast.Bridges) and one.of_kernel:
            message = f"{one.names[0].text!r} is in no machine, and a lan of the kernel's is there"
            hint = f"write it into the block of a `node`, or `lan {one.names[0].text}`"
            sink.error("TS0629", one.span, message, hint)


def check(node: ast.NodeStatement, parts: Mapping[str, int], sink: Sink) -> None:
    """`parts`: how many instances of each, 0 for a bridge. Reports TS0108, TS0602, TS0606 and
    TS0629."""
    lans = lans_of(node)
    for name, one in lans.items():
        if len(name) > _MAX_DEVICE or _OTHER_DEVICES.fullmatch(name):
            message = f"a device of each part is called like the lan, and none can be {name!r}"
            hint = f"take another name, of at most {_MAX_DEVICE} characters"
            sink.error("TS0629", one.span, message, hint)
    for link in links_of(node):
        _check_link(link, parts, lans, sink)
    list(_ends(node, parts, sink))


def _check_link(
    link: KernelLink, parts: Mapping[str, int], lans: Iterable[str], sink: Sink
) -> None:
    one, part = link.statement, link.part.text
    if not parts.get(part):
        if part in parts or part in lans:
            message = f"{part!r} runs no program; only parts that do are at a lan of the kernel's"
            sink.error("TS0629", link.part.span, message, _EMULATED.format(link.lan))
        return  # what is no part is reported with the other links
    if link.instance is not None and link.instance >= parts[part]:
        message = f"there is no {end_name(link.part, link.instance)!r} in the machine"
        sink.error("TS0203", link.part.span, message, f"the last is {part}.{parts[part] - 1}")
    plain = ast.LinkStatement(
        one.a, one.b, one.span, a_index=one.a_index, b_index=one.b_index,
        address_a=one.address_a, address_b=one.address_b,
    )  # fmt: skip
    if one != plain:
        message = f"nothing is emulated on the way to {link.lan!r}, a lan of the kernel's: a link"
        message += " to it has `address=` and nothing else"
        hint = f"leave the rest out, or {_EMULATED.format(link.lan)}"
        sink.error("TS0629", one.span, message, hint)
    elif link.of_lan is not None or link.said is None:
        message = f"an end of {link.lan!r}, a lan of the kernel's, needs an address"
        if link.of_lan is not None:
            message = f"{link.lan!r} is a lan, and has no address"
        plus = "+" if parts[part] > 1 else ""
        hint = f"write address=192.168.0.1/24{plus}, which is that of {part!r}"
        sink.error("TS0629", one.span, message, hint)


def _ends(node: ast.NodeStatement, parts: Mapping[str, int], sink: Sink) -> Iterator[_End]:
    """Of one machine, in the order of the links; what is wrong is reported and left out."""
    seen: set[tuple[str, str, int]] = set()
    taken: dict[tuple[str, str], str] = {}  # by lan and address, whose it is
    for link in links_of(node):
        count = parts.get(link.part.text, 0)
        indices = range(count) if link.instance is None else range(link.instance, link.instance + 1)
        for position, index in enumerate(indices if link.said else ()):
            part = link.part.text
            if (link.lan, part, index) in seen:
                message = f"'{part}.{index}' and {link.lan!r} are linked already"
                sink.error("TS0108", link.statement.span, message, "leave one of the two out")
                continue
            seen.add((link.lan, part, index))
            found = [_address(link, position, one, taken, index, sink) for one in _FAMILIES]
            yield _End(link.lan, part, index, (found[0], found[1]))


def _address(
    link: KernelLink,
    position: int,
    family: int,
    taken: dict[tuple[str, str], str],
    index: int,
    sink: Sink,
) -> str:
    """With its prefix; '' for none of this family."""
    assert link.said is not None
    for said in link.said.found:
        if ip_address(said.text).version != family:
            continue
        owner, span = f"{link.part.text}.{index}", link.said.span
        address = stated_addresses.of_instance(said, position, at_lan=True)
        if address is None:
            sink.error("TS0606", span, *stated_addresses.no_room(said, position, owner))
            return ""
        text = str(address)
        before = taken.setdefault((link.lan, text), owner)
        if before != owner:
            words = stated_addresses.taken(said, position, text, (before, owner))
            sink.error("TS0602", span, *words)
            return ""
        return f"{text}/{said.prefix}"
    return ""


def planned(
    node: ast.NodeStatement, at: int, parts: Mapping[str, int], node_of: Mapping[str, int]
) -> tuple[PlannedLan, ...]:
    """Those of one machine of a node without errors, in the order of the block."""
    machine, found = f"{node.name.text}.{at}", list(_ends(node, parts, Sink()))
    lans = []
    for name, one in lans_of(node).items():
        ends = sorted(
            PlannedLanEnd(node_of[f"{machine}.{end.part}.{end.instance}"], *end.addresses)
            for end in found
            if end.lan == name
        )
        lans.append(PlannedLan(f"{machine}.{name}", tuple(ends), *one.span.place))
    return tuple(lans)
