"""Messages of route netlink, beside those that pyroute2 makes of the same."""

from __future__ import annotations

import errno
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST
from pyroute2.netlink.rtnl import (
    RTM_DELLINK,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWNEIGH,
    RTM_NEWROUTE,
    RTM_NEWRULE,
)
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import IFF_NOARP, IFF_UP, ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from runtime.backend.local.ports import devices
from runtime.system.network import netlink, rtnetlink
from runtime.system.network.rtnetlink import NLMSG_DONE, NLMSG_ERROR, message
from tests.doubles.netlink import FakeNetlink

MAC = "02:00:0a:4d:00:02"
NEW = NLM_F_CREATE | NLM_F_EXCL
QUIET = (
    "IFLA_AF_SPEC",
    {"attrs": [("AF_INET6", {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", 1)]})]},
)


def theirs(made: Any, number: int, asked: int, attributes: list[Any], **fields: int) -> bytes:
    message = made()
    for name, value in fields.items():
        message[name] = value
    message["attrs"] = attributes
    message["header"]["type"] = number
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | asked
    message.encode()
    return bytes(message.data)


def link(flags: int, attributes: list[Any], index: int, state: int = 0) -> bytes:
    return theirs(ifinfmsg, RTM_NEWLINK, flags, attributes, index=index, flags=state, change=state)


def kind(name: str, data: dict[str, Any]) -> tuple[str, Any]:
    return "IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", name), ("IFLA_INFO_DATA", data)]}


def test_links() -> None:
    assert netlink.link(7, up=True) == link(0, [], 7, IFF_UP)
    assert netlink.link(7, netlink.QUIET) == link(0, [QUIET], 7)
    assert netlink.loopback_up().payload == link(0, [], 1, IFF_UP)
    assert devices.up_without_arp(7) == link(0, [], 7, IFF_UP | IFF_NOARP)
    assert devices.removal(9) == theirs(ifinfmsg, RTM_DELLINK, 0, [("IFLA_GROUP", 9)])
    assert devices.bridge(3, "br0", MAC) == link(
        NEW,
        [
            ("IFLA_IFNAME", "br0"),
            ("IFLA_ADDRESS", MAC),
            kind("bridge", {"attrs": [("IFLA_BR_MCAST_SNOOPING", 0), ("IFLA_BR_STP_STATE", 0)]}),
        ],
        3,
        IFF_UP,
    )


def test_veth_pairs() -> None:
    near = [("IFLA_IFNAME", "p1"), ("IFLA_MASTER", 3), ("IFLA_GROUP", 2)]
    places = [("IFLA_NET_NS_PID", 4711), ("IFLA_NET_NS_FD", 8), *devices.WHOLE_SEGMENTS]
    peer = [("IFLA_IFNAME", "eth0"), ("IFLA_ADDRESS", MAC), *places]
    far = {"index": 5, "attrs": [*peer, ("IFLA_MTU", 1500)]}
    pair = kind("veth", {"attrs": [("VETH_INFO_PEER", far)]})
    wanted = link(NEW, [*near, ("IFLA_MTU", 1500), pair], 6, IFF_UP)
    assert devices.veth(6, near, peer, 5) == wanted


@pytest.mark.parametrize("groups", [True, False])
def test_ports_of_a_bridge(*, groups: bool) -> None:
    flags = [
        ("IFLA_BRPORT_LEARNING", 0),
        ("IFLA_BRPORT_UNICAST_FLOOD", 0),
        ("IFLA_BRPORT_MCAST_FLOOD", int(groups)),
        ("IFLA_BRPORT_BCAST_FLOOD", int(groups)),
    ]
    slave = [("IFLA_INFO_SLAVE_KIND", "bridge"), ("IFLA_INFO_SLAVE_DATA", {"attrs": flags})]
    wanted = link(0, [("IFLA_LINKINFO", {"attrs": slave})], 4)
    assert devices.bridge_port(4, groups=groups) == wanted


@pytest.mark.parametrize(
    ("text", "prefix", "family"),
    [("10.77.0.2", 16, socket.AF_INET), ("fd77:7473::1", 64, socket.AF_INET6)],
)
def test_addresses_and_neighbours(text: str, prefix: int, family: int) -> None:
    attributes = [("IFA_LOCAL", text), ("IFA_ADDRESS", text), ("IFA_FLAGS", 2)]
    assert netlink.address(7, text, prefix) == theirs(
        ifaddrmsg, RTM_NEWADDR, NEW, attributes, family=family, prefixlen=prefix, index=7
    )
    assert netlink.neighbour(7, text, MAC) == theirs(
        ndmsg,
        RTM_NEWNEIGH,
        NLM_F_CREATE | NLM_F_REPLACE,
        [("NDA_DST", text), ("NDA_LLADDR", MAC)],
        family=family,
        ifindex=7,
        state=0x80,
    )


def test_routes() -> None:
    assert netlink.route(7, "224.0.0.0", 4) == theirs(
        rtmsg,
        RTM_NEWROUTE,
        NEW,
        [("RTA_DST", "224.0.0.0"), ("RTA_OIF", 7), ("RTA_TABLE", 254)],
        family=socket.AF_INET,
        dst_len=4,
        proto=4,
        scope=253,
        type=1,
    )


@pytest.mark.parametrize(
    ("source", "family", "bits"),
    [("10.77.0.3", socket.AF_INET, 32), ("fd77:7473::3", socket.AF_INET6, 128)],
)
def test_rules(source: str, family: int, bits: int) -> None:
    assert netlink.rule(source, 1000) == theirs(
        fibmsg,
        RTM_NEWRULE,
        NEW,
        [("FRA_SRC", source), ("FRA_TABLE", 1000)],
        family=family,
        src_len=bits,
        action=1,
    )


def test_forwarding_entries() -> None:
    assert devices.forward(7, "10.77.0.2") == theirs(
        ndmsg,
        RTM_NEWNEIGH,
        NLM_F_CREATE | NLM_F_REPLACE,
        [("NDA_LLADDR", devices.mac_of("10.77.0.2"))],
        family=7,
        ifindex=7,
        state=0x40,
        flags=0x04,
    )


def test_an_attribute_that_is_not_known() -> None:
    with pytest.raises(KeyError, match="IFLA_WHATEVER"):
        rtnetlink.attributes([("IFLA_WHATEVER", 1)])


# What devices have dropped: as /proc/net/dev tells it, and answers that end early.


def test_it_is_what_proc_says() -> None:
    def counted() -> dict[int, int]:
        rows = [line.split() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
        return {socket.if_nametoindex(row[0].rstrip(":")): int(row[12]) for row in rows}

    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.bind((0, 0))
        before = counted()
        found = rtnetlink.dropped(netlink)
    assert before.keys() == found.keys()
    assert all(before[device] <= found[device] for device in before)


def told(device: int, dropped: int) -> bytes:
    stats = struct.pack("=8Q", *range(7), dropped) + bytes(8 * 16)
    attribute = struct.pack("=HH", 4 + len(stats), 1) + stats
    return message(92, 0, struct.pack("=BxHII", 0, 0, device, 1) + attribute)


def asked(*datagrams: bytes) -> dict[int, int]:
    return rtnetlink.dropped(FakeNetlink(*datagrams))  # type: ignore[arg-type]


def test_an_answer_comes_in_parts() -> None:
    done = message(NLMSG_DONE, 0, bytes(4))
    assert asked(told(7, 3) + told(8, 0), told(9, 2**40) + done) == {7: 3, 8: 0, 9: 2**40}
    assert asked(message(92, 0, bytes(12)) + done) == {}, "a device without numbers"


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(OSError, match="refuses to tell") as refusal:
        asked(message(NLMSG_ERROR, 0, struct.pack("=i", -errno.EOPNOTSUPP) + bytes(16)))
    assert refusal.value.errno == errno.EOPNOTSUPP
