"""A guest whose time stands still: who holds it, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from runtime.errors import RunError
from runtime.options import CREEP, FAIL
from runtime.virtual.clockpage import ClockReading, State
from runtime.virtual.spinning import CREEP_NS, CREEP_SECONDS, LOOK_SECONDS, SpinWatch


@dataclass
class Page:
    """As runtime.virtual.clockpage.ClockPage, written by the test."""

    now_ns: int = 5
    crept_ns: int = 0
    state: State = State.RUNS
    pid: int = 40
    cpu_s: float = 0.0
    crept: list[tuple[int, int]] = field(default_factory=list)
    looks: int = 0  # at processor time

    def used(self) -> float:
        self.looks += 1
        return self.cpu_s

    def read(self) -> ClockReading:
        return ClockReading(
            self.now_ns, None, self.state, self.pid, "spin", 0, 0, 0, 0, self.crept_ns
        )

    def creep(self, kernel_pid: int, by_ns: int) -> None:
        self.crept.append((kernel_pid, by_ns))
        self.now_ns += by_ns
        self.crept_ns += by_ns


def watch(page: Page, on_spin: str = FAIL) -> SpinWatch:
    found = SpinWatch(page, 7, on_spin, 3.0, lambda _pid: page.used())  # type: ignore[arg-type]
    assert [found.look(), found.look()] == ["", ""]  # where time is, and that it stands still
    return found


def test_a_program_that_holds_time_for_longer_than_the_limit_fails_by_name() -> None:
    page = Page()
    found = watch(page)
    page.cpu_s = 2.9
    assert found.look() == ""
    page.cpu_s = 3.1
    with pytest.raises(RunError, match=r"spin \(process 40 in the guest\) has computed for 3 s"):
        found.look()


@pytest.mark.parametrize("change", [{"now_ns": 6}, {"state": State.WAITS}])
def test_time_that_moves_or_waits_is_not_held(change: dict[str, object]) -> None:
    page = Page()
    found = watch(page)
    page.cpu_s = 2.9
    for name, value in change.items():
        setattr(page, name, value)
    assert found.look() == ""
    page.cpu_s, page.state = 5.8, State.RUNS
    assert found.look() == ""


def test_processor_time_is_not_looked_for_while_time_moves() -> None:
    page = Page()
    found = watch(page)
    looks = page.looks
    for _ in range(10):
        page.now_ns += 1
        assert found.look() == ""
    assert page.looks == looks


def test_a_guest_that_gets_no_processor_holds_nothing() -> None:
    found = watch(Page())
    assert [found.look() for _ in range(100)] == [""] * 100


def test_time_creeps_beside_a_program_that_spins_and_is_told_once() -> None:
    page = Page()
    found = watch(page, CREEP)
    assert (found.pause_s, found.crept()) == (LOOK_SECONDS, None)
    page.cpu_s = 3.1
    assert found.look().endswith("time goes on beside it from now on")
    assert [found.look() for _ in range(3)] == [""] * 3
    assert page.crept == [(7, CREEP_NS)] * 4
    assert found.pause_s == CREEP_SECONDS
    assert found.crept() == {"ns": 4 * CREEP_NS, "programs": ["spin"]}


def test_time_does_not_creep_while_another_program_runs() -> None:
    page = Page()
    found = watch(page, CREEP)
    page.cpu_s = 3.1
    found.look()
    page.pid = 41
    assert found.look() == ""
    assert len(page.crept) == 1
