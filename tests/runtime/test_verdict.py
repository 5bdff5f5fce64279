"""The verdict: what is too late and what is not, and what is said of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime import say
from runtime.judge import lateness, verdict_text
from runtime.judge.pulse import TICK_NS, Pulse
from runtime.judge.run_end import RunEnd
from runtime.judge.verdict import BOUNDS, MS, Judge, milliseconds
from runtime.launch.run_result import RunResult
from runtime.options import RunOptions
from runtime.results.loglines import LINE_CHARACTERS, last_line
from runtime.results.summary import _lags
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import Schedule
from runtime.system.realtime import timers
from tests.doubles.clock import FakeClock

ROOT = Path(__file__).resolve().parents[2]
SECOND = 1000 * MS


def done(kind: str, due_ns: int, late_ns: int, **more: object) -> dict[str, Any]:
    at = due_ns + late_ns
    found = {"seq": 0, "kind": kind, "target": "a.0", "due_ns": due_ns, "applied_ns": at}
    return {**found, "lag_ns": late_ns, **more}


def judged(*records: dict[str, Any], judge: Judge | None = None, **final: Any) -> dict[str, Any]:
    judge = judge or Judge()
    lateness.look_at_events(judge, records)
    lateness.look_at_end(judge, RunEnd(**{"outcome": "", **final}), len(records), len(records))
    return judge.verdict()


def late_engine(packets: int, p50: int, p99: int, largest: int) -> dict[str, dict[str, str]]:
    """As pktd says it."""
    late = {"late_p50_ns": p50, "late_p99_ns": p99, "late_max_ns": largest}
    return {"totals": {"tx_frames": str(packets), **{key: str(ns) for key, ns in late.items()}}}


def whats(found: dict[str, Any]) -> list[str]:
    return [reason["what"] for reason in found["reasons"]]


@pytest.mark.parametrize("what", BOUNDS)
def test_a_figure_is_too_late_beyond_its_bound_only(what: str) -> None:
    bound = BOUNDS[what].floor_ns
    within, beyond = Judge(), Judge()
    within.see(what, "it", bound)
    beyond.see(what, "it", bound + 1, at_ns=5)
    assert (within.verdict()["state"], within.verdict()["reasons"]) == ("unknown", [])
    assert [one["figure_ns"] for one in within.verdict()["judged"]] == [bound]
    (reason,) = beyond.verdict()["reasons"]
    assert beyond.verdict()["state"] == "degraded"
    assert reason.pop("text")
    assert reason == {
        "what": what,
        "subject": "it",
        "at_ns": 5,
        "figure_ns": bound + 1,
        "threshold_ns": bound,
        "figure": bound + 1,
        "threshold": bound,
        "unit": "ns",
        "count": 1,
        "state": "degraded",
    }


def test_engines_are_judged_by_the_smallest_delay() -> None:
    """A tenth of it for the 99th percentile, all of it for a single packet, never below a floor."""
    for delay, p50, p99, largest, packets in (
        (0, 1 * MS, 1 * MS, 100 * MS, 1000),
        (0, 1 * MS, 10 * MS, 100 * MS, 999),
        (2 * MS, 1 * MS, 1 * MS, 100 * MS, 1000),
        (20 * MS, 2 * MS, 2 * MS, 100 * MS, 1000),
        (20 * MS, 2 * MS, 10 * MS, 100 * MS, 9),
        (300 * MS, 30 * MS, 30 * MS, 300 * MS, 9),
    ):
        found = judged(judge=Judge(delay), facts=late_engine(packets, p50, p99, largest))
        assert found["state"] == "unknown", delay
        facts = late_engine(packets, p50 + 1, p99 + 1, largest + 1)
        found = judged(judge=Judge(delay), facts=facts)
        assert sorted(whats(found)) == ["engine_late_max", "engine_late_p50", "engine_late_p99"]


def test_an_engine_without_packets_was_not_judged() -> None:
    assert judged(facts=late_engine(0, 0, 0, 0))["judged"] == []
    assert judged(facts={"totals": {"tx_bytes": "7"}})["judged"] == []


def test_what_is_normal_on_two_quiet_cores_is_not_degraded() -> None:
    """The largest figures of docs/performance.md and docs/limits.md on an idle machine, and of
    examples/quickstart.tdl."""
    hosts = [
        {
            "name": "host0",
            "loop": {"late_max_ns": 3 * MS, "busy_max_ns": 11 * MS},
            "datapath": late_engine(1000, 20_000, 300_000, 9 * MS)["totals"],
        }
    ]
    records = [
        done("join", 0, 30 * MS, started_ns=60 * MS, network_ns=7 * MS),
        done("set", SECOND, 13 * MS, network_ns=SECOND + 13 * MS),
        done("quit", 2 * SECOND, 1 * MS),
    ]
    assert judged(*records, judge=Judge(1 * MS), facts={"counters": hosts})["state"] == "unknown"


def test_what_was_seen_of_stalled_runs_is_degraded() -> None:
    """A driver or pktd stopped for 15 s; gossip on a busy machine."""
    late = judged(done("set", 2 * SECOND, 14_670 * MS, network_ns=16_670 * MS))
    assert (whats(late), late["reasons"][0]["figure_ns"]) == (["network_change"], 14_670 * MS)
    assert late["reasons"][0]["at_ns"] == 2 * SECOND
    busy = judged(
        done("join", 0, 9 * MS, started_ns=2300 * MS),
        judge=Judge(5 * MS),
        facts=late_engine(5000, 30 * MS, 185 * MS, 190 * MS),
    )
    wanted = ["engine_late_p99", "engine_late_p50", "program_start", "engine_late_max"]
    assert whats(busy) == wanted, "the worst first"


def test_a_run_whose_leader_died_is_not_valid() -> None:
    """However good its paths were as long as somebody looked."""
    measured = Judge(measured={"pairs": 1, "of_pairs": 1, "probes": 100})
    found = judged(judge=measured, outcome="failed", facts={})
    assert (found["state"], whats(found)) == ("degraded", ["missing"])
    assert "the driver gave no account at the end" in found["reasons"][0]["text"]


@pytest.mark.parametrize(("whose", "state"), [(False, "degraded"), (True, "valid")])
def test_a_run_that_broke_off_is_not_valid_unless_programs_ended_it(
    whose: bool, state: str
) -> None:
    measured = Judge(measured={"pairs": 1, "of_pairs": 1, "probes": 100})
    end = {"message": "the packet engine (pktd) ended", "programs_failed": whose}
    found = judged(judge=measured, outcome="failed", facts={"totals": {}}, **end)
    assert found["state"] == state
    texts = [reason["text"] for reason in found["reasons"]]
    said = "it broke off, and nobody knows how it ended: the packet engine (pktd) ended"
    assert texts == ([] if whose else [said])


def test_many_at_one_instant_may_take_their_time() -> None:
    """A hundred programs that join together have 250 ms and 2 ms for each of the others."""
    late = 440 * MS
    crowd = [
        done("join", 0, 0, started_ns=late, target=f"a.{number}", seq=number)
        for number in range(100)
    ]
    assert judged(*crowd)["state"] == "unknown"
    assert whats(judged(*crowd[:90])) == ["program_start"]
    assert judged(*crowd[:90])["reasons"][0]["count"] == 90


def test_what_starts_before_time_0_is_not_early() -> None:
    """With `start when ready` it is awaited before time 0, however long it takes to be ready."""
    assert judged(done("join", 0, 0, started_ns=-9 * SECOND))["state"] == "unknown"
    assert whats(judged(done("join", 0, 0, started_ns=9 * SECOND))) == ["program_start"]


def test_stalls_are_told_by_who_stood_still_and_since_when() -> None:
    def stall(who: str, until_ns: int, stalled_ns: int) -> dict[str, Any]:
        return {"kind": "stall", "target": who, "applied_ns": until_ns, "stalled_ns": stalled_ns}

    found = judged(
        stall(lateness.DRIVER, 5 * SECOND, 2 * SECOND),
        stall(lateness.DRIVER, 9 * SECOND, SECOND),
        stall(lateness.ENGINE, 9 * SECOND, 4 * SECOND),
    )
    assert [(r["what"], r["subject"], r["at_ns"], r["count"]) for r in found["reasons"]] == [
        ("engine_stall", "pktd", 5 * SECOND, 1),
        ("driver_stall", "the driver", 3 * SECOND, 2),
    ]
    assert found["reasons"][1]["text"].startswith(
        "the driver stood still 2 times, for up to 2.00 s"
    )


def test_an_event_that_was_early_is_judged_like_a_late_one() -> None:
    early = {"seq": 0, "kind": "leave", "target": "a.0", "due_ns": 10**9, "lag_ns": -600 * MS}
    judge = Judge()
    lateness.look_at_events(judge, [early])
    (reason,) = judge.verdict()["reasons"]
    assert reason["figure_ns"] == judge.verdict()["largest_ns"] == 600 * MS
    assert reason["text"].startswith("leave a.0 was done 600 ms early")
    lags = _lags([-2 * MS, -MS, MS // 2])
    assert (lags["p50_ns"], lags["p99_ns"], lags["max_ns"]) == (MS, 2 * MS, 2 * MS)


def test_agents_that_were_away_silent_or_held_up() -> None:
    hosts = [
        {"name": "host0", "loop": {"late_max_ns": 1, "busy_max_ns": 600 * MS}, "datapath": {}},
        {"name": "host1", "missing": "it did not answer"},
    ]
    found = judged(
        {"kind": "agent_lost", "target": "host2", "applied_ns": SECOND, "reason": "x"},
        {"kind": "agent_back", "target": "host2", "applied_ns": 3 * SECOND},
        {"kind": "agent_lost", "target": "host3", "applied_ns": 2 * SECOND, "reason": "x"},
        done("quit", 9 * SECOND, 0),
        facts={"counters": hosts},
    )
    assert [(r["what"], r["subject"], r["figure_ns"]) for r in found["reasons"]] == [
        ("missing", "host1", None),
        ("agent_away", "the agent of host3", 7 * SECOND),
        ("agent_away", "the agent of host2", 2 * SECOND),
        ("agent_stall", "the agent of host0", 600 * MS),
    ]
    assert "it did not answer" in found["reasons"][0]["text"]


def test_a_clock_that_has_moved_since_the_start_is_named() -> None:
    """The changes of its host are in time by its own clock."""
    hosts = [
        {"name": "n0", "away_ns": 300 * MS},
        {"name": "n1", "away_ns": 1 * MS},
        {"name": "n2"},  # of a run that did not start
    ]
    found = judged(done("set", 9 * SECOND, 0), facts={"counters": [], "hosts": hosts})
    (reason,) = found["reasons"]
    assert (reason["what"], reason["subject"]) == ("clock_away", "n0")
    assert reason["text"].startswith("the clock of n0 moved by 300 ms since the start")
    assert found["largest_ns"] == 300 * MS


def test_events_that_were_never_done_are_missed_in_a_completed_run() -> None:
    for outcome, state in (("completed", "degraded"), ("interrupted", "unknown")):
        judge = Judge()
        lateness.look_at_end(judge, RunEnd(outcome), planned=3, applied=2)
        assert judge.verdict()["state"] == state


def test_max_lateness_is_for_everything_that_is_judged() -> None:
    def at(allowed_ns: int) -> dict[str, Any]:
        return judged(done("set", 0, 30 * MS), judge=Judge(0, allowed_ns))

    assert (at(30 * MS)["too_late"], at(30 * MS)["state"]) == (False, "unknown")
    strict = at(30 * MS - 1)
    assert (strict["too_late"], strict["state"]) == (True, "degraded")
    assert strict["reasons"][0]["threshold_ns"] == 30 * MS - 1
    # a generous one does not hide what is beyond its own bound
    loose = judged(done("set", 0, 300 * MS), judge=Judge(0, SECOND))
    assert (loose["too_late"], loose["state"]) == (False, "degraded")


def test_exit_codes_of_a_completed_run() -> None:
    late, fine = {"verdict": {"too_late": True}}, {"verdict": {"too_late": False}}

    def code(outcome: str, summary: dict[str, Any], failed: bool) -> int:
        return RunResult(outcome, "r", Path("/"), "", summary, failed).exit_code

    assert code("completed", fine, False) == 0
    assert code("completed", late, False) == 4
    assert code("completed", fine, True) == 5
    assert code("completed", late, True) == 4
    assert code("failed", late, False) == 1
    assert code("failed", late, True) == 5, "programs have ended it"
    assert code("interrupted", late, True) == 130


def test_people_are_told_in_capitals_and_no_more_than_was_judged() -> None:
    late = list(verdict_text.told(judged(done("set", 0, SECOND))))
    assert late == [
        "DEGRADED: a change of the network took effect 1.00 s late (set a.0), at 0.000 s; the bound"
        " is 100 ms"
    ]
    assert list(verdict_text.told(judged(done("set", 0, 0)))) == [
        "UNKNOWN: what packets met on their paths was not measured",
        "  within their bounds: changes of the network",
    ]
    for nonsense in ({}, None, 7, ["x"], {"reasons": 1, "judged": [3]}):
        assert list(verdict_text.told(nonsense)) == ["UNKNOWN: nothing was checked"]


def test_the_end_of_a_run_has_five_lines_of_it_at_most() -> None:
    judge = Judge()
    for number in range(40):
        text = f"a.{number} to b.0: packets came late"
        judge.measure("path_late", f"a.{number} to b.0", SECOND + number, number, text)
    found = judge.verdict()
    assert len(found["reasons"]) == 40
    lines = list(verdict_text.told(found, verdict_text.MOST_LINES))
    assert len(lines) == 5
    assert lines[0].startswith("DEGRADED: a.39 to b.0: packets came late, at 0.000 s; the bound is")
    assert [line[:4] for line in lines[1:4]] == ["  a."] * 3
    assert lines[4] == "  … and 36 more in certificate.json"
    assert len(list(verdict_text.told(found))) == 40


@pytest.mark.parametrize("what", BOUNDS)
def test_whatever_was_within_its_bound_is_named_in_words(what: str) -> None:
    _, second = verdict_text.told({"state": "unknown", "judged": [{"what": what}]})
    named = second.partition("within their bounds: ")[2]
    assert named
    assert "_" not in named


def test_the_page_has_every_bound_with_its_figures() -> None:
    page = (ROOT / "docs/run.md").read_text(encoding="utf-8")
    for what, bound in BOUNDS.items():
        (row,) = re.findall(rf"^\| `{what}` \|.*$", page, re.MULTILINE)
        figures = [f"{bound.floor_ns // MS} ms"]
        figures += [f"{bound.delay_percent} %"] if bound.delay_percent else []
        figures += [f"{ns // MS} ms" for ns in (bound.each_ns, bound.few_floor_ns) if ns]
        assert all(figure in row for figure in figures), (row, figures)


# -- what it is fed with ----------------------------------------------------------------------


@pytest.fixture
def plan_of(tmp_path: Path) -> Callable[[str], Plan]:
    def compiled(text: str) -> Plan:
        write(compile_source(text, filename="exp.tdl", seed=None), tmp_path / "exp.plan")
        return read_plan(tmp_path / "exp.plan")

    return compiled


def test_the_smallest_delay_is_of_what_the_run_sees(plan_of: Callable[[str], Plan]) -> None:
    plan = plan_of(
        "service a\nservice b\nbridge s1\nlink a--s1 latency=8\nlink b--s1 latency=0\n"
        "at 1s a--s1 set latency=5\nat 2s a--s1 set latency=9\nat 3s a--s1 set latency=3\n"
        "at 4s quit\n"
    )

    def smallest(**options: Any) -> int:
        return lateness.smallest_delay(Schedule(plan, RunOptions(**options)))

    assert smallest() == 3 * MS
    assert smallest(until_ns=2 * SECOND) == 5 * MS
    assert smallest(start_at_ns=2 * SECOND, until_ns=2500 * MS) == 9 * MS
    assert lateness.smallest_delay(Schedule(plan, RunOptions(until_ns=0))) == 8 * MS


def pulse() -> tuple[FakeClock, list[tuple[str, int]], Pulse]:
    clock, stalls = FakeClock(7 * SECOND), list[tuple[str, int]]()
    return clock, stalls, Pulse("me", lambda who, ns: stalls.append((who, ns)), clock)


def test_nothing_is_a_stall_once_nobody_looks() -> None:
    clock, stalls, watch = pulse()
    watch.expect()
    clock.now += 2 * SECOND
    watch.end()
    assert [who for who, _ in stalls] == ["me"]
    asked = watch.asked()
    clock.now += 2 * SECOND
    watch.answered(asked, "pktd")
    assert len(stalls) == 1


def test_a_driver_that_wakes_late_stood_still() -> None:
    clock, stalls, watch = pulse()
    watch.expect()
    clock.now += TICK_NS + BOUNDS["driver_stall"].floor_ns
    watch.look()
    assert stalls == []
    watch.expect()
    clock.now += TICK_NS + 3 * SECOND
    watch.look()
    watch.look()
    assert stalls == [("me", 3 * SECOND)]


def test_who_does_not_answer_is_told_apart_from_a_driver_that_does_not_look() -> None:
    clock, stalls, watch = pulse()
    watch.expect()
    asked = watch.asked()
    clock.now += TICK_NS + 3 * SECOND  # the driver is stopped; the answer came at once
    watch.answered(asked, "pktd")
    assert stalls == [("me", 3 * SECOND)]
    watch.expect()
    asked = watch.asked()
    for _ in range(20):  # the driver looks all the time, and there is no answer
        clock.now += TICK_NS
        watch.look()
        watch.expect()
    watch.answered(asked, "pktd")
    assert stalls[1:] == [("pktd", 20 * TICK_NS)]


def test_the_wall_clock_is_that_of_the_moment() -> None:
    """The pair of readings between which least time passed is taken."""
    times = iter([0, 900, 1000, 1010, 2000, 2400, 3000, 3100, 4000, 4200])
    walls = iter([10**18 + 999, 10**18 + 1005, 10**18 + 2, 10**18 + 3, 10**18 + 4])
    found = timers.unix_ns(5 * SECOND, lambda: next(times), lambda: next(walls))
    assert found == 10**18 + 5 * SECOND


# -- logs -------------------------------------------------------------------------------------


def test_the_last_line_of_a_log_is_text_of_a_bounded_length(tmp_path: Path) -> None:
    run = HeldDirectory.hold(tmp_path)
    assert last_line(run, "a.log") == "", "there are no logs"
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs/a.log"
    log.write_bytes(b"first\nlast \x1b[31mred\xff\n\n  \n")
    replaced = "\N{REPLACEMENT CHARACTER}"
    assert last_line(run, "a.log") == f"last {replaced}[31mred{replaced}"
    log.write_bytes(b"x" * 100_000)
    assert last_line(run, "a.log") == "x" * LINE_CHARACTERS
    log.write_bytes(b"")
    assert last_line(run, "a.log") == ""
    assert last_line(run, "none") == ""


def test_only_a_regular_file_is_a_log(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "secret").write_text("secret")
    (logs / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(logs / "pipe")
    (logs / "folder").mkdir()
    run = HeldDirectory.hold(tmp_path)
    assert [last_line(run, name) for name in ("link", "pipe", "folder")] == ["", "", ""]


def test_virtual_time_is_said_with_what_it_does_not_show() -> None:
    assert judged()["time"] == "real"
    found = judged(judge=Judge(virtual=True))
    assert found["time"] == "virtual"
    *_, last = verdict_text.told(found)
    assert last.startswith("  virtual time: whatever programs computed took no time")


def test_computing_that_took_virtual_time_is_said_with_its_sums() -> None:
    facts = {"cpu": {"used_ns": 1_500_000_000, "charged_ns": 3_000_000_000, "turn_ns": 2500}}
    found = judged(judge=Judge(virtual=True, cpu_ppb=2 * 10**9), facts=facts)
    assert found["cpu"] == {"ppb": 2 * 10**9, **facts["cpu"]}
    *_, last = verdict_text.told(found)
    assert last.startswith(
        "  virtual time: computing took 2 of this machine's processor time, 1.5 s counted 3 s, so"
        " no other run is the same"
    )
    *_, last = verdict_text.told(judged(judge=Judge(virtual=True, cpu_ppb=10**9)))
    assert "computing took 1 of this machine's processor time, so no other run" in last


def test_what_was_judged_is_told_once_of_each_kind() -> None:
    """However many pairs there are; of those the one that is farthest beyond its bound."""
    judge = Judge()
    for number, (figure, threshold) in enumerate([(5, 10), (40, 20), (50, 100)]):
        judge.measure("path_late", f"pair {number}", figure, None, "late", threshold=threshold)
    judge.see("driver_stall", "the driver", 1)
    found = judge.verdict()
    assert [reason["subject"] for reason in found["reasons"]] == ["pair 1"]
    told = {one["what"]: one["subject"] for one in found["judged"]}
    assert told == {"path_late": "pair 1", "driver_stall": "the driver"}
    assert len(found["judged"]) == 2


@given(st.floats(min_value=-1e15, max_value=1e15), st.integers(1, 9))
def test_a_number_has_its_digits_and_no_exponent(value: float, count: int) -> None:
    assume(value == 0 or abs(value) >= 1e-9)
    text = say.digits(value, count)
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]*[1-9])?", text)
    assert float(text) == pytest.approx(value, rel=0.5 * 10 ** (1 - count) + 1e-12)
    usual = f"{value:.{count}g}"
    assert "e" in usual or float(text) == float(usual)


@given(st.integers(0, 10**18))
def test_a_time_that_was_stated_is_told_exactly(time_ns: int) -> None:
    text = say.seconds(time_ns)
    assert re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]{0,8}[1-9])? s", text)
    assert Decimal(text.removesuffix(" s")) * 10**9 == time_ns


@given(st.lists(st.integers(0, 10**16), min_size=2), st.integers(0, 5))
def test_times_are_told_in_their_order(times: list[int], more: int) -> None:
    times = sorted({*times, 999_499_999, 999_500_000, 999_900_000, 10**9})
    told = [milliseconds(one, more).split() for one in times]
    sizes = {"ms": 1e6, "s": 1e9}
    read = [float(figure) * sizes[unit] for figure, unit in told]
    assert read == sorted(read)
    assert all(float(figure) < 1000 for figure, unit in told if unit == "ms")
    assert read == pytest.approx(times, rel=0.006, abs=0.01)


@pytest.mark.parametrize(
    ("time_ns", "more", "said"),
    [
        (999_900_000, 0, "1.00 s"),
        (999_900_000, 1, "999.9 ms"),
        (999_400_000, 0, "999 ms"),
        (1, 0, "0.000001 ms"),
        (0, 0, "0 ms"),
    ],
)
def test_a_time_just_below_a_second(time_ns: int, more: int, said: str) -> None:
    assert milliseconds(time_ns, more) == said
