"""Real kernels' traffic through pktd: nothing is changed, lost or counted but what should be."""

from __future__ import annotations

import re
import time

import pytest

from tests.datapath.client import Client
from tests.intime import in_time
from tests.pktd.conftest import Setting
from tests.pktd.harness import World, have, link, pair
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

ADDRESSES = {4: "10.77.0.2", 6: "fd77:7473::2"}

SERVER = """
import hashlib, socket, sys
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
server = socket.create_server(("", 7000), family=family)
print("up", flush=True)
peer, _ = server.accept()
digest, size = hashlib.sha256(), 0
while data := peer.recv(1 << 20):
    digest.update(data)
    size += len(data)
print(size, digest.hexdigest(), flush=True)
"""

CLIENT = """
import hashlib, random, socket, sys
data = random.Random(1).randbytes(int(sys.argv[2]))
with socket.create_connection((sys.argv[1], 7000)) as peer:
    peer.sendall(data)
print(len(data), hashlib.sha256(data).hexdigest())
"""

COLLECT = """
import socket, sys
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
sink = socket.socket(family, socket.SOCK_DGRAM)
sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
sink.bind(("", 7001))
print("up", flush=True)
seen = []
while (data := sink.recv(65536)) != b"end":
    seen.append(data[:4].decode() + ":" + str(len(data)))
print(" ".join(seen), flush=True)
"""

SCATTER = """
import socket, sys, time
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
source.connect((sys.argv[1], 7001))
for number in range(int(sys.argv[2])):
    source.send(b"%04d" % number + bytes(60))
    if number % 50 == 49:
        time.sleep(0.005)
"""

SEGMENTED = """
import socket, sys
source = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
source.setsockopt(socket.IPPROTO_UDP, 103, 1000)  # UDP_SEGMENT
source.connect((sys.argv[1], 7001))
source.send(b"".join(b"%04d" % i + bytes(996) for i in range(20)) + b"last" + bytes(96))
"""

# Says how long the fastest took of datagrams that hold when they were sent.
FASTEST = """
import socket, struct, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("", 7001))
print("up", flush=True)
fastest = float("inf")
while (data := sink.recv(100)) != b"end":
    now = time.monotonic_ns()
    fastest = min(fastest, now - struct.unpack("q", data)[0])
print(fastest, flush=True)
"""

# One such datagram to the first address each two milliseconds, and between them all that a loop
# can send to the second.
STAMPED_AND_MANY = """
import socket, struct, sys, time
sink, nowhere = [(address, 7001) for address in sys.argv[1:]]
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
next_ns = time.monotonic_ns()
for _ in range(500):
    while time.monotonic_ns() < next_ns:
        source.sendto(b"", nowhere)
    source.sendto(struct.pack("q", time.monotonic_ns()), sink)
    next_ns += 2_000_000
source.sendto(b"end", sink)
"""

END = """
import socket, sys
source = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
source.connect((sys.argv[1], 7001))
source.send(b"end")
"""


@pytest.mark.ordinary
@pytest.mark.parametrize("version", [4, 6])
def test_ping(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind, delay=3_000_000)
    out = world.run(a, "ping", f"-{version}", "-c", "5", "-i", "0.05", ADDRESSES[version])
    assert "5 packets transmitted, 5 received, 0% packet loss" in out
    times = [float(t) for t in re.findall(r"time=([\d.]+) ms", out)]
    assert len(times) == 5
    # Written ahead by what a write takes, so that it arrives on time: a little less is legal.
    assert min(times) > 11.9
    size = 84 if version == 4 else 104
    assert engine.rows("stats links") == [
        [n, 5, 5 * size, 5, 5 * size, 0, 0, 0, 0, 0, 0] for n in range(4)
    ]
    pairs: dict[tuple[int, int], list[int]] = {}

    def are_told() -> bool:
        # What is just being written counts when the write is over; ping may have it before.
        pairs.update({(row[0], row[1]): row[2:] for row in engine.rows("stats pairs")})
        return all(row[2] == 5 for row in pairs.values())

    wait_until(are_told, "the last packet is counted")
    whole = [5, 5 * size, 5, 5 * size, 0, 0, 0, 0]
    assert pairs == {(0, 1): whole, (1, 0): whole}
    assert engine.rows("stats links") == []
    assert engine.engine()["in_flight"] == 0


def test_in_virtual_time_nothing_is_early_or_spun_for(world: World, setting: Setting) -> None:
    """Where time goes on, too: it is only less exact there."""
    engine = world.pktd("--virtual-time")
    pids = pair(world, engine, kind=setting.kind, delay=3_000_000)
    out = world.run(pids[0], "ping", "-c", "5", "-i", "0.05", ADDRESSES[4])
    times = [float(t) for t in re.findall(r"time=([\d.]+) ms", out)]
    assert len(times) == 5
    assert min(times) >= 12
    assert engine.engine()["in_flight"] == 0
    transfer(world, engine, pids, 4, 3_000_000)
    assert engine.engine()["spin_ns"] == 0


