"""Changes under traffic: at their time, all at once, and however many."""

from __future__ import annotations

import re

import pytest

from tests.datapath.client import RefusedError
from tests.pktd.conftest import Setting
from tests.pktd.harness import World, link, pair

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

NOISE = """
import random, socket, sys
random = random.Random(5)
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
ethernet = bytes.fromhex("025453000001025453000001")
for number in range(3000):
    kind = random.choice([b"\\x08\\x00", b"\\x86\\xdd", b"\\x08\\x06", random.randbytes(2)])
    body = bytearray(random.randbytes(random.randrange(1, 1400)))
    if number % 2:
        body[0] = 0x45 if kind == b"\\x08\\x00" else 0x60
    try:
        raw.send(ethernet + kind + body)
    except OSError:
        pass  # some of it the kernel refuses itself
"""


def test_a_commit_takes_effect_at_its_time(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind)
    engine("set 0 up=0")
    engine("route 1 - 0")
    at = int(engine("clock")) + 700_000_000
    number = int(engine(f"commit {at}"))
    assert "2 received" in world.run(a, "ping", "-c", "2", "-i", "0.05", "10.77.0.2")
    assert engine.event()[:2] == [number, at]
    assert int(engine("clock")) >= at
    out = world.run(a, "ping", "-c", "2", "-i", "0.05", "-W", "1", "10.77.0.2", check=False)
    assert "0 received" in out
    assert engine.rows("stats links")[0] == [0, 4, 336, 2, 168, 0, 0, 2, 0, 0, 0]


def test_applied_is_never_before_its_time(world: World) -> None:
    engine = world.pktd()
    engine("node 0")
    now = int(engine("clock"))
    times = [now + 20_000_000 * k for k in (3, 1, 2)]
    numbers = [int(engine(f"commit {t}")) for t in times]
    events = [engine.event() for _ in times]
    assert [e[0] for e in events] == [numbers[1], numbers[2], numbers[0]]
    assert all(applied >= at for _, at, applied in events)


def test_a_delay_change_is_seen(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
    engine("set 0 delay=30000000")
    engine("set 3 delay=10000000")
    engine.commit()
    out = world.run(a, "ping", "-c", "3", "-i", "0.1", "10.77.0.2")
    times = [float(t) for t in re.findall(r"time=([\d.]+) ms", out)]
    assert min(times) > 41.9


def test_abort_forgets(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind)
    engine("set 0 up=0")
    engine("abort")
    engine.commit()
    assert "1 received" in world.run(a, "ping", "-c", "1", "10.77.0.2")


def test_ten_thousand_route_changes_between_two_packets(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind)
    for node in range(3, 1003):
        engine.send(f"node {node} ip=10.78.{node >> 8}.{node & 255}")
    for _ in range(1000):
        assert engine.answer() == "ok"
    engine.commit()
    # Commands are pipelined far beyond what pipes hold, and answered in order.
    # Link 3 begins at another node.
    links = [1 + k % 3 for k in range(9000)]
    for start in range(0, len(links), 3000):
        part = links[start : start + 3000]
        for k, number in enumerate(part, start):
            engine.send(f"route 2 {number} {3 + k % 1000}")
        for number in part:
            answer = engine.answer()
            assert answer.startswith("err conflict") if number == 3 else answer == "ok"
    engine("abort")
    for k in range(10):
        engine(f"routes 2 {1 if k % 2 else '-'} 3-1002")
    number, _, _ = engine.commit()
    assert number == 3
    assert "1 received" in world.run(a, "ping", "-c", "1", "10.77.0.2")


def test_garbage_from_a_namespace_does_no_harm(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind, rate=10_000_000, loss=1_000_000)
    world.run(a, "python3", "-c", NOISE)
    assert engine.process.poll() is None
    counters = engine.engine()
    assert counters["drop_unknown"] > 500
    assert counters["drop_malformed"] > 500
    assert re.search(r"[1-5] received", world.run(a, "ping", "-c", "5", "-i", "0.1", "10.77.0.2"))
    assert engine.close() == 0


def test_refusals_carry_their_reason(world: World) -> None:
    engine = world.pktd()
    with pytest.raises(RefusedError, match="unknown link 0 is not declared"):
        engine("set 0 up=1")
    with pytest.raises(RefusedError, match="syntax usage: link LINK SRC DST"):
        engine("link 0 0 1 rate=5")
    with pytest.raises(RefusedError, match="syntax the line is longer than 65536 bytes"):
        engine("route 0 0 " + "1 " * 40_000)
    engine("node 0")
    engine("node 1")
    assert engine(link(0, 0, 1)) == ""
    assert int(engine("clock")) > 0


def test_hello_tells_what_is_in_force(world: World, setting: Setting) -> None:
    engine = world.pktd("--no-fifo", "--no-bpf", "--no-lock")
    words = world.hello.split()
    assert words[:2] == ["pktd", "1"]
    values = dict(word.split("=") for word in words[2:])
    assert values["sched"] == "other"
    assert values["stamp"] == "read"
    assert values["lock"] == "0"
    a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
    assert "2 received" in world.run(a, "ping", "-c", "2", "-i", "0.1", "10.77.0.2")
