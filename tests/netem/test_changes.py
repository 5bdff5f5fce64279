"""Changing paths while packets are in them, and taking the datapath away from its interfaces."""

from __future__ import annotations

import time

import pytest

from compiler.plan.rules.property_limits import PATHS, jitter_limit
from tests.datapath.client import Client, RefusedError
from tests.netem.support import MS, Instances, Network, address, attach, judged_in_time, network
from tests.netem.tree import Tree
from tests.pktd.pods import path
from tests.waiting import wait_until

pytestmark = pytest.mark.netem


def test_a_change_of_the_rate_keeps_what_waits(net: Network) -> None:
    """50 packets of 1000 bytes wait at 80 kb/s; at 8 Mb/s all of them arrive, none lost."""
    net.set(0, 1, rate=80_000, queue=200_000)
    before = net.usage(0, 1)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(50, size=1000)
    assert len(ear.take(1)) == 1
    net.set(0, 1, rate=8_000_000)
    assert [one.number for one in ear.take(49)] == list(range(1, 50))
    assert net.usage(0, 1) - before == {"sent_pkts": 50, "sent_bytes": 50_000}


def test_a_change_of_the_delay_keeps_what_travels(net: Network) -> None:
    net.set(0, 1, delay=400 * MS)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(30)
    net.set(0, 1, delay=410 * MS, loss=0, jitter=0)
    mouth.say(30)
    found = ear.take(60)
    assert [one.number for one in found] == list(range(60))
    assert min(one.delay_ns for one in found) >= 400 * MS - 10_000


@judged_in_time
def test_zero_is_a_value(net: Network) -> None:
    """What netem keeps when it is not told is told: delay, jitter and loss go back to nothing."""
    net.set(0, 1, delay=200 * MS, jitter=20 * MS, loss=500_000_000, rate=1_000_000)
    net.set(0, 1, delay=0, jitter=0, loss=0, rate=0)
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(200, size=1000)
    found = ear.take(200)
    assert len(found) == 200
    # 200 packets take 1.6 s at the old rate, and each 140 ms at the least at the old delay.
    assert sorted(one.delay_ns for one in found)[100] < 100 * MS


def test_a_commit_waits_for_its_time(net: Network) -> None:
    at_ns = time.monotonic_ns() + 300 * MS
    net.engine("path 0 1 delay=100000000")
    sequence, asked, applied = net.engine.commit(at_ns)
    assert asked == at_ns
    assert applied >= at_ns
    assert sequence > 0
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(1)
    assert ear.take(1)[0].delay_ns >= 100 * MS - 10_000


def test_nodes_move_between_ports(world: Instances) -> None:
    """A node is at port 0, then at port 1; what leaves the other port is nobody's and dropped."""
    spaces = world.spaces(3)
    engine = world.tcald()
    for number in (0, 1):
        engine(f"attach {number} netns={spaces[number].path} if=eth0 prefix=10.77.0.0/16")
    engine(f"node 0 ip={address(0)}")
    engine(f"node 2 ip={address(2)}")
    engine("bind 0 0")
    engine(path(0, 2))
    engine.commit()
    ear = world.ear(spaces[2])
    mouths = [world.mouth(spaces[number], address(2)) for number in (0, 1)]
    for bound in (0, 1):
        engine(f"bind 0 {bound}")
        engine.commit()
        mouths[1 - bound].say(5)
        assert ear.take(5, quiet_s=0.5) == []
        mouths[bound].say(5)
        assert len(ear.take(5)) == 5


def test_detaching_leaves_the_interface_as_it_was(world: Instances) -> None:
    spaces = world.spaces(2)

    def shown() -> list[str]:
        """Without counters and handles that the kernel numbers."""
        return [
            spaces[0].run(*words)
            for words in (
                ["tc", "qdisc", "show", "dev", "eth0"],
                ["tc", "class", "show", "dev", "eth0"],
                ["tc", "filter", "show", "dev", "eth0"],
                ["ip", "-details", "link", "show", "dev", "eth0"],
            )
        ]

    before = shown()
    engine = world.tcald()
    for number, space in enumerate(spaces):
        attach(engine, number, space)
    engine(path(0, 1, rate=1_000_000, delay=50 * MS, loss=1000))
    engine(path(1, 0))
    engine.commit()
    assert shown() != before
    engine("detach 0")
    assert shown() == before
    assert [row.split()[0] for row in _ports(engine)] == ["1"]
    attach(engine, 0, spaces[0])
    engine.commit()
    ear = world.ear(spaces[1])
    world.mouth(spaces[0], address(1)).say(5)
    assert min(one.delay_ns for one in ear.take(5)) >= 50 * MS - 10_000


