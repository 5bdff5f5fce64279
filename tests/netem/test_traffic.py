"""What packets see of a path that tcald made: rate, delay, jitter, loss, and who is left alone.

Tolerances are wide where a user-mode kernel's timers and a busy machine decide (some milliseconds),
and narrow where they do not: what is counted, and what is ordered.
"""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest

from tests.netem.support import (
    MS,
    Arrival,
    Instances,
    Network,
    address,
    attach,
    judged_in_time,
)
from tests.pktd.pods import path

pytestmark = pytest.mark.netem

LATE_MS = 30.0  # how late most packets may be here without it being anybody's fault
EARLY_NS = 100_000  # the two clocks that a delay is the difference of may be apart


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("size", [100, 1500])
@judged_in_time
def test_a_rate_counts_ip_bytes(net: Network, size: int, six: bool) -> None:
    """Would the Ethernet header count, small packets were 14 % slower than the rate says.

    The rate is so low that its burst, one full packet, makes up for a timer that is 30 ms late.
    """
    rate_bps, seconds = 400_000, 1.5
    net.set(0, 1, rate=rate_bps, queue=2_000_000)
    used_before = net.usage(0, 1)
    ear, mouth = net.ear(1, six=six), net.mouth(0, 1, six=six)
    count = int(seconds * rate_bps / 8 / size)
    mouth.say(count, size=size)
    found = ear.take(count)
    assert [one.number for one in found] == list(range(count))
    # Without the first tenth, which the burst lets through. In a third of the rest this machine may
    # have done something else; what it then makes up for is a burst, 7 % of a third.
    marks = [found[count // 10 + part * (count * 9 // 10 - 1) // 3] for part in range(4)]
    thirds = [_bps(before, after, size) for before, after in pairwise(marks)]
    assert _bps(marks[0], marks[3], size) <= 1.05 * rate_bps
    assert max(thirds) >= 0.95 * rate_bps
    used = net.usage(0, 1) - used_before
    assert used == {"sent_pkts": count, "sent_bytes": count * size}


def _bps(before: Arrival, after: Arrival, size: int) -> float:
    """What arrived after one datagram, up to another."""
    sent = (after.number - before.number) * size * 8
    return sent / ((after.at_ns - before.at_ns) / 1e9)


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
@judged_in_time
def test_a_delay_is_that_of_the_direction(net: Network, six: bool) -> None:
    net.set(0, 1, delay=30 * MS)
    net.set(1, 0, delay=90 * MS)
    for source, dest, delay_ms in ((0, 1, 30), (1, 0, 90)):
        ear, mouth = net.ear(dest, six=six), net.mouth(source, dest, six=six)
        mouth.say(20, every_s=0.005)
        delays = [one.delay_ns / MS for one in ear.take(20)]
        assert len(delays) == 20
        assert min(delays) >= delay_ms - EARLY_NS / MS
        assert statistics.median(delays) < delay_ms + LATE_MS


@pytest.mark.parametrize(
    ("dist", "low", "high"),
    [
        ("normal", -3.8, 3.8),
        ("uniform", -1, 1),
        ("pareto", -0.62, 24),
        ("paretonormal", -1.9, 24),
    ],
)
@judged_in_time
def test_jitter_has_its_distribution(net: Network, dist: str, low: float, high: float) -> None:
    """Packets are so far apart that keeping their order seldom binds.

    The lower end tells the distributions apart: this kernel's draws have no seed, so that nothing
    else about 40 of them is certain. The tables themselves are tested in C.
    """
    delay_ms, jitter_ms, count = 300, 50, 40
    net.set(0, 1, delay=delay_ms * MS, jitter=jitter_ms * MS, dist=dist)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(count, every_s=0.04)
    found = ear.take(count)
    assert [one.number for one in found] == list(range(count))
    drawn = [(one.delay_ns / MS - delay_ms) / jitter_ms for one in found]
    assert min(drawn) > low - 0.01
    # Of the latest ones it may be this machine that let them wait.
    assert sorted(drawn)[count * 17 // 20] < high + 2 * LATE_MS / jitter_ms
    assert statistics.stdev(drawn) > 0.2


def test_order_is_kept_under_jitter(net: Network) -> None:
    net.set(0, 1, delay=60 * MS, jitter=15 * MS)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(400, every_s=0.0005)
    assert [one.number for one in ear.take(400)] == list(range(400))


def test_loss_is_drawn_for_each_packet(net: Network) -> None:
    net.set(0, 1, loss=100_000_000)
    before = net.usage(0, 1)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    count, arrived = 3000, 0
    for _ in range(3):
        mouth.say(count // 3)
        arrived += len(ear.take(count // 3, quiet_s=0.3))
    # Binomial: mean 300, standard deviation 16.4; six of them.
    assert 200 <= count - arrived <= 400
    used = net.usage(0, 1) - before
    assert used["drop_loss"] == count - arrived
    assert used["sent_pkts"] == arrived
    net.set(0, 1, loss=1_000_000_000)
    mouth.say(50)
    assert ear.take(50, quiet_s=0.3) == []
    net.set(0, 1, loss=0)
    mouth.say(500)
    assert len(ear.take(500)) == 500


@judged_in_time
def test_a_queue_holds_its_bytes_and_drops_the_rest(net: Network) -> None:
    net.set(0, 1, rate=1_000_000, queue=50_000)
    before = net.usage(0, 1)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(200, size=1000)
    found = ear.take(200, quiet_s=0.5)
    used = net.usage(0, 1) - before
    assert used["drop_queue"] == 200 - len(found)
    assert used["sent_bytes"] == 1000 * len(found)
    # 50 packets wait; one is sent each 8 ms while the 200 are made.
    made_s = (found[-1].at_ns - found[0].at_ns) / 1e9
    assert 48 <= len(found) <= 52 + made_s * 125
    assert [one.number for one in found[:45]] == list(range(45))


def test_what_has_no_path_is_dropped_and_who_is_no_node_is_not(world: Instances) -> None:
    """Nobody told of a path from 0 to 2; 3 has an address inside the prefixes and is no node."""
    spaces = world.spaces(4)
    for number, space in enumerate(spaces):
        space.ip([f"addr add 192.0.2.{number + 1}/24 dev eth0"])
    engine = world.tcald()
    for number, space in enumerate(spaces[:3]):
        attach(engine, number, space)
    engine(path(0, 1, delay=50 * MS))
    engine(path(1, 0))
    engine.commit()
    ears = [world.ear(space) for space in spaces]
    for to in (1, 2, 3):
        world.mouth(spaces[0], address(to)).say(20)
    world.mouth(spaces[0], "192.0.2.3").say(20)
    stranger = ears[3].take(20)
    assert len(stranger) == 20
    assert statistics.median(one.delay_ns for one in stranger) < LATE_MS * MS
    assert len(ears[2].take(40, quiet_s=0.3)) == 20  # those outside the prefixes
    delayed = ears[1].take(20)
    assert len(delayed) == 20
    assert min(one.delay_ns for one in delayed) >= 50 * MS - EARLY_NS
    pairs = {tuple(row[:2]): row for row in engine.rows("stats pairs")}
    assert pairs[0, 1][4] == 20  # delivered_pkts


def test_a_path_that_is_down_drops_all_and_comes_back(net: Network) -> None:
    net.set(0, 1, delay=40 * MS)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(10)
    assert len(ear.take(10)) == 10
    net.set(0, 1, up=0)
    mouth.say(10)
    assert ear.take(10, quiet_s=0.3) == []
    net.set(0, 1, up=1)
    mouth.say(10)
    found = ear.take(10)
    assert len(found) == 10
    assert min(one.delay_ns for one in found) >= 40 * MS - EARLY_NS
