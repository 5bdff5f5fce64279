"""A lease ends when its client is silent, not when pktd was held up.

What holds it up here is SIGSTOP, or a command that opens a FIFO as if it were a namespace.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.datapath.client import DEADLINE_S, Client
from tests.pktd.harness import World
from tests.waiting import wait_until

LEASE_S = 0.5


@pytest.fixture
def engine() -> Iterator[Client]:
    with World() as world:  # no namespace, no device
        yield world.pktd()


def _stop(engine: Client) -> None:
    """Returns once every thread of it stands."""
    engine.process.send_signal(signal.SIGSTOP)
    pid, status = os.waitpid(engine.process.pid, os.WUNTRACED)
    assert pid == engine.process.pid
    assert os.WIFSTOPPED(status)


def _stopped_within_a_lease(engine: Client) -> float:
    """pktd has a lease and stands, and that lease had not ended by then. When it began, at the
    earliest. On a machine that is too busy for that in one go, it is tried again."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        began = time.monotonic()
        engine(f"lease {round(LEASE_S * 1e9)}")
        _stop(engine)
        if time.monotonic() - began < LEASE_S:
            engine.events.clear()
            return began
        assert time.monotonic() < deadline
        engine.process.send_signal(signal.SIGCONT)
        engine("lease 0")


def _unread(engine: Client) -> int:
    """Bytes of commands that pktd has not read yet."""
    assert engine.process.stdin is not None
    found = fcntl.ioctl(engine.process.stdin, termios.FIONREAD, bytes(4))
    return int.from_bytes(found, sys.byteorder)


def _written(fifo: Path) -> bool:
    """Opens it for writing if somebody opens it for reading."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


def _wait_out(began: float) -> None:
    while time.monotonic() - began <= LEASE_S * 1.2:
        time.sleep(0.02)


def test_a_line_that_waits_keeps_the_lease(engine: Client) -> None:
    """pktd was stopped for longer than the lease, and its client spoke meanwhile."""
    _wait_out(_stopped_within_a_lease(engine))
    engine.send("clock")
    engine.process.send_signal(signal.SIGCONT)
    assert engine.line().startswith("ok "), "neither expired nor renewed"


def test_a_line_that_came_during_a_long_command_keeps_the_lease(
    engine: Client, tmp_path: Path
) -> None:
    fifo = tmp_path / "namespace"
    os.mkfifo(fifo)
    engine(f"lease {round(LEASE_S * 1e9)}")
    engine.send(f"attach 0 netns={fifo} if=eth0 prefix=10.77.0.0/16")
    wait_until(lambda: _unread(engine) == 0, "the command is read")
    began = time.monotonic()
    engine.send("clock")
    _wait_out(began)
    wait_until(lambda: _written(fifo), "pktd is in open(2), which returns now")
    assert engine.answer().startswith("err ")
    assert engine.line().startswith("ok "), "neither expired nor renewed"


def test_a_long_line_that_waits_in_parts_keeps_the_lease(engine: Client) -> None:
    """As many bytes as one read takes, the end of the last line not among them."""
    began = _stopped_within_a_lease(engine)
    count = 65536 // len(b"clock\n") + 1
    assert engine.process.stdin is not None
    fd = engine.process.stdin.fileno()
    os.set_blocking(fd, False)
    wrote = os.write(fd, b"clock\n" * count)
    os.set_blocking(fd, True)
    _wait_out(began)
    engine.process.send_signal(signal.SIGCONT)
    for _ in range(wrote // len(b"clock\n")):
        assert engine.line().startswith("ok ")


def test_without_a_line_it_ends_as_before(engine: Client) -> None:
    _wait_out(_stopped_within_a_lease(engine))
    engine.process.send_signal(signal.SIGCONT)
    assert engine.line() == "! lease expired"
    engine.send("lease 0")
    assert engine.line() == "! lease renewed"
    assert engine.line() == "ok"


def test_half_a_line_is_no_line(engine: Client) -> None:
    began = _stopped_within_a_lease(engine)
    assert engine.process.stdin is not None
    engine.process.stdin.write(b"clo")
    engine.process.stdin.flush()
    _wait_out(began)
    engine.process.send_signal(signal.SIGCONT)
    assert engine.line() == "! lease expired"
    engine.send("ck")
    assert engine.line() == "! lease renewed"
    assert engine.line().startswith("ok ")
    assert engine.process.stdout is not None
    assert not select.select([engine.process.stdout], [], [], 0)[0]