def _ports(engine: Client) -> list[str]:
    return [engine.line() for _ in range(int(engine("ports")))]


def test_what_a_killed_tcald_leaves_goes_with_the_next_one_or_the_namespace(
    world: Instances,
) -> None:
    net = network(world, delay=30 * MS)
    net.engine.process.kill()
    net.engine.process.wait()
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(5)
    assert min(one.delay_ns for one in ear.take(5)) >= 30 * MS - 10_000  # as last enforced
    engine = world.tcald()
    for number, space in enumerate(net.spaces):
        attach(engine, number, space)
    engine(path(0, 1, delay=5 * MS))
    engine(path(1, 0))
    engine.commit()
    mouth.say(5)
    found = ear.take(5)
    assert len(found) == 5
    assert 5 * MS - 10_000 <= min(one.delay_ns for one in found) < 25 * MS
    engine("detach 0")
    assert "netem" not in net.spaces[0].run("tc", "qdisc", "show")


def test_a_lease_that_lapses_closes_all_paths_until_the_next_line(net: Network) -> None:
    ear, mouth = net.ear(1), net.mouth(0, 1)
    net.engine(f"lease {200 * MS}")
    assert net.engine.line() == "! lease expired"
    mouth.say(5)
    assert ear.take(5, quiet_s=0.5) == []
    net.engine("lease 0")
    net.engine.events.remove("! lease renewed")
    mouth.say(5)
    assert len(ear.take(5)) == 5


def test_a_new_client_takes_over(world: Instances) -> None:
    """Half a line of the old one is spoilt, what was only staged is forgotten, the rest stays."""
    net = network(world, delay=20 * MS)
    net.engine("path 0 1 delay=1000000000")
    assert net.engine.process.stdin is not None
    net.engine.process.stdin.write(b"commit ")
    net.engine.process.stdin.write(b"\x18\nsync abc\n")
    net.engine.process.stdin.flush()
    wait_until(lambda: net.engine.line() == "ok sync abc", "the answer to sync")
    assert len(_ports(net.engine)) == 2
    net.engine.commit()
    ear, mouth = net.ear(1), net.mouth(0, 1)
    mouth.say(5)
    delays = [one.delay_ns for one in ear.take(5)]
    assert len(delays) == 5
    assert 20 * MS - 10_000 <= min(delays) < 500 * MS


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("attach 5 netns=/proc/1/ns/net if=nothere prefix=10.0.0.0/8", "system"),
        ("attach 5 netns=/nonexistent if=eth0 prefix=10.0.0.0/8", "system"),
        ("attach 0 netns=/proc/1/ns/net if=lo prefix=10.0.0.0/8", "conflict"),
        ("attach 5 netns=/proc/1/ns/net if=lo prefix=10.0.0.1/8", "range"),
        ("path 0 1 rate=99999999999999999", "range"),
        ("path 0 1 jitter=2500000000", "range"),
        ("path 0 7 rate=1", "unknown"),
        ("path 0 0 rate=1", "conflict"),
    ],
)
def test_a_refused_command_says_why_and_changes_nothing(
    net: Network, command: str, code: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        net.engine(command)
    assert refused.value.code == code
    assert len(refused.value.text) > 10


def test_tcald_takes_the_limits_of_the_table_and_no_more(net: Network) -> None:
    """compiler/plan/rules/property_limits.py; what stands in the kernel then is read back."""
    kernel = PATHS["kernel"]
    for key, limit in (
        ("rate", kernel["rate_bps"]),
        ("delay", kernel["delay_ns"]),
        ("queue", kernel["queue_bytes"]),
    ):
        net.engine(f"path 0 1 {key}={limit}")
        refuses(net, f"path 0 1 {key}={limit + 1}")
    for dist in ("normal", "uniform", "pareto", "paretonormal"):
        limit = jitter_limit("kernel", dist)
        net.engine(f"path 0 1 jitter={limit} dist={dist}")
        refuses(net, f"path 0 1 jitter={limit + 1} dist={dist}")
    net.engine.commit()
    found = Tree(net.spaces[0]).of(address(1))
    assert found is not None
    assert (found.rate_bps, found.queue_bytes) == (kernel["rate_bps"], kernel["queue_bytes"])
    assert found.delay_s == pytest.approx(kernel["delay_ns"] / 1e9)
    tailed_ns = jitter_limit("kernel", "paretonormal")
    assert found.jitter_s == pytest.approx(6 * tailed_ns / 1e9)  # docs/tcal.md


def refuses(net: Network, command: str) -> None:
    with pytest.raises(RefusedError) as refused:
        net.engine(command)
    assert refused.value.code == "range"