def test_a_timer_that_ends_while_packets_come_makes_nothing_early(
    world: World, setting: Setting
) -> None:
    engine = world.pktd("--virtual-time", "--no-bpf")
    a, b = pair(world, engine, kind=setting.kind, delay=10_000_000)
    engine("node 3 ip=10.77.0.9")
    engine(link(4, 0, 3, up=0))
    engine("route 0 4 3")
    engine.commit()
    server = world.listen(b, FASTEST)
    world.run(a, "python3", "-c", STAMPED_AND_MANY, ADDRESSES[4], "10.77.0.9")
    assert server.stdout is not None
    assert int(server.stdout.readline()) >= 20_000_000


def transfer(world: World, engine: Client, pids: tuple[int, int], version: int, size: int) -> float:
    a, b = pids
    server = world.listen(b, SERVER, str(version))
    begin = time.monotonic()
    sent = world.run(a, "python3", "-c", CLIENT, ADDRESSES[version], str(size))
    assert server.stdout is not None
    assert server.stdout.readline().decode() == sent
    assert engine.engine()["drop_malformed"] == 0
    return time.monotonic() - begin


@pytest.mark.parametrize("version", [4, 6])
def test_tcp_arrives_whole_without_limits(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    pids = pair(world, engine, kind=setting.kind, delay=1_000_000)
    transfer(world, engine, pids, version, 30_000_000)
    counters = engine.engine()
    # Whole super-packets went through: far fewer frames than segments.
    assert counters["rx_frames"] < counters["rx"] / 2
    assert counters["tx_frames"] < counters["tx"] / 2


@pytest.mark.ordinary
@pytest.mark.parametrize("version", [4, 6])
def test_tcp_arrives_whole_when_split_dropped_and_lost(
    world: World, setting: Setting, version: int
) -> None:
    engine = world.pktd()
    rate = 100_000_000
    pids = pair(
        world, engine, kind=setting.kind, rate=rate, queue=60_000, delay=500_000, loss=1_000_000
    )
    took = transfer(world, engine, pids, version, 5_000_000)
    assert took > 5_000_000 * 8 / rate
    links = {row[0]: row for row in engine.rows("stats links")}
    assert links[0][6] > 0, "segments were lost by the draw"
    # Nothing is lost track of: what was offered left, was dropped, or still waits.
    pairs = {(row[0], row[1]): row[2:] for row in engine.rows("stats pairs")}
    offered, _, delivered, _, queue, loss, down, route = pairs[0, 1]
    assert 0 <= offered - delivered - queue - loss - down - route < 50


def _received(world: World, setting: Setting, seed: int) -> list[str]:
    engine = world.pktd()
    a, b = pair(world, engine, kind=setting.kind)
    # A fixed seed and a fresh counter: only datagrams pass link 0 here.
    engine(
        f"link 9 0 2 rate=0 delay=0 jitter=0 loss=100000000 queue=0 dist=normal seed={seed} up=1"
    )
    engine("route 0 9 1")
    engine.commit()
    sink = world.listen(b, COLLECT, "4")
    world.run(a, "python3", "-c", SCATTER, ADDRESSES[4], "500")
    engine("set 9 loss=0")
    engine.commit()
    world.run(a, "python3", "-c", END, ADDRESSES[4])
    assert sink.stdout is not None
    got = sink.stdout.readline().decode().split()
    row = next(row for row in engine.rows("stats links") if row[0] == 9)
    assert row[1] == 501
    assert row[6] == 500 - len(got)
    assert engine.close() == 0
    return got


def test_the_same_packets_are_lost(world: World, setting: Setting) -> None:
    first = _received(world, setting, 7)
    assert 400 < len(first) < 490
    assert _received(world, setting, 7) == first
    assert _received(world, setting, 8) != first


@pytest.mark.ordinary
@pytest.mark.parametrize("version", [4, 6])
def test_udp_segmentation_offload(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    a, b = pair(world, engine, kind=setting.kind, rate=50_000_000, delay=1_000_000)
    sink = world.listen(b, COLLECT, str(version))
    world.run(a, "python3", "-c", SEGMENTED, ADDRESSES[version])
    world.run(a, "python3", "-c", END, ADDRESSES[version])
    assert sink.stdout is not None
    got = sink.stdout.readline().decode().split()
    assert got == [f"{i:04d}:1000" for i in range(20)] + ["last:100"]


@pytest.mark.ordinary
def test_large_mtu(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind, mtu=9000, delay=100_000)
    out = world.run(a, "ping", "-c", "2", "-i", "0.1", "-s", "8900", "-M", "do", ADDRESSES[4])
    assert "2 received, 0% packet loss" in out


@pytest.mark.ordinary
@pytest.mark.skipif(not have("iperf3"), reason="iperf3 is not installed")
def test_iperf3(world: World, setting: Setting) -> None:
    """The rate is an upper bound that TCP comes near; how near is the benchmark's matter."""
    in_time(lambda _: _measure_iperf3(world, setting))


def _measure_iperf3(world: World, setting: Setting) -> None:
    engine = world.pktd()
    rate = 50_000_000
    a, b = pair(world, engine, kind=setting.kind, rate=rate, delay=2_000_000, queue=312_500)
    server = world.spawn(b, "iperf3", "-s", "-1", "--forceflush")
    assert server.stdout is not None
    while b"listening" not in (line := server.stdout.readline()):
        assert line
    world.run(a, "iperf3", "-c", ADDRESSES[4], "-t", "2")
    row = next(row for row in engine.rows("stats links") if row[0] == 0)
    assert rate / 8 < row[4] < 2.5 * rate / 8
