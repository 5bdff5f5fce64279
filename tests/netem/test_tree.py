"""What tcald builds, read back from the kernel by others; and what is there after a failure."""

from __future__ import annotations

import pytest

from tests.netem.support import MS, Instances, Network, address, attach, network
from tests.netem.tree import Tree
from tests.pktd.pods import path

pytestmark = pytest.mark.netem

FULL_BYTES = 1518  # of a packet with whatever a queue may count beside layer 3
VALUES = (
    {"rate": 10_000, "delay": 0, "jitter": 0, "loss": 0, "queue": 3000},
    {"rate": 1_000_000, "delay": 10 * MS, "jitter": 2 * MS, "loss": 10_000_000, "queue": 50_000},
    {"rate": 100_000_000, "delay": 200 * MS, "jitter": 0, "loss": 1, "queue": 1_000_000},
    {"rate": 40_000_000_000, "delay": 1 * MS, "jitter": 0, "loss": 0, "queue": 1 << 24},
    {"rate": 1_000_000, "delay": 10_000 * MS, "jitter": 500 * MS, "loss": 0, "queue": 1500},
)


def check(net: Network, values: dict[str, int]) -> None:
    """The tree has the path's figures for both of the destination's addresses."""
    tree = Tree(net.spaces[0])
    for six in (False, True):
        found = tree.of(address(1, six=six))
        assert found is not None
        assert found.rate_bps == found.ceil_bps == values["rate"]
        assert found.delay_s == pytest.approx(values["delay"] / 1e9, abs=2e-7)
        assert found.jitter_s == pytest.approx(values["jitter"] / 1e9, abs=2e-7)
        assert found.loss == pytest.approx(values["loss"] / 1e9, abs=1e-9)
        if values["queue"] >= FULL_BYTES:
            assert found.queue_bytes == values["queue"]
        else:
            assert 1500 <= found.queue_bytes <= FULL_BYTES  # one packet always fits
        # A millisecond of the rate or a full packet.
        assert found.burst_bytes >= min(1500, values["rate"] // 8000)
        flying = values["rate"] * values["delay"] // 8_000_000_000
        assert found.limit_packets >= min((flying + values["queue"]) // 1500, 1 << 20)


def test_the_tree_is_what_was_asked_for_after_each_change(net: Network) -> None:
    """Each after each: what the one before had more must not stay."""
    for values in (*VALUES, *reversed(VALUES)):
        net.set(0, 1, **values)
        check(net, values)


def test_an_unlimited_path_has_no_queue_that_drops(net: Network) -> None:
    net.set(0, 1, rate=0, queue=1000)
    found = Tree(net.spaces[0]).of(address(1))
    assert found is not None
    assert found.rate_bps > 1_000_000_000_000
    assert found.queue_bytes > 1 << 30


def test_a_thousand_destinations_of_both_families_are_told_apart(world: Instances) -> None:
    """Odd ones lose everything, even ones nothing; no bucket of the hash is crowded."""
    count = 1000
    spaces = world.spaces(2)
    engine = world.tcald()
    attach(engine, 0, spaces[0])
    hosts = [
        (f"10.77.{16 + n // 200}.{n % 200 + 1}", f"fd77:7473::{n + 0x1000:x}") for n in range(count)
    ]
    for number, (four, six) in enumerate(hosts):
        engine(f"node {number + 1} ip={four} ip6={six}")
        engine(path(0, number + 1, rate=1_000_000_000, loss=number % 2 * 1_000_000_000))
    engine.commit()
    tree = Tree(spaces[0])
    assert tree.fullest_bucket() <= 2
    assert tree.kinds()["netem"] == tree.kinds()["bfifo"] == count
    sample = [0, 1, 2, 199, 200, 201, 255, 256, 511, 512, 513, 800, 997, 998, 999]
    spaces[1].ip(
        [
            f"addr add {one}/{bits} dev eth0{' nodad' if bits == 128 else ''}"
            for number in sample
            for one, bits in zip(hosts[number], (32, 128), strict=True)
        ]
    )
    for family in (0, 1):
        ear = world.ear(spaces[1], six=family == 1)
        for number in sample:
            world.mouth(spaces[0], hosts[number][family]).say(3)
            arrived = len(ear.take(3, quiet_s=0.2 if number % 2 else 5))
            assert arrived == (0 if number % 2 else 3), hosts[number]
        ear.close()
    moved = {row[1]: row[2:] for row in engine.rows("usage all")}
    for number in sample:
        sent, _, _, lost, _ = moved[number + 1]
        assert (sent, lost) == ((0, 6) if number % 2 else (6, 0))


def commit(net: Network) -> list[str]:
    """Commits now; the words of the event, applied or failed."""
    net.engine("commit 0")
    line = net.engine.events.pop(0) if net.engine.events else net.engine.line()
    return line.split(" ", 5)


def test_a_batch_that_the_kernel_refuses_leaves_what_was(world: Instances) -> None:
    """Somebody took the qdiscs of port 2: a change of all fails, ports 0 and 1 are as before."""
    net = network(world, 3, rate=1_000_000, delay=10 * MS, queue=20_000)
    before = [Tree(space).of(address((n + 1) % 3)) for n, space in enumerate(net.spaces)]
    net.spaces[2].run("tc", "qdisc", "del", "dev", "eth0", "root")
    for source in range(3):
        net.engine(f"path {source} {(source + 1) % 3} rate=2000000 delay={30 * MS}")
    words = commit(net)
    assert words[:2] == ["!", "failed"], words
    assert len(words[5]) > 20
    for n in (0, 1):
        assert Tree(net.spaces[n]).of(address((n + 1) % 3)) == before[n]
    # The others go on.
    net.engine(f"path 0 1 delay={50 * MS}")
    assert commit(net)[1] == "applied"
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(3)
    assert min(one.delay_ns for one in ear.take(3)) >= 50 * MS - 10_000


def test_an_interface_that_is_gone_is_nobodys_trouble_but_its_own(world: Instances) -> None:
    net = network(world, 3)
    net.spaces[2].ip(["link del eth0"])
    net.engine(f"path 0 1 delay={40 * MS}")
    assert commit(net)[1] == "applied"
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(3)
    assert min(one.delay_ns for one in ear.take(3)) >= 40 * MS - 10_000
    net.engine("detach 2")
    assert len(net.usage(0, 1)) == 5
