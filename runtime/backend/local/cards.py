"""Network cards of this machine as ends of links: what an `external` needs of one, and the device
by which its instance has it.

The card stays where it is, up and named as before. On it is a macvlan in passthru mode, made in the
network namespace of the instance: it gets every frame that comes by the card before the machine
itself does, sends by it, and only one can be on a card. It goes with the namespace, whatever ends
that, and the card is the machine's again; nobody has to give it back.

Source: docs/nodes.md, ip-link(8); linux/if_link.h.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

from compiler.plan.types import PlannedExternal, Service
from runtime.errors import RunError
from runtime.system import namespaces
from runtime.system.network import netlink
from runtime.system.network.netlink import NetlinkRequest

DEVICE = "card"  # in the instance
# Who is behind the card finds the experiment's addresses at it, and at once.
SYSCTLS = (
    (f"net/ipv4/conf/{DEVICE}/proxy_arp", "1"),
    (f"net/ipv4/neigh/{DEVICE}/proxy_delay", "0"),
)
_PASSTHRU = 8  # MACVLAN_MODE_PASSTHRU
_FREE_SECONDS = 3.0  # for the kernel to remove the device of an instance that has just ended
_PAUSE_SECONDS = 0.05
_IN_USE = (errno.EINVAL, errno.EBUSY, errno.EEXIST)
_ETHERNET = 1  # ARPHRD_ETHER
_IFF_UP = 0x1
_SIOCGIFFLAGS, _SIOCGIFADDR, _SIOCGIFHWADDR = 0x8913, 0x8915, 0x8927
_LINK_SCOPE = "20"  # of an address in if_inet6


class CardError(RunError):
    """A card that cannot be the end of a link now."""


def check(card: str) -> None:
    """Whether a run can have it, tried out for a moment. Raises CardError."""
    known = sorted(name for _, name in socket.if_nameindex() if name != "lo")
    if card not in known:
        raise CardError(
            f"there is no network card {card}", f"there are {', '.join(known) or 'none'}"
        )
    if _told(_SIOCGIFHWADDR, card) != _ETHERNET:
        raise CardError(f"{card} is no Ethernet device", "name a network card")
    if card in _with_default_route():
        remedy = "the run would cut the machine off: name another card"
        raise CardError(f"{card} has the machine's default route", remedy)
    own = list(_addresses(card))
    if own:
        remedy = f"the machine would not hear of it any more: ip addr flush dev {card}"
        raise CardError(f"{card} has an address of the machine, {own[0]}", remedy)
    if not _told(_SIOCGIFFLAGS, card) & _IFF_UP:
        raise CardError(f"{card} is down", f"ip link set {card} up")
    _try(card)


def _try(card: str) -> None:
    """In a network namespace that goes with this process, should that be killed meanwhile."""
    try:
        net = namespaces.in_thread(namespaces.new_network)
    except OSError as error:
        raise CardError(
            f"whether a run can have {card} cannot be tried: {error.strerror}"
        ) from error
    try:
        take(card, net)
        with suppress(OSError):
            namespaces.in_thread(lambda: _give_back(net))
    finally:
        os.close(net)


def _give_back(net: int) -> None:
    """At once: a namespace and what is in it end a little after their last user."""
    namespaces.enter_network(net)
    index = socket.if_nametoindex(DEVICE)
    with netlink.opened() as kernel:
        netlink.exchange(kernel, [NetlinkRequest("remove it", netlink.removed(index))])


def take(card: str, net: int) -> None:
    """Makes the instance's device on the card, in the namespace of this descriptor. CardError."""
    with netlink.opened() as kernel:
        _ask(kernel, card, _device(card, net))


def _told(what: int, card: str) -> int:
    """The first number that the kernel tells of a device: its flags, its kind (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        answer = fcntl.ioctl(asked, what, struct.pack("16s24x", card.encode()))
    return int(struct.unpack_from("=H", answer, 16)[0])


def _device(card: str, net: int) -> bytes:
    try:
        below = socket.if_nametoindex(card)
    except OSError as error:
        raise CardError(f"there is no network card {card} any more") from error
    mode = [("IFLA_MACVLAN_MODE", _PASSTHRU)]
    kind = [("IFLA_INFO_KIND", "macvlan"), ("IFLA_INFO_DATA", mode)]
    where = ("IFLA_NET_NS_FD", net)
    found = [("IFLA_IFNAME", DEVICE), ("IFLA_LINK", below), where, ("IFLA_LINKINFO", kind)]
    return netlink.new_link(0, found)


def _ask(kernel: socket.socket, card: str, payload: bytes) -> None:
    end_s = time.monotonic() + _FREE_SECONDS
    while True:
        refused = netlink.exchange(kernel, [NetlinkRequest(f"take {card}", payload)])
        if not refused:
            return
        if refused[0].code not in _IN_USE or time.monotonic() > end_s:
            break
        time.sleep(_PAUSE_SECONDS)
    if refused[0].code in _IN_USE:
        raise CardError(
            f"{card} is used by another run, a bridge, or a macvlan: {refused[0].reason}",
            "`tstorm inspect` has the runs; `tstorm destroy RUN` ends one",
        )
    if refused[0].code == errno.EOPNOTSUPP:
        raise CardError(
            f"the kernel cannot share out {card}: it has no macvlan", "modprobe macvlan"
        )
    raise CardError(f"cannot take {card}: {refused[0].reason}")


def _with_default_route() -> set[str]:
    found = set()
    with suppress(OSError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            card, to, *_, mask = line.split()[:8]
            if int(to, 16) == 0 and int(mask, 16) == 0:
                found.add(card)
    with suppress(OSError):
        for line in Path("/proc/net/ipv6_route").read_text().splitlines():
            to, length, *_, card = line.split()
            if int(to, 16) == 0 and int(length, 16) == 0:
                found.add(card)
    return found - {"lo"}


def _addresses(card: str) -> Iterator[str]:
    """Those that the machine has on it, but for what the kernel gives each device."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, suppress(OSError):
        answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("16s24x", card.encode()))
        yield socket.inet_ntoa(answer[20:24])
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            address, _index, _length, scope, _flags, name = line.split()
            if name == card and scope != _LINK_SCOPE:
                yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))


def requests(index: int, external: PlannedExternal) -> list[NetlinkRequest]:
    """What makes the device, of this number, the way to the machines behind the card."""
    network = IPv4Network(external.behind)
    found = [NetlinkRequest(f"silence {DEVICE} (IPv6)", netlink.link(index, netlink.QUIET))]
    if external.own:
        own = IPv4Interface(external.own)
        request = netlink.address(index, str(own.ip), own.network.prefixlen)
        found.append(NetlinkRequest(f"add {external.own} to {external.card}", request))
    found.append(NetlinkRequest(f"bring {DEVICE} up", netlink.link(index, up=True)))
    to, length = str(network.network_address), network.prefixlen
    if not external.own or external.gateway or IPv4Interface(external.own).network != network:
        route = netlink.route(index, to, length, gateway=external.gateway)
        found.append(NetlinkRequest(f"add a route to {network} by {external.card}", route))
    return found


def beyond(services: Sequence[Service], service: int) -> tuple[tuple[str, int], ...]:
    """Networks that instances of this service reach by the experiment: what is behind the cards of
    others, as addresses with the lengths of their prefixes."""
    networks = (
        IPv4Network(one.external.behind)
        for number, one in enumerate(services)
        if one.external is not None and number != service
    )
    return tuple((str(one.network_address), one.prefixlen) for one in networks)
