"""Nothing of a guest stays on the host, whichever of its processes is killed, and whenever."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.virtual.clockpage import ClockPage, State
from tests.virtual import guests
from tests.virtual.guests import Guest, guest

pytestmark = pytest.mark.virtual

# programs that sleep, spin, and come and go
SCRIPT = "sleep 1000000 & while :; do /bin/true; done & while :; do :; done"
STARTER = """
import sys, time
from pathlib import Path
from tests.virtual.guests import guest
with guest(sys.argv[2:], {script!r}, Path(sys.argv[1])) as it:
    while len(it.processes()) < 4:
        time.sleep(0.01)
    print(it.process.pid, flush=True)
    time.sleep(1000)
"""


def until(condition: Callable[[], bool], of: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, of()
        time.sleep(0.01)


def busy(it: Guest) -> set[int]:
    """Waits until all its programs run. Its processes but the kernel's own."""
    until(lambda: len(it.processes()) >= 4, it.processes)
    return set(it.processes()) - {it.process.pid}


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # programs that come and go
        os.kill(pid, signal.SIGKILL)


def test_kernel_killed(kernel: list[str], tmp_path: Path) -> None:
    with guest(kernel, SCRIPT, tmp_path) as it:
        busy(it)
        it.process.kill()
        it.process.wait()
        until(lambda: not it.processes(), it.processes)


@pytest.mark.parametrize("after_ms", range(5, 200, 13))
def test_kernel_killed_while_it_boots(kernel: list[str], tmp_path: Path, after_ms: int) -> None:
    with guest(kernel, SCRIPT, tmp_path) as it:
        time.sleep(after_ms / 1000)
        it.process.kill()
        it.process.wait()
        until(lambda: not it.processes(), it.processes)


def test_processes_of_programs_killed(kernel: list[str], tmp_path: Path) -> None:
    with guest(kernel, SCRIPT, tmp_path) as it:
        for pid in busy(it):
            kill(pid)
        # PID 1 of the guest was one of them, without which its kernel ends
        assert it.process.wait(60) != 0
        until(lambda: not it.processes(), it.processes)


@pytest.mark.parametrize("sleeping", [True, False])
def test_a_process_that_is_killed_ends_the_guest(
    kernel: list[str], tmp_path: Path, sleeping: bool
) -> None:
    """What its program would have done is missing in all that comes after: the reason is said."""
    does = "sleep 1000" if sleeping else "sh -c 'while :; do read x </proc/uptime; done'"
    with guest(kernel, f"( sleep 5; {does} ) & sleep 2000", tmp_path, limit_ns=10**9) as it:
        assert it.page.wait(60) == State.WAITS
        others = set(it.processes())
        it.page.goes_on()
        it.page.limit_ns = 100 * 10**9
        if sleeping:
            assert it.page.wait(60) == State.WAITS
        else:
            until(lambda: it.page.read().now_ns > 5 * 10**9, it.page.read)
            until(lambda: bool(set(it.processes()) - others), it.processes)
        for pid in set(it.processes()) - others:
            kill(pid)
        it.page.limit_ns = None
        assert it.process.wait(60) != 0
    console = (tmp_path / "console").read_text(errors="replace")
    assert "a process of the guest was killed on the machine, by signal 9: its prog" in console


def test_starter_killed(kernel: list[str], tmp_path: Path) -> None:
    source = textwrap.dedent(STARTER).format(script=SCRIPT)
    command = [sys.executable, "-c", source, str(tmp_path), *kernel]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        leader = int(starter.stdout.readline())
        starter.kill()
    until(lambda: not dict(guests.session(leader)), lambda: dict(guests.session(leader)))


def test_wrong_starter_is_refused(kernel: list[str], tmp_path: Path) -> None:
    page = ClockPage.create()
    with guest([*kernel, "tstorm_parent=1"], "true", tmp_path, page=page) as it:
        assert it.process.wait(60) == 1
    assert "that process has not started this one" in (tmp_path / "console").read_text()
