"""What packets see of a path that tcald made: rate, delay, jitter, loss, and who is left alone.

Tolerances are wide where a user-mode kernel's timers and a busy machine decide (some milliseconds),
and narrow where they do not: what is counted, and what is ordered.
"""

from __future__ import annotations

import statistics

import pytest

from tests.netem.support import MS, Instances, address, attach, network, start
from tests.pktd.pods import path, pods

pytestmark = pytest.mark.netem

LATE_MS = 15.0  # how late a packet may be here without it being anybody's fault


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("size", [200, 1500])
def test_a_rate_counts_ip_bytes(world: Instances, size: int, six: bool) -> None:
    """Would the Ethernet header count, small packets were 7 % slower than the rate says."""
    net = network(world, rate=4_000_000, queue=2_000_000)
    ear, mouth = net.ear(1, six=six), net.mouth(0, 1, six=six)
    count = 500_000 // size
    mouth.say(count, size=size)
    found = ear.take(count)
    assert [one.number for one in found] == list(range(count))
    # Without the first tenth, which the burst lets through.
    first = found[count // 10]
    seconds = (found[-1].at_ns - first.at_ns) / 1e9
    measured = (count - 1 - first.number) * size * 8 / seconds
    assert measured == pytest.approx(4_000_000, rel=0.03)
    assert net.usage(0, 1) == {
        "sent_pkts": count,
        "sent_bytes": count * size,
        "drop_queue": 0,
        "drop_loss": 0,
        "backlog_bytes": 0,
    }


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
def test_a_delay_is_that_of_the_direction(world: Instances, six: bool) -> None:
    net = network(world, delay=30 * MS)
    net.set(1, 0, delay=80 * MS)
    for source, dest, delay_ms in ((0, 1, 30), (1, 0, 80)):
        ear, mouth = net.ear(dest, six=six), net.mouth(source, dest, six=six)
        mouth.say(40, every_s=0.01)
        delays = [one.delay_ns / MS for one in ear.take(40)]
        assert len(delays) == 40
        assert min(delays) >= delay_ms - 0.01
        assert statistics.median(delays) < delay_ms + LATE_MS


@pytest.mark.parametrize(
    ("dist", "low", "high", "skewed"),
    [
        ("normal", -3.8, 3.8, False),
        ("uniform", -1, 1, False),
        ("pareto", -0.6, 22, True),
        ("paretonormal", -1.6, 17, True),
    ],
)
def test_jitter_has_its_distribution_and_keeps_order(
    world: Instances, dist: str, low: float, high: float, skewed: bool
) -> None:
    """Packets so far apart that keeping their order does not bind; then so close that it does."""
    delay_ms, jitter_ms, count = 120, 30, 60
    net = network(world, delay=delay_ms * MS, jitter=jitter_ms * MS, dist=dist)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(count, every_s=0.05)
    found = ear.take(count)
    assert sorted(one.number for one in found) == list(range(count))
    drawn = [(one.delay_ns / MS - delay_ms) / jitter_ms for one in found]
    assert min(drawn) > low - 0.05
    assert max(drawn) < high + LATE_MS / jitter_ms
    assert statistics.stdev(drawn) > 0.25
    if skewed:
        assert statistics.median(drawn) < statistics.fmean(drawn)
    mouth.say(400, every_s=0.001)
    close = [one.number for one in ear.take(400)]
    assert close == list(range(count, count + 400))


def test_loss_is_drawn_for_each_packet_and_never_told_to_the_sender(world: Instances) -> None:
    net = network(world, loss=100_000_000)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    count = 4000
    for _ in range(4):
        mouth.say(count // 4)
    arrived = len(ear.take(count))
    # Binomial, mean 400, standard deviation 19: six of them.
    assert 285 <= count - arrived <= 515
    usage = net.usage(0, 1)
    assert usage["drop_loss"] == count - arrived
    assert usage["sent_pkts"] == arrived
    net.set(0, 1, loss=1_000_000_000)
    mouth.say(50)
    assert ear.take(50, quiet_s=0.5) == []
    net.set(0, 1, loss=0)
    mouth.say(500)
    assert len(ear.take(500)) == 500


def test_a_queue_holds_its_bytes_and_drops_the_rest(world: Instances) -> None:
    net = network(world, rate=1_000_000, queue=50_000)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(200, size=1000)
    found = ear.take(200)
    # 50 packets wait; while the 200 are made, some more leave; the burst is two full packets.
    usage = net.usage(0, 1)
    assert usage["drop_queue"] == 200 - len(found)
    assert 50 <= len(found) < 80
    assert [one.number for one in found[:45]] == list(range(45))
    assert max(one.delay_ns for one in found) < (50_000 * 8 / 1_000_000 + 0.1) * 1e9


def test_what_has_no_path_is_dropped_and_what_is_not_of_the_experiment_is_not(
    world: Instances,
) -> None:
    """Nobody told of a path from 0 to 2; 3 has an address inside the prefixes and is no node."""
    pids = pods(world, 4)[:-1]
    engine = start(world)
    for number, pid in enumerate(pids[:3]):
        attach(engine, number, pid)
    engine(path(0, 1, rate=1_000_000, delay=50 * MS))
    engine(path(1, 0))
    engine.commit()
    mouths = [world.mouth(pids[0], address(to)) for to in range(4)]
    ears = [world.ear(pid) for pid in pids]
    for to in (1, 2, 3):
        mouths[to].say(20)
    assert len(ears[2].take(20, quiet_s=0.5)) == 0
    stranger = ears[3].take(20)
    assert len(stranger) == 20
    assert statistics.median(one.delay_ns for one in stranger) < LATE_MS * MS
    delayed = ears[1].take(20)
    assert len(delayed) == 20
    assert min(one.delay_ns for one in delayed) >= 50 * MS - 10_000
    pairs = {tuple(row[:2]): row for row in engine.rows("stats pairs")}
    assert pairs[0, 2][9] == 20  # drop_route


def test_addresses_outside_the_prefixes_pass_untouched(world: Instances) -> None:
    pids = pods(world, 2)[:-1]
    for number, pid in enumerate(pids):
        world.run(pid, "ip", "addr", "add", f"192.0.2.{number + 1}/24", "dev", "eth0")
    engine = start(world)
    for number, pid in enumerate(pids):
        attach(engine, number, pid)
    engine(path(0, 1, loss=1_000_000_000))
    engine(path(1, 0))
    engine.commit()
    ear = world.ear(pids[1])
    world.mouth(pids[0], address(1)).say(20)
    assert ear.take(20, quiet_s=0.5) == []
    world.mouth(pids[0], "192.0.2.2").say(20)
    assert len(ear.take(20)) == 20


def test_a_path_that_is_down_drops_all_and_comes_back(world: Instances) -> None:
    net = network(world, delay=5 * MS)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(10)
    assert len(ear.take(10)) == 10
    net.set(0, 1, up=0)
    mouth.say(10)
    assert ear.take(10, quiet_s=0.5) == []
    net.set(0, 1, up=1)
    mouth.say(10)
    found = ear.take(10)
    assert len(found) == 10
    assert min(one.delay_ns for one in found) >= 5 * MS - 10_000
