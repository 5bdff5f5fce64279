"""What is told of packets that were not carried, and of devices that have gone: the parts alone."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Sequence

import pytest

from compiler.plan.types import Node
from runtime.backend.instance import Incarnation
from runtime.backend.local.ports import portpolicy
from runtime.backend.local.ports.portwatch import gone
from runtime.backend.missing import Missing
from runtime.backend.ports import EnginePorts
from runtime.backend.refusals import Refusals
from runtime.datapath.pktd import EngineAnswer
from runtime.system.network import tc
from tests.doubles.netlink import FakeNetlink


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def link(kind: int, family: int, name: str) -> bytes:
    text = name.encode() + b"\0"
    name_attribute = struct.pack("=HH", 4 + len(text), 3) + text + bytes(-len(text) % 4)
    mtu = struct.pack("=HHI", 8, 4, 1500)
    return message(kind, struct.pack("=BxHiII", family, 0, 9, 0, 0) + mtu + name_attribute)


def test_the_first_is_told_and_then_ten_times_as_many() -> None:
    told: list[str] = []
    refusals = Refusals(told.append)
    for _ in range(99):
        refusals.add("a.0", {"source": 1, "group": 5})
    refusals.add("b.1", {"frame": 7, "outside": 1})
    assert [line.split(" packet")[0] for line in told] == ["a.0: 1", "a.0: 10", "b.1: 7", "b.1: 1"]
    assert "--allow-spoofing" in told[0]
    refusals.add("a.0", {"source": 1})
    assert told[-1].startswith("a.0: 100 packets were dropped")
    assert refusals.record() == [
        {"instance": "a.0", "group": 495, "source": 100},
        {"instance": "b.1", "frame": 7, "outside": 1},
    ]


def test_who_sends_to_all_is_told_once() -> None:
    told: list[str] = []
    refusals = Refusals(told.append)
    for name in ("a.0", "b.0", "a.0"):
        refusals.add(name, {"group": 2})
        refusals.tell_of_groups(name)
    [line] = told
    assert line.startswith("a.0 sends to a group or to all")
    assert refusals.record() == [{"instance": "a.0", "group": 4}, {"instance": "b.0", "group": 2}]


class Engine:
    """Knows what became of the packets of one port."""

    rows: Sequence[bytes] = ()

    async def call(self, command: str) -> EngineAnswer:
        return EngineAnswer([], list(self.rows) if command == "stats ports" else [])


def test_what_one_engine_tells_of_a_port_is_counted_and_told_once() -> None:
    told: list[str] = []
    refusals, engine = Refusals(told.append), Engine()
    nodes = [Node("a.0", 0, "10.77.0.1", "fd77:7473::1", ())]

    def gone(name: str, device: str) -> None:
        told.append(f"{name}: {device}")

    async def play() -> None:
        ports = EnginePorts(engine, "auto", nodes, refusals, gone)  # type: ignore[arg-type]
        await ports.attach(Incarnation("a.0", pid=7), 0)
        for engine.rows in ([b"0 0 0 3"], [b"0 2 0 3"], [b"0 2 0 8", b"9 1 0 1"]):
            await ports.look()

    asyncio.run(play())
    assert refusals.record() == [{"instance": "a.0", "group": 8, "source": 2}]
    groups, source = told
    assert groups.startswith("a.0 sends to a group")
    assert source.startswith("a.0: 2 packets were dropped: from a source address")


def test_a_device_that_goes_is_heard_of() -> None:
    """Not one that comes, and not one that only leaves its bridge."""
    said = (
        link(16, socket.AF_UNSPEC, "p1")
        + link(17, 7, "p2")
        + link(17, socket.AF_UNSPEC, "p30")
        + link(17, socket.AF_UNSPEC, "e4")
    )
    assert list(gone(said)) == ["p30", "e4"]
    for length in range(len(said)):
        assert set(gone(said[:length])) <= {"p30", "e4", ""}
    events: list[object] = []
    notices: list[str] = []
    Missing(events.append, notices.append).tell("a.0", "eth0", 12)
    assert events == [{"kind": "device_gone", "target": "a.0", "device": "eth0", "applied_ns": 12}]
    assert notices[0].startswith("a.0: eth0 is gone")


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def action(place: int, number: int, packets: int) -> bytes:
    parameters = struct.pack("=IIiiiiI", number, 0, 4, 1, 1, 1, 5)
    stats = attribute(4, attribute(1, struct.pack("=QII", packets * 60, packets, 0)))
    options = attribute(2, attribute(2, parameters))
    return attribute(place, attribute(1, b"mirred\0") + stats + options)


def test_counters_of_redirects_are_read() -> None:
    first = message(48, bytes(4) + attribute(1, action(1, 7, 3) + action(2, 1 << 30, 4)))
    second = message(48, bytes(4) + attribute(1, action(1, (1 << 30) + 33, 5)))
    kernel = FakeNetlink(first + second, message(3, bytes(4)))
    found = tc.counts(kernel)  # type: ignore[arg-type]
    assert found == {7: 3, 1 << 30: 4, (1 << 30) + 33: 5}
    assert portpolicy.by_port(found) == {2: {"source": 5}}
    refusal = message(2, struct.pack("=i", -errno.EPERM))
    with pytest.raises(OSError, match="refuses"):
        tc.counts(FakeNetlink(refusal))  # type: ignore[arg-type]
