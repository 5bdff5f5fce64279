"""What devices have dropped: as /proc/net/dev tells it, and answers that end early."""

from __future__ import annotations

import errno
import socket
import struct
from pathlib import Path

import pytest

from runtime.system import rtnetlink
from runtime.system.rtnetlink import NLMSG_DONE, NLMSG_ERROR, message
from tests.doubles.netlink import FakeNetlink


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
