"""The clock page as the host uses it."""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.virtual import clockpage
from runtime.virtual.clockpage import ClockPage, State

KERNEL = Path(clockpage.__file__).parent / "kernel"
HEADER = KERNEL / "added/arch/um/include/shared/tstorm/clockpage.h"


@pytest.fixture
def page() -> Iterator[ClockPage]:
    page = ClockPage.create()
    yield page
    page.close()


def guest_of(page: ClockPage) -> clockpage._Layout:
    """The page as a guest writes it."""
    return page._page


def test_layout_is_the_kernels(tmp_path: Path) -> None:
    layout = clockpage._Layout
    names = [field[0] for field in layout._fields_]
    rows = "".join(
        f'printf("{name} %zu %zu\\n", offsetof(struct clockpage, {name}),'
        f" sizeof(((struct clockpage *)0)->{name}));"
        for name in names
    )
    source = tmp_path / "layout.c"
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n"
        f'#include "{HEADER}"\nstruct clockpage *clockpage;\n'
        f"int main(void) {{ {rows} "
        f'printf("%x %d %d\\n", CLOCKPAGE_MAGIC, CLOCKPAGE_VERSION, CLOCKPAGE_ENDED); }}'
    )
    # At -O2 the inline functions that nobody calls need nothing to link with.
    compiler = shutil.which("cc")
    assert compiler is not None
    subprocess.run([compiler, "-O2", "-o", str(tmp_path / "layout"), str(source)], check=True)
    said = subprocess.run([tmp_path / "layout"], check=True, capture_output=True, text=True).stdout

    ours = [f"{name} {getattr(layout, name).offset} {getattr(layout, name).size}" for name in names]
    constants = f"{clockpage.MAGIC:x} {clockpage.VERSION} {int(State.ENDED)}"
    assert said.splitlines() == [*ours, constants]
    assert layout.limit_ns.offset == clockpage.HOST_FROM
    assert ctypes.sizeof(layout) == os.sysconf("SC_PAGE_SIZE")


def test_new_page_lets_time_go(page: ClockPage) -> None:
    assert page.limit_ns is None
    reading = page.read()
    assert (reading.state, reading.now_ns, reading.program) == (State.BOOTS, 0, "")


def test_reading_says_what_the_guest_wrote(page: ClockPage) -> None:
    guest = guest_of(page)
    guest.now_ns, guest.next_ns, guest.state = 5, clockpage.NEVER, State.WAITS
    guest.pid, guest.comm, guest.syscalls = 7, b"a program of 15", 9
    reading = page.read()
    assert (reading.now_ns, reading.next_ns, reading.state) == (5, None, State.WAITS)
    assert (reading.pid, reading.program, reading.syscalls) == (7, "a program of 15", 9)


def test_other_process_sees_the_limit(page: ClockPage) -> None:
    page.limit_ns = 12
    other = ClockPage(os.dup(page.fileno()))
    assert other.limit_ns == 12
    other.close()


def test_each_limit_changes_the_word_that_a_guest_sleeps_on(page: ClockPage) -> None:
    guest_of(page).wake_host = 0xFFFF
    guest_of(page).wake_signal = 3
    page.limit_ns = 1
    assert guest_of(page).wake_host == 0
    page.limit_ns = 1
    assert (guest_of(page).wake_host, guest_of(page).wake_signal) == (1, 3)


def test_limit_wakes_a_guest_that_sleeps(page: ClockPage) -> None:
    woken = threading.Event()
    asleep_at = guest_of(page).wake_host << 16

    def sleep() -> None:
        page._futex(page._wake, 0, asleep_at, 60.0)
        woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    page.limit_ns = 1
    assert woken.wait(30)
    thread.join()


def test_wait_ends_when_the_guest_waits(page: ClockPage) -> None:
    guest_of(page).state = State.RUNS
    assert page.wait(0.0) == State.RUNS

    def guest() -> None:
        guest_of(page).state = State.WAITS
        page._futex(page._state, 1, 0x7FFFFFFF, None)

    thread = threading.Thread(target=guest)
    begun = time.monotonic()
    thread.start()
    assert page.wait(60.0) == State.WAITS
    assert time.monotonic() - begun < 60.0
    thread.join()


def test_creep_is_a_number_and_an_alarm(page: ClockPage) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    try:
        page.creep(os.getpid(), 1000)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (guest_of(page).creep_ns, heard) == (1000, [signal.SIGALRM])
