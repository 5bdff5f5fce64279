"""Which address an instance has by `address=A/P` or `address=A/P+` of an end of a link, and what is
said where that cannot be. Source: docs/nodes.md."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_interface

from tdl import ast


def of_instance(
    said: ast.InterfaceAddress, position: int, *, at_lan: bool
) -> IPv4Address | IPv6Address | None:
    """That of the instance at a position, from 0 on; None where there is no room for it. At a lan
    all are in one network, else each is in the next one."""
    own = ip_interface(f"{said.text}/{said.prefix}")
    step = 1 if at_lan else own.network.num_addresses
    try:
        address = own.ip + (position * step if said.counts else 0)
    except ValueError:
        return None
    last = int(own.network.broadcast_address) - (own.version == 4 and said.prefix < 31)
    return None if at_lan and int(address) > last else address


def no_room(said: ast.InterfaceAddress, position: int, owner: str) -> tuple[str, str]:
    """Message and hint of TS0606."""
    network = ip_interface(f"{said.text}/{said.prefix}").network
    which = f"number {position + 1} from {said.text} on"
    message = f"{network} has no room for {owner}, {which}"
    return message, "take a shorter prefix, or a lower first one"


def taken(
    said: ast.InterfaceAddress, position: int, text: str, owners: tuple[str, str]
) -> tuple[str, str]:
    """Message and hint of TS0602: two that hear each other would have it."""
    hint = "they hear each other: give each its own"
    if not said.counts and position:
        hint = f"address={said.text}/{said.prefix}+ counts up from the first instance"
    return f"{text} would be both {owners[0]}'s and {owners[1]}'s", hint
