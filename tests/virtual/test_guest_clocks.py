"""What takes a program time although it sleeps nowhere is its own time, and each clock goes on."""

from pathlib import Path

import pytest

from tests.virtual.guests import compiled, guest

pytestmark = pytest.mark.virtual

LOOK_NS, FAILURE_NS = 256, 1000
CREDIT_NS = 1_000_000  # of failures that take no time


def test_each_clock_goes_on_for_who_waits_for_it(kernel: list[str], tmp_path: Path) -> None:
    """MariaDB, for one, waits for the coarse clock and for times(2) when it starts."""
    program = compiled("clocks", tmp_path, "-static")
    with guest(kernel, f"{program} wait", tmp_path) as it:
        assert it.end().splitlines() == ["asked all"]


def test_failing_takes_time_only_in_a_loop(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("clocks", tmp_path, "-static")
    script = f"{program} fail 500; {program} fail 100000"
    with guest(kernel, script, tmp_path) as it:
        some, many = map(int, it.end().split())
    assert some <= 2 * LOOK_NS
    assert many == pytest.approx(100_000 * FAILURE_NS - CREDIT_NS, rel=0.001)


def test_programs_that_look_fail_and_start_make_nobody_late(
    kernel: list[str], tmp_path: Path
) -> None:
    """Each of 10 starts 10 programs, which look for what is not there, and loops on a failure."""
    program = compiled("clocks", tmp_path, "-static")
    starts = "i=0; while [ $i -lt 10 ]; do i=$((i+1)); /bin/true; done"
    others = f"( {starts}; {program} fail 3000; {program} late 9 ) >/dev/null &"
    script = f"sleep 1; {program} late 300 & sleep 0.1; {others * 10} wait"
    with guest(kernel, script, tmp_path) as it:
        assert int(it.end()) <= 10_000


def test_who_loops_until_another_has_looked_at_a_clock_goes_on(
    kernel: list[str], tmp_path: Path
) -> None:
    """PostgreSQL's leader loops without a call until a worker that has been started is there."""
    program = compiled("clocks", tmp_path, "-static")
    with guest(kernel, f"{program} attach 8", tmp_path) as it:
        assert it.end() == "attached\n"


def test_a_program_may_reserve_what_it_does_not_use(kernel: list[str], tmp_path: Path) -> None:
    """InnoDB and ZGC ask for terabytes of addresses."""
    program = compiled("clocks", tmp_path, "-static")
    with guest(kernel, f"{program} reserve 8192 && echo has them", tmp_path) as it:
        assert it.end() == "has them\n"
