"""Turns and rests of processes in the real-time class. The clock is a counter, but for one test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from runtime.system.realtime import rt_lock, rt_throttle
from runtime.system.realtime.rt_lock import PIECE_NS, REST_NS, Turns
from tests.doubles.clock import FakeClock
from tests.runtime.support import ROOT


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    found = FakeClock(10**9)
    monkeypatch.setattr(rt_lock, "time", found)
    return found


@pytest.fixture
def shared() -> Iterator[int]:
    descriptor = rt_lock.make()
    yield descriptor
    os.close(descriptor)


def test_a_long_stretch_is_followed_by_a_rest(clock: FakeClock) -> None:
    own = Turns()
    assert own.take() == (0, True)
    own.give(PIECE_NS)
    ended_ns = clock.now
    assert own.take() == (0, True)
    assert clock.now == ended_ns + REST_NS


def test_short_pieces_add_up(clock: FakeClock) -> None:
    own = Turns()
    own.take()
    own.give(PIECE_NS - 1)
    clock.now += REST_NS - 1
    assert own.take() == (PIECE_NS - 1, True)


def test_who_slept_long_enough_begins_anew(clock: FakeClock) -> None:
    own = Turns()
    own.take()
    own.give(PIECE_NS - 1)
    clock.now += REST_NS
    before_ns = clock.now
    assert own.take() == (0, True)
    assert clock.now == before_ns


def test_one_of_all_works_at_a_time(clock: FakeClock, shared: int) -> None:
    first, second = Turns(shared), Turns(shared)
    assert first.take() == (0, True)
    assert second.take()[1] is False
    first.give(0)
    assert second.take()[1] is True


def test_who_waits_is_woken_when_the_turn_is_over(shared: int) -> None:
    """His patience is longer than this test."""
    first, second = Turns(shared), Turns(shared, patience_ns=3600 * 10**9)
    first.take()
    other = threading.Thread(target=first.give, args=(0,))
    other.start()
    assert second.take()[1] is True
    other.join()


def test_the_alarm_is_put_back(clock: FakeClock, shared: int) -> None:
    before = signal.getsignal(signal.SIGALRM)
    first, second = Turns(shared), Turns(shared)
    first.take()
    assert second.take()[1] is False
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_all_of_them_rest(clock: FakeClock, shared: int) -> None:
    first, second = Turns(shared), Turns(shared)
    first.take()
    first.give(PIECE_NS)
    ended_ns = clock.now
    assert second.take() == (0, True)
    assert clock.now == ended_ns + REST_NS


def test_whoever_dies_in_his_turn_holds_nobody_up(clock: FakeClock, shared: int) -> None:
    code = (
        "import os, sys; from runtime.system.realtime.rt_lock import Turns;"
        "Turns(int(sys.argv[1])).take(); os._exit(9)"
    )
    argv = [sys.executable, "-c", code, str(shared)]
    done = subprocess.run(argv, pass_fds=[shared], cwd=ROOT, check=False)
    assert done.returncode == 9
    assert Turns(shared).take()[1] is True


SPIN = """
import json, sys, time
from runtime.system.realtime import rt_throttle
rt_throttle.is_preferred = lambda: sys.argv[1] == "preferred"
async def main():
    rt_throttle.RESTS.begin()
    end = time.thread_time_ns() + 30_000_000
    sums = 0
    while time.thread_time_ns() < end:
        sums += 1
    await rt_throttle.asyncio.sleep(0.001)
    while time.thread_time_ns() < end + 10_000_000:
        sums += 1
    return sums
sums = rt_throttle.run(main())
print(json.dumps({**rt_throttle.RESTS.counters(), "sums": sums}))
"""


def _spun(how: str) -> dict[str, int]:
    argv = [sys.executable, "-c", SPIN, how]
    done = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_computing_is_cut_into_pieces() -> None:
    """40 ms in one piece each would be two; nothing is lost of it. A machine that others use takes
    pieces away by itself, so that no rest is owed: then it is tried again."""
    found = _spun("preferred")
    for _ in range(10):
        if found["rests"] > 2:
            break
        found = _spun("preferred")
    assert found["rests"] > 2
    assert 0 < found["longest_piece_ns"] < 30_000_000
    assert found["sums"] > 0


def test_who_is_not_preferred_needs_no_rest() -> None:
    found = _spun("not")
    assert (found["rests"], found["longest_piece_ns"]) == (0, 0)


def test_the_class_of_this_thread_is_seen() -> None:
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    assert rt_throttle.is_preferred() == (policy in (os.SCHED_FIFO, os.SCHED_RR))


BUSY = """
import asyncio, os, signal, sys
from runtime.system.loop_signals import on_signals

alarms = 0

def alarm(_number, _frame):
    global alarms
    alarms += 1

async def main():
    stop = asyncio.Event()
    on_signals((signal.SIGTERM,), stop.set)
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    while alarms < 3000:  # far more than a socket of bytes has room for
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    signal.setitimer(signal.ITIMER_REAL, 0)
    await asyncio.wait_for(stop.wait(), 60)

asyncio.run(main())
"""


def test_alarms_while_the_loop_is_busy_lose_no_signal_and_warn_of_nothing() -> None:
    """A warning of each would be given inside the signal's handler, and can hang there."""
    argv = [sys.executable, "-c", BUSY]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
