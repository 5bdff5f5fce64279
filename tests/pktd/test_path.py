"""Path mode with real kernels' traffic: what is shaped, what is left alone, what is counted."""

from __future__ import annotations

import re

import pytest

from tests.datapath.client import Client, RefusedError
from tests.intime import in_time
from tests.pktd.conftest import Setting
from tests.pktd.flood import flood
from tests.pktd.harness import World, have
from tests.pktd.pods import attach, change, path, pods, two_pods
from tests.pktd.test_traffic import ADDRESSES, CLIENT, COLLECT, END, SEGMENTED, SERVER
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

BRIDGE = "10.77.255.254"

SENDS_TO_GROUPS = """
import socket
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
source.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
source.sendto(b"x", ("10.77.255.255", 9))
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.sendto(b"x", ("ff02::1", 9, 0, socket.if_nametoindex("eth0")))
"""


def _ping(world: World, pid: int, address: str, *options: str) -> list[float]:
    """The round trips of 5 pings, in ms."""
    command = ["ping", "-c", "5", "-i", "0.05", "-W", "2", *options, address]
    out = world.run(pid, *command, check=False)
    return [float(t) for t in re.findall(r"time=([\d.]+) ms", out)]


@pytest.mark.parametrize("version", [4, 6])
def test_ping(world: World, setting: Setting, version: int) -> None:
    """A kernel looks for a neighbour for three seconds: what gets no processor so long is lost."""
    in_time(lambda _: _measure_ping(world, setting, version))


def _measure_ping(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind, delay=3_000_000)
    engine(change(1, 0, delay=2_000_000))
    engine.commit()
    times = _ping(world, a, ADDRESSES[version])
    assert len(times) == 5
    assert min(times) > 4.9
    size = 84 if version == 4 else 104
    assert engine.rows("usage") == [[0, 1, 5, 5 * size, 0, 0, 0], [1, 0, 5, 5 * size, 0, 0, 0]]
    assert engine.rows("usage") == []
    assert len(engine.rows("usage all")) == 2
    # A packet is counted when it is written, and may be read before.
    delivered = [
        [0, 1, 5, 5 * size, 5, 5 * size, 0, 0, 0, 0],
        [1, 0, 5, 5 * size, 5, 5 * size, 0, 0, 0, 0],
    ]
    wait_until(lambda: engine.rows("stats pairs") == delivered, "counters of both directions")
    assert engine.rows("stats links") == []
    counters = engine.engine()
    assert counters["in_flight"] == counters["drop_unknown"] == counters["drop_write"] == 0


def test_what_found_no_room_is_counted(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind)
    flood(world, engine, a)
    lost = engine.engine()["drop_input"]
    assert lost > 0 or setting.kind == "packet", "a packet socket of root's has more room"
    engine("detach 0")
    assert engine.engine()["drop_input"] == lost


def test_hello_and_attach_tell_what_is_in_force(world: World, setting: Setting) -> None:
    engine = world.pktd("--cpu-share", "4")
    assert " paths=1 digests=off threads=1 " in world.hello
    a, _ = pods(world, 1)
    answer = attach(engine, 3, a, kind=setting.kind)
    values = dict(word.split("=") for word in answer.split())
    assert values["kind"] == setting.kind
    assert values["stamp"] in ("bpf", "read", "socket")
    address = re.search(r"link/ether (\S+)", world.run(a, "ip", "-o", "link", "show", "eth0"))
    assert address is not None
    assert values["mac"] == address[1]
    assert engine("ports") == "1"
    port, node, name, inode, kind = engine.line().split()
    assert (port, node, name, kind) == ("3", "-", "eth0", setting.kind)
    assert inode in world.run(a, "readlink", "/proc/self/ns/net")


