"""Clocks of single instances: what programs find out, to the nanosecond, and when waits end."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from compiler.plan.reader import Plan, read_plan
from tests.cli.process import ROOT, tstorm
from tests.virtual.guests import compiled

pytestmark = pytest.mark.virtual

SECOND, MS = 10**9, 10**6
LOOK_NS = 256  # what a look at a clock takes
START_NS = 10 * SECOND  # CLOCK_MONOTONIC at the experiment's start
DATE_NS = 946_684_800 * SECOND - START_NS  # when that clock was 0
ASIDE_NS = 50 * MS  # so much later does `b` look: who looks at one moment makes others late
TEXT = f"""\
service a exec="./realtime {START_NS} own 11 13 16 3700" files=realtime
service b exec="./realtime {START_NS + ASIDE_NS} 10 3700" files=realtime
service c exec="sh -c 'date +%s; sleep 2; date +%s; touch x; stat -c %Y x'"
bridge s
link a--s latency=1ms
link b--s latency=1ms
link c--s latency=1ms
at 1s a set clock=+200ms
at 1s c set clock=+1h
at 4s a set clock-=3s
at 9s a set clock+=10s
at 12s a set clock=-1h drift=50ppm
at 14s a restart
at 3701s quit
"""


class Look(NamedTuple):
    elapsed_ns: int  # of the experiment, when the real-time clock was read
    real_ns: int
    wanted_ns: int
    doubt_ns: int  # 0: nobody else ran between the looks around it

    @property
    def off_ns(self) -> int:
        return self.real_ns - DATE_NS - START_NS - self.elapsed_ns


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clocks")
    compiled("realtime", place, "-static")
    (place / "e.tdl").write_text(TEXT)
    tstorm(place, "run", "e.tdl", "--time", "virtual", "--no-probes", "--quiet", "--out", "run")
    return place / "run"


def looks(run: Path, name: str) -> Mapping[str, list[Look]]:
    found: dict[str, list[Look]] = {}
    for line in (run / "logs" / f"{name}.log").read_text().splitlines():
        what, *numbers = line.split()
        if len(numbers) == 4:
            before, after, real, wanted = map(int, numbers)
            doubt_ns = (after - before) // 2 - LOOK_NS
            look = Look((before + after) // 2 - START_NS, real, wanted, doubt_ns)
            found.setdefault(what, []).append(look)
    return found


def planned_off_ns(plan: Plan, name: str, elapsed_ns: int) -> int:
    events = [one for one in plan.events if one.kind == "clock" and one.target == name]
    past = [one for one in events if one.at_ns <= elapsed_ns]
    if not past:
        return 0
    gained = (elapsed_ns - past[-1].at_ns) * int(past[-1].args["drift_ppb"]) // SECOND
    return int(past[-1].args["offset_ns"]) + gained


def test_the_clock_is_off_as_planned_to_the_nanosecond(run: Path) -> None:
    plan, found = read_plan(run / "plan"), looks(run, "a.0")
    seen = [one for what in found for one in found[what] if not 10 <= one.elapsed_ns / SECOND < 12]
    assert len(seen) > 15
    assert sum(not one.doubt_ns for one in seen) > 15
    for one in seen:
        if one.doubt_ns:
            continue
        assert one.off_ns == planned_off_ns(plan, "a.0", one.elapsed_ns), one
    hour = found["later"][-1]
    assert hour.elapsed_ns > 3600 * SECOND
    assert hour.off_ns == -3600 * SECOND + (hour.elapsed_ns - 12 * SECOND) * 50_000 // SECOND


def test_a_later_life_finds_the_clock_of_its_host(run: Path) -> None:
    first, again = looks(run, "a.0")["first"]
    assert first.off_ns == 0
    assert again.elapsed_ns >= 14 * SECOND
    wanted_ns = -3600 * SECOND + (again.elapsed_ns - 12 * SECOND) * 50_000 // SECOND
    assert abs(again.off_ns - wanted_ns) <= again.doubt_ns


def test_all_ways_of_asking_say_the_same(run: Path) -> None:
    found = looks(run, "a.0")
    for what, coarse_ns in (("day", 1000), ("second", SECOND), ("coarse", 4 * MS), ("tai", 0)):
        (one,) = found[what]
        assert 0 <= one.real_ns - one.wanted_ns <= coarse_ns + 2000, what


def test_waits_for_a_date_end_when_the_own_clock_has_it(run: Path) -> None:
    found = looks(run, "a.0")
    for what in ("sleep", "futex", "timer", "period", "timerfd", "back", "on"):
        (one,) = found[what]
        late_ns = one.real_ns - one.wanted_ns
        assert 0 <= late_ns < (MS if what != "on" else 6 * SECOND), what


def test_a_step_moves_waits_that_have_begun(run: Path) -> None:
    found = looks(run, "a.0")
    for what, at_ms in (("canceled", 4000), ("back", 7500), ("on", 9000)):
        (one,) = found[what]
        assert 0 <= one.elapsed_ns - at_ms * MS < MS, what


def test_who_sets_the_clock_sets_its_own(run: Path) -> None:
    found = looks(run, "a.0")
    (own,) = found["own"]
    assert 0 <= own.real_ns - own.wanted_ns < MS
    assert own.off_ns < -3000 * SECOND
    after = next(one for one in found["later"] if one.elapsed_ns > 11 * SECOND)
    assert after.off_ns == own.off_ns
    assert f"adjtimex {errno.EPERM}\n" in (run / "logs" / "a.0.log").read_text()


def test_other_instances_and_the_run_have_the_run_s_clock(run: Path) -> None:
    found = looks(run, "b.0")
    assert {one.off_ns for what in found for one in found[what]} == {0}
    before, after, touched = map(int, (run / "logs" / "c.0.log").read_text().split())
    assert (before, after) == (946_684_800, 946_684_800 + 3602)
    assert touched == 946_684_802, "files have the run's time"


def test_a_replay_is_the_same(run: Path) -> None:
    tstorm(run.parent, "replay", "run", "--check", "--quiet", "--out", "again")


def test_a_lease_that_ends_at_a_date_has_two_holders(tmp_path: Path) -> None:
    leases = str(ROOT / "examples/leases/leases.tdl")
    words = ("--time", "virtual", "--no-probes", "--quiet", "--out", "run")
    assert "two holders" in tstorm(tmp_path, "run", leases, *words, code=5).stderr
