"""`--engine-threads`: any number of threads moves the same packets (docs/pktd.md, Threads)."""

from __future__ import annotations

import subprocess

import pytest

from tests.datapath.client import Client
from tests.pktd.conftest import Setting
from tests.pktd.harness import PKTD, World, pair
from tests.pktd.test_traffic import ADDRESSES, transfer
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

# Packets that are the same in every run: no number that the kernel would choose.
SCATTER = """
import socket, struct, sys, time
source = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
ends = socket.inet_aton("10.77.0.1") + socket.inet_aton(sys.argv[1])
for number in range(int(sys.argv[2])):
    data = b"%06d" % number + bytes(number % 900)
    udp = struct.pack("!HHHH", 7002, 7001, 8 + len(data), 0) + data
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number % 65535 + 1, 0x4000, 64, 17, 0)
    source.sendto(ip + ends + udp, (sys.argv[1], 0))
    if number % 50 == 49:
        time.sleep(0.002)
"""

COUNT = """
import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
sink.bind(("", 7001))
print("up", flush=True)
seen = []
while (data := sink.recv(65536)) != b"end":
    seen.append(data[:6].decode())
print(" ".join(seen), flush=True)
"""

END = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"end", (sys.argv[1], 7001))
"""

SENT = 600


def _engine(world: World, threads: int) -> Client:
    engine = world.pktd(f"--engine-threads={threads}", "--always-threads", "--digests")
    assert f" threads={threads}" in world.hello
    return engine


def _outcome(world: World, setting: Setting, threads: int) -> tuple[list[str], list[str]]:
    """Which packets arrived, and the digest of the link that lost the others."""
    engine = _engine(world, threads)
    a, b = pair(world, engine, kind=setting.kind)
    engine("link 9 0 2 rate=0 delay=0 jitter=0 loss=100000000 queue=0 dist=normal seed=7 up=1")
    engine("route 0 9 1")
    engine.commit()
    sink = world.listen(b, COUNT)
    world.run(a, "python3", "-c", SCATTER, ADDRESSES[4], str(SENT))
    wait_until(
        lambda: any(row[0] == 9 and row[1] == SENT for row in engine.rows("stats links")),
        "pktd has read what was sent",
    )
    found = [line for line in engine.body("digests") if line.startswith("9 ")]
    engine("set 9 loss=0")
    engine.commit()
    world.run(a, "python3", "-c", END, ADDRESSES[4])
    assert sink.stdout is not None
    got = sink.stdout.readline().decode().split()
    counters = engine.engine()
    assert counters["drop_input"] == counters["drop_write"] == counters["drop_nobuf"] == 0
    assert (counters["handed_frames"] > SENT) == (threads > 1)
    assert engine.close() == 0
    return got, found


@pytest.mark.ordinary
def test_one_to_four_threads_lose_and_carry_the_same_packets(
    world: World, setting: Setting
) -> None:
    alone = _outcome(world, setting, 1)
    assert 400 < len(alone[0]) < SENT - 20 and alone[0] == sorted(alone[0])
    assert len(alone[1]) == 1
    for threads in (2, 3, 4):
        assert _outcome(world, setting, threads) == alone


@pytest.mark.parametrize("threads", [2, 4])
def test_tcp_arrives_whole_by_several_threads(world: World, setting: Setting, threads: int) -> None:
    engine = _engine(world, threads)
    pids = pair(world, engine, kind=setting.kind, delay=1_000_000)
    transfer(world, engine, pids, 4, 30_000_000)
    pairs = {(row[0], row[1]): row[2:] for row in engine.rows("stats pairs")}
    offered, _, delivered, _, queue, loss, down, route = pairs[0, 1]
    assert 0 <= offered - delivered - queue - loss - down - route < 50


def test_a_port_closes_and_opens_while_threads_have_it(world: World, setting: Setting) -> None:
    engine = _engine(world, 3)
    a, _ = pair(world, engine, kind=setting.kind)
    flood = world.spawn(a, "python3", "-c", SCATTER, ADDRESSES[4], "100000")
    for _ in range(5):
        engine("close 1")
        pid = world.namespace()
        world.port(engine, 1, pid, kind=setting.kind)
        engine("bind 1 1")
        engine.commit()
    flood.kill()
    world.run(a, "ping", "-c", "2", "-i", "0.1", ADDRESSES[4])
    assert engine.close() == 0


def test_the_number_of_threads_is_checked() -> None:
    for text in ("0", "17", "many"):
        done = subprocess.run(
            [PKTD, f"--engine-threads={text}"], check=False, capture_output=True, timeout=60
        )
        assert done.returncode == 2, text
