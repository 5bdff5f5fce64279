"""The kernel's side of the clock page: time waits for the host, and for nobody else."""

import random
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.virtual.clockpage import ClockPage, State
from tests.virtual.guests import Guest, compiled, guest

pytestmark = pytest.mark.virtual

SECOND = 10**9
ROUNDS = 1000
BUSY = "while :; do :; done"


def wait_for(condition: Callable[[], bool], guest: Guest) -> None:
    """Looks again until it holds, for a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, guest.page.read()
        time.sleep(0.01)


def test_time_waits_at_the_limit(kernel: list[str], tmp_path: Path) -> None:
    script = "date +%s; sleep 100; date +%s"
    with guest(kernel, script, tmp_path, limit_ns=30 * SECOND) as it:
        assert it.page.wait(60) == State.WAITS
        held = it.page.read()
        assert held.now_ns <= 30 * SECOND
        assert held.next_ns is not None and held.next_ns > 30 * SECOND
        assert len(it.said().split()) == 1
        it.page.limit_ns = None
        first, second = map(int, it.end().split())
        assert second - first == 100
        assert it.page.read().state == State.ENDED


def test_hour_without_a_limit(kernel: list[str], tmp_path: Path) -> None:
    with guest(kernel, "sleep 3600", tmp_path) as it:
        it.end()
        reading = it.page.read()
    assert 3600 * SECOND <= reading.now_ns < 3601 * SECOND
    assert reading.waits == 0
    assert min(reading.jumps, reading.switches, reading.syscalls) > 0


def test_input_ends_a_wait_and_takes_no_time(kernel: list[str], tmp_path: Path) -> None:
    """Bytes come at every moment around the beginning of a wait, and so do limits: none is lost."""
    compiled("echo", tmp_path, "-static")
    here, there = socket.socketpair()
    here.settimeout(60)
    choose = random.Random(1)
    with here, there, guest(kernel, f"{tmp_path}/echo", tmp_path, line=there.fileno()) as it:
        assert here.recv(1) == b"R"
        it.page.limit_ns = it.page.read().now_ns
        assert it.page.wait(60) == State.WAITS
        before = it.page.read()
        for turn in range(ROUNDS):
            begun = time.perf_counter()
            while time.perf_counter() - begun < choose.random() * 0.0002:
                pass
            if turn % 2:
                assert it.page.wait(60) == State.WAITS
            here.send(b"x")
            if turn % 5 == 0:
                it.page.limit_ns = choose.randrange(before.now_ns)
            assert select.select([here], [], [], 60)[0], it.page.read()
            assert here.recv(2) == b"x"
        after = it.page.read()
        assert after.waits - before.waits >= ROUNDS // 2
        assert after.jumps == before.jumps
        it.page.limit_ns = None
        here.send(b"E")
        it.end()


def test_spinning_program_stops_time_until_it_creeps(kernel: list[str], tmp_path: Path) -> None:
    script = f"(sleep 1; echo awake; halt -f) & {BUSY}"
    with guest(kernel, script, tmp_path) as it:
        wait_for((tmp_path / "out").exists, it)
        reading = it.page.read()
        assert reading.now_ns < SECOND
        assert reading.state == State.RUNS
        while it.process.poll() is None:
            it.page.creep(it.process.pid, SECOND // 1000)
            time.sleep(0.001)
        assert "awake" in it.end()
        crept = it.page.read().crept_ns
        assert 0.9 * SECOND < crept <= it.page.read().now_ns


def test_limit_holds_time_that_creeps(kernel: list[str], tmp_path: Path) -> None:
    with guest(kernel, BUSY, tmp_path, limit_ns=SECOND) as it:
        wait_for((tmp_path / "out").exists, it)
        for _ in range(5000):
            it.page.creep(it.process.pid, SECOND // 1000)
            wait_for(lambda: it.page._page.creep_ns == 0, it)
            if it.page.read().now_ns >= SECOND:
                break
        assert it.page.read().now_ns == SECOND
        it.page.creep(it.process.pid, SECOND)
        wait_for(lambda: it.page._page.creep_ns == 0, it)
        assert it.page.read().now_ns == SECOND


def test_page_tells_which_program_runs(kernel: list[str], tmp_path: Path) -> None:
    program = tmp_path / "gossip"
    program.symlink_to("/usr/bin/tail")
    with guest(kernel, f"{program} -f /dev/null", tmp_path, limit_ns=60 * SECOND) as it:
        assert it.page.wait(60) == State.WAITS
        reading = it.page.read()
        assert (reading.program, reading.pid > 1) == ("gossip", True)


def test_page_of_another_version_is_refused(kernel: list[str], tmp_path: Path) -> None:
    page = ClockPage.create()
    page._page.version += 1
    with guest(kernel, "true", tmp_path, page=page) as it:
        assert it.process.wait(60) == 1
        console = (tmp_path / "console").read_text()
    assert "another version of the clock page" in console
    assert "tstorm kernel build" in console
