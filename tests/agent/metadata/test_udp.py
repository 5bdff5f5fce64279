"""The agents' socket: what it takes, what it drops, and that it never works for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from runtime.agent.clock import SystemClock
from runtime.agent.metadata import udp
from runtime.agent.metadata.udp import Mailbox
from runtime.errors import RunError
from tests.doubles.clock import FakeClock

HERE = "127.0.0.1"
PREFIX = b"TM\x01abcd"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    found = Mailbox(SystemClock(), (HERE, 0))
    yield found
    found.close()


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        yield found


def once(mailbox: Mailbox) -> list[bytes]:
    found: list[bytes] = []
    mailbox.drain(lambda _at, datagram: found.append(datagram))
    return found


def drained(mailbox: Mailbox) -> list[bytes]:
    """All that is there, however slow this machine is."""
    found: list[bytes] = []
    cut = -1
    while mailbox.counters()["drains_cut_short"] != cut:
        cut = mailbox.counters()["drains_cut_short"]
        found += once(mailbox)
    return found


def test_what_was_sent_arrives(mailbox: Mailbox) -> None:
    other = Mailbox(SystemClock(), (HERE, 0))
    other.meet([(HERE, mailbox.port), (HERE, other.port)], b"")
    for number in range(100):
        other.send(0, b"%d" % number)
    assert drained(mailbox) == [b"%d" % number for number in range(100)]
    assert drained(mailbox) == []
    assert mailbox.counters()["received"] == 100
    other.close()


def test_datagrams_go_by_ipv6(mailbox: Mailbox) -> None:
    one, other = Mailbox(SystemClock(), ("::1", 0)), Mailbox(SystemClock(), ("::1", 0))
    hosts = [("::1", one.port), ("::1", other.port)]
    one.meet(hosts, PREFIX)
    other.meet(hosts, PREFIX)
    other.send(0, b"garbage")
    other.send(0, PREFIX + b"news")
    assert drained(one) == [PREFIX + b"news"]
    assert one.counters()["kernel_drops"] == 1
    with pytest.raises(RunError, match=r"\[::1\]:7 cannot be reached: .* by IPv4"):
        mailbox.meet([(HERE, 7), ("::1", 7)], PREFIX)
    with pytest.raises(RunError, match=f"{HERE}:7 cannot be reached: .* by IPv6"):
        one.meet([(HERE, 7)], PREFIX)
    one.close()
    other.close()


def test_only_this_runs_datagrams_take_up_room(mailbox: Mailbox, sender: socket.socket) -> None:
    mailbox.meet([], PREFIX)
    wrong = [b"", b"T", PREFIX[:-1], b"xM\x01abcdefg", PREFIX[:-1] + b"e" + b"f" * 100]
    for datagram in (*wrong, PREFIX, PREFIX + b"x" * 1400):
        sender.sendto(datagram, (HERE, mailbox.port))
    assert drained(mailbox) == [PREFIX, PREFIX + b"x" * 1400]
    assert mailbox.counters()["kernel_drops"] == len(wrong)


def test_a_flood_of_garbage_leaves_room_for_the_rest(
    mailbox: Mailbox, sender: socket.socket
) -> None:
    mailbox.meet([], PREFIX)
    for _ in range(20_000):
        sender.sendto(b"garbage" * 100, (HERE, mailbox.port))
    sender.sendto(PREFIX, (HERE, mailbox.port))
    assert drained(mailbox) == [PREFIX]
    assert mailbox.counters()["kernel_drops"] == 20_000


def test_a_drain_ends_when_its_time_is_over(sender: socket.socket) -> None:
    mailbox = Mailbox(FakeClock(step_ns=1_000_000), (HERE, 0))
    for _ in range(udp.CHECK_EVERY * 6):
        sender.sendto(b"x", (HERE, mailbox.port))
    looks = udp.DRAIN_NS // 1_000_000 + 1
    assert len(once(mailbox)) == udp.CHECK_EVERY * looks
    assert mailbox.counters()["drains_cut_short"] == 1
    assert len(once(mailbox)) == udp.CHECK_EVERY * (6 - looks)
    mailbox.close()


def test_losing_datagrams_on_purpose(sender: socket.socket) -> None:
    mailbox = Mailbox(SystemClock(), (HERE, 0), drop_ppb=300_000_000)
    for number in range(1000):
        sender.sendto(b"%d" % number, (HERE, mailbox.port))
    left = len(drained(mailbox))
    assert mailbox.counters()["dropped_on_purpose"] == 1000 - left
    assert 600 < left < 800
    mailbox.close()


def test_somebody_who_cannot_be_reached(mailbox: Mailbox) -> None:
    mailbox.meet([("203.0.113.1", 9), ("255.255.255.255", 9), (HERE, 1)], b"")
    mailbox.send(1, b"x")  # EACCES: broadcast was not asked for
    assert mailbox.counters()["send_errors"] == 1
    for _ in range(3):
        mailbox.send(2, b"x")  # nobody listens: an error comes back and is no datagram
    assert drained(mailbox) == []


def test_a_port_that_is_taken(mailbox: Mailbox) -> None:
    with pytest.raises(RunError, match=rf"cannot receive on {HERE}:{mailbox.port} \(UDP\)"):
        Mailbox(SystemClock(), (HERE, mailbox.port))


def test_somebody_watches(mailbox: Mailbox, sender: socket.socket) -> None:
    async def whole() -> int:
        calls = 0

        def called() -> None:
            nonlocal calls
            calls += 1
            arrived.set()

        arrived = asyncio.Event()
        mailbox.watch(called)
        sender.sendto(b"x", (HERE, mailbox.port))
        await asyncio.wait_for(arrived.wait(), 120)
        await asyncio.sleep(0)
        sender.sendto(b"y", (HERE, mailbox.port))
        await asyncio.sleep(0.01)
        mailbox.look_away()
        return calls

    assert asyncio.run(whole()) == 1