def test_what_is_not_of_the_experiment_is_left_alone(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, bridge = two_pods(world, engine, kind=setting.kind, up=0)
    for pid in (a, b):
        number = "1" if pid == a else "2"
        world.run(pid, "ip", "addr", "add", f"192.168.9.{number}/24", "dev", "eth0")
    assert len(_ping(world, a, "192.168.9.2")) == 5, "an address outside the prefixes"
    assert engine.engine()["rx"] == 0
    assert len(_ping(world, a, BRIDGE)) == 5, "an address inside that no node has"
    assert engine.engine()["passed"] == 5
    assert _ping(world, a, "10.77.0.2") == []
    assert _ping(world, a, "fd77:7473::2") == []
    # Neighbour discovery answered although no path is up: the address was found.
    assert "lladdr" in world.run(a, "ip", "-6", "neigh", "show", "fd77:7473::2")
    assert [row[8] for row in engine.rows("stats pairs")] == [10], "b was never asked"
    world.run(a, "python3", "-c", SENDS_TO_GROUPS)
    counters = engine.engine()
    assert counters["rx"] == 15
    assert counters["drop_unknown"] == 0
    assert len(_ping(world, bridge, "10.77.0.1")) == 5
    assert engine.engine()["passed"] == 10


def _transfer(world: World, engine: Client, a: int, b: int, version: int, size: int) -> None:
    server = world.listen(b, SERVER, str(version))
    sent = world.run(a, "python3", "-c", CLIENT, ADDRESSES[version], str(size))
    assert server.stdout is not None
    assert server.stdout.readline().decode() == sent
    assert engine.engine()["drop_malformed"] == 0


@pytest.mark.parametrize("version", [4, 6])
def test_super_packets_survive(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    a, b, _ = two_pods(world, engine, kind=setting.kind, delay=1_000_000)
    _transfer(world, engine, a, b, version, 30_000_000)
    counters = engine.engine()
    assert counters["rx_frames"] < counters["rx"] / 2
    assert counters["tx_frames"] < counters["tx"] / 2
    assert counters["drop_write"] == 0


@pytest.mark.parametrize("version", [4, 6])
def test_tcp_arrives_whole_when_split_dropped_and_lost(
    world: World, setting: Setting, version: int
) -> None:
    engine = world.pktd()
    properties = {"rate": 100_000_000, "queue": 60_000, "delay": 500_000, "loss": 1_000_000}
    a, b, _ = two_pods(world, engine, kind=setting.kind, **properties)
    _transfer(world, engine, a, b, version, 5_000_000)

    def usage() -> tuple[int, ...]:
        rows = {(row[0], row[1]): tuple(row[2:]) for row in engine.rows("usage all")}
        return rows[0, 1]

    # Packets are counted by rounds: the last round's have arrived before they are.
    wait_until(lambda: usage()[0] > 5_000_000 / 1448, lambda: f"all packets: {usage()}")
    _, size, _, lost, backlog = usage()
    assert size > 5_000_000
    assert lost > 0
    assert backlog <= 60_000
    pairs = {(row[0], row[1]): row[2:] for row in engine.rows("stats pairs")}
    offered, _, delivered, _, queue, loss, down, route = pairs[0, 1]
    assert 0 <= offered - delivered - queue - loss - down - route < 50


@pytest.mark.parametrize("version", [4, 6])
def test_udp_segmentation_offload(world: World, setting: Setting, version: int) -> None:
    engine = world.pktd()
    a, b, _ = two_pods(world, engine, kind=setting.kind, rate=50_000_000, delay=1_000_000)
    sink = world.listen(b, COLLECT, str(version))
    world.run(a, "python3", "-c", SEGMENTED, ADDRESSES[version])
    world.run(a, "python3", "-c", END, ADDRESSES[version])
    assert sink.stdout is not None
    got = sink.stdout.readline().decode().split()
    assert got == [f"{i:04d}:1000" for i in range(20)] + ["last:100"]


def test_two_hosts_with_a_pktd_each(world: World, setting: Setting) -> None:
    """Each shapes what its own pods send; of the others it knows the addresses only."""
    pids = pods(world, 4)[:4]
    engines = [world.pktd("--cpu-share", "2") for _ in range(2)]
    for host, engine in enumerate(engines):
        mine = [node for node in range(4) if node % 2 == host]
        for node in range(4):
            engine(f"node {node} ip=10.77.0.{node + 1}")
        for node in mine:
            attach(engine, node, pids[node], kind=setting.kind)
            engine(f"bind {node} {node}")
            for other in set(range(4)) - {node}:
                engine(path(node, other, delay=1_000_000 * (node + 1)))
        engine.commit()
    for a, b in [(0, 1), (2, 0), (3, 1)]:
        times = _ping(world, pids[a], f"10.77.0.{b + 1}")
        assert len(times) == 5
        assert min(times) > a + b + 2 - 0.1
    assert [row[:2] for row in engines[0].rows("usage all")] == [[0, 1], [0, 2], [2, 0]]
    assert [row[:2] for row in engines[1].rows("usage all")] == [[1, 0], [1, 3], [3, 1]]


def test_a_lease_closes_the_paths_until_somebody_speaks(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind)
    assert len(_ping(world, a, "10.77.0.2")) == 5
    engine("lease 200000000")
    assert engine.line() == "! lease expired"
    assert _ping(world, a, "10.77.0.2") == []
    assert len(_ping(world, a, BRIDGE)) == 5
    engine.send("lease 0")
    assert engine.line() == "! lease renewed"
    assert engine.line() == "ok"
    assert len(_ping(world, a, "10.77.0.2")) == 5


def test_a_client_takes_over(world: World, setting: Setting) -> None:
    """Half a commit of the old client is not taken for a whole one; what it staged is forgotten."""
    engine = world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind)
    engine(change(0, 1, up=0))
    assert engine.process.stdin is not None
    engine.process.stdin.write(b"clock\nusage all\ncommit 1")
    engine.process.stdin.write(b"\x18\nsync again2\n")
    engine.process.stdin.flush()
    discarded = []
    while (line := engine.line()) != "ok sync again2":
        discarded.append(line)
    assert discarded[-1].startswith("err syntax")
    assert " paths=1 digests=off threads=1 " in engine("hello 1")
    assert engine("ports") == "2"
    assert [engine.line().split()[:2] for _ in range(2)] == [["0", "0"], ["1", "1"]]
    engine.commit()
    assert len(_ping(world, a, "10.77.0.2")) == 5


def test_links_and_paths_do_not_mix(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pods(world, 1)
    attach(engine, 0, a, kind=setting.kind)
    with pytest.raises(RefusedError, match="conflict 'open' after 'attach' or 'path'"):
        engine(f"open 1 netns=/proc/{a}/ns/net if=eth1")
    engine("detach 0")
    with pytest.raises(RefusedError, match="conflict"):
        engine(f"open 1 netns=/proc/{a}/ns/net if=eth1")


@pytest.mark.skipif(not have("iperf3"), reason="iperf3 is not installed")
def test_iperf3(world: World, setting: Setting) -> None:
    in_time(lambda _: _measure_iperf3(world, setting))


def _measure_iperf3(world: World, setting: Setting) -> None:
    engine = world.pktd()
    rate = 50_000_000
    a, b, _ = two_pods(world, engine, kind=setting.kind, rate=rate, delay=2_000_000, queue=312_500)
    server = world.spawn(b, "iperf3", "-s", "-1", "--forceflush")
    assert server.stdout is not None
    while b"listening" not in (line := server.stdout.readline()):
        assert line
    world.run(a, "iperf3", "-c", ADDRESSES[4], "-t", "2")
    sent = next(row[3] for row in engine.rows("usage all") if row[:2] == [0, 1])
    assert rate / 8 < sent < 2.5 * rate / 8
