"""What probes and counters say of round trips, loss, reachability and rates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from compiler.plan.parts.expectations import LOSS, RTT, THROUGHPUT, UNREACHABLE
from runtime.expectations.finding import BPS, NS, PPB, compared
from runtime.nearest_rank import nearest_rank
from runtime.options import RunOptions
from runtime.page.downsample import read_some
from runtime.page.grid import TimeGrid
from runtime.page.page_probes import PERMILLE, Probes
from runtime.probing import probe_record
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import PROBES
from tests.certify.scene import MS, SECOND, TDL, Scene
from tests.expectations.support import expecting, finding, findings, logged
from tstorm.comparing.run_metrics import gather
from tstorm.reporting.csv_tables import TABLES
from tstorm.reporting.run_facts import RunFacts
from tstorm.testing import pair_series

AB = ("a.0", "b.0")
CHANGING = TDL.replace(
    "at 60s quit\n",
    "at 20s a--s set latency=25ms\nat 30s a--s leave\nat 35s a--s join\nat 60s quit\n",
)
PERCENT = 10**7  # in ppb


def _scene(tmp_path: Path, text: str = TDL, **how: Any) -> Scene:
    scene = Scene(tmp_path, text, **how)
    scene.probe()
    return scene


def test_round_trips_are_composed_of_both_ways(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=25 * MS))
    assert (found["state"], found["subject"], found["unit"]) == ("passed", "a.0 -> b.0", "ns")
    assert 20 * MS < found["figure"] < 21 * MS
    assert found["threshold"] == 25 * MS
    assert "one-way probes there and back" in found["message"]
    assert finding(scene, expecting(scene, RTT, *AB, op=">", value=25 * MS))["state"] == "failed"


def test_probes_that_go_there_and_back_are_round_trips(tmp_path: Path) -> None:
    scene = _scene(tmp_path, measure="round-trip")
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=25 * MS))
    assert found["state"] == "passed"
    assert 20 * MS < found["figure"] < 21 * MS
    assert "one-way" not in found["message"]


def test_what_is_lost_there_or_back_proves_no_more_than_it_does(tmp_path: Path) -> None:
    """3 of 198 round trips were lost; from 30 s to 35 s the plan has no path."""
    scene = Scene(tmp_path, CHANGING, measure="round-trip")
    scene.probe(lambda sent, delay: None if sent in (SECOND, 3 * SECOND, 5 * SECOND) else delay)
    when = {"to_ns": 20 * SECOND - 1}
    little = expecting(scene, LOSS, *AB, op="<", value=2 * PERCENT, **when)
    assert finding(scene, little)["state"] == "passed"
    for op, value in (("<", PERCENT), (">", PERCENT)):
        found = finding(scene, expecting(scene, LOSS, *AB, op=op, value=value, **when))
        assert found["state"] == "not_measured"
        assert "1.52 % of 198 round trips were lost, which may be on the way" in found["message"]
    cut = {"from_ns": 31 * SECOND, "to_ns": 34 * SECOND}
    assert finding(scene, expecting(scene, UNREACHABLE, *AB, **cut))["state"] == "passed"
    scene.probe(lambda _sent, _delay: None)
    open_ = {"from_ns": 21 * SECOND, "to_ns": 24 * SECOND}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **open_))
    assert found["state"] == "not_measured"
    assert "which may be on the way back" in found["message"]


@pytest.mark.parametrize(
    ("statistic", "holds"),
    [("median", True), ("p90", False), ("max", False), ("mean", True), ("min", True)],
)
def test_statistics_of_round_trips(tmp_path: Path, statistic: str, holds: bool) -> None:
    """From 20 s to 24 s the last second and a half takes 40 ms longer: 15 of 40 probes there."""
    scene = Scene(tmp_path)
    scene.probe(
        lambda sent, delay: delay and delay + 40 * MS * (22.5 * SECOND <= sent < 24 * SECOND)
    )
    when = {"from_ns": 20 * SECOND, "to_ns": 24 * SECOND - 1}
    wanted = expecting(scene, RTT, *AB, op="<", value=55 * MS, statistic=statistic, **when)
    assert (finding(scene, wanted)["state"] == "passed") == holds


def test_a_failure_says_when_and_the_log_around_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.probe(lambda sent, delay: delay and delay + 40 * MS * (sent == 12 * SECOND))
    logged(scene, "a.0", [(5, "early"), (12, "slow answer"), (30, "late")])
    wanted = expecting(scene, RTT, *AB, op="<", value=55 * MS, statistic="max")
    found = finding(scene, wanted)
    assert found["state"] == "failed"
    assert 11.8 * SECOND < found["at_ns"] <= 12 * SECOND
    assert [line["line"] for line in found["log"]] == ["slow answer"]


def test_part_of_the_planned_round_trip(tmp_path: Path) -> None:
    """20 ms until 20 s, then 60: a bound in ms would not fit both."""
    scene = _scene(tmp_path, CHANGING)
    of_plan = {"op": "<", "value": 110 * PERCENT, "of_plan": True}
    for span in ((0, 20), (20, 30)):
        when = {"from_ns": span[0] * SECOND, "to_ns": span[1] * SECOND}
        found = finding(scene, expecting(scene, RTT, *AB, **of_plan, **when))
        assert found["state"] == "passed"
        assert found["threshold"] == (22 if span[0] == 0 else 66) * MS


def test_within_it_holds_from_some_moment_on(tmp_path: Path) -> None:
    """The probes' median over 19 s to 22 s is the longer one; before 20 s it is the shorter one."""
    scene = _scene(tmp_path, CHANGING)
    when = {"from_ns": 19 * SECOND, "to_ns": 21 * SECOND}
    longer = {"op": ">", "value": 50 * MS, "statistic": "min", **when}
    assert finding(scene, expecting(scene, RTT, *AB, **longer))["state"] == "failed"
    assert (
        finding(scene, expecting(scene, RTT, *AB, eventually=True, **longer))["state"] == "passed"
    )
    shorter = {**longer, "op": "<", "statistic": "max", "eventually": True}
    assert finding(scene, expecting(scene, RTT, *AB, **shorter))["state"] == "failed"


def test_too_few_probes_are_no_measurement_and_say_what_would_help(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    short = {"from_ns": 10 * SECOND, "to_ns": 10 * SECOND + 150 * MS}
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=MS, **short))
    assert found["state"] == "not_measured"
    assert "2 round trips" in found["message"]
    assert "a longer interval" in found["message"]
    assert (found["figure"], found["at_ns"]) == (None, None)


def test_a_pair_that_fails_is_told_although_another_was_not_measured(tmp_path: Path) -> None:
    scene = _scene(tmp_path, TDL.replace("service b img=x", "service b img=x replicas=2"))
    a, b, c = (scene.numbers[name] for name in ("a.0", "b.0", "b.1"))
    both = ((a, c), (a, b))
    found = finding(scene, expecting(scene, RTT, op="<", value=MS, pairs=both))
    assert (found["state"], found["subject"]) == ("failed", "a.0 -> b.0")
    assert "1 of 2 failed" in found["message"]
    found = finding(scene, expecting(scene, RTT, op=">", value=MS, pairs=both))
    assert (found["state"], found["subject"]) == ("not_measured", "a.0 -> b.1")


def test_loss_of_probes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.probe(lambda sent, delay: None if sent % (10 * SECOND) == 0 else delay)
    found = finding(scene, expecting(scene, LOSS, *AB, op="<", value=2 * PERCENT))
    lost = 5 * 10**9 // 598  # the very first probe met the change at the start
    assert (found["state"], found["figure"], found["unit"]) == ("passed", lost, "ppb")
    found = finding(scene, expecting(scene, LOSS, *AB, op="<", value=lost))
    assert (found["state"], found["at_ns"]) == ("failed", 10 * SECOND)
    after = {"from_ns": 10 * SECOND, "to_ns": 15 * SECOND}
    none = {"op": "<=", "value": 0, **after}
    assert finding(scene, expecting(scene, LOSS, *AB, **none))["state"] == "failed"
    found = finding(scene, expecting(scene, LOSS, *AB, eventually=True, **none))
    assert (found["state"], found["figure"]) == ("passed", 0)


def test_what_a_queue_holds_up_until_the_end_is_not_known(tmp_path: Path) -> None:
    """For the last second the queue is full: a probe that is not there may wait in it."""
    slow = TDL.replace("link a--s latency=5ms up=100Mb", "link a--s latency=5ms up=1Mb queue=500KB")
    scene = Scene(tmp_path, slow.replace("at 60s quit", "at 30s a--s set latency=6ms\nat 60s quit"))
    scene.probe(lambda sent, delay: None if 28 * SECOND < sent < 30 * SECOND else delay)
    scene.flow("a.0", "b.0", 4 * 10**6, 26, 30)
    when = {"from_ns": 20 * SECOND, "to_ns": 30 * SECOND}
    few = finding(scene, expecting(scene, LOSS, *AB, op="<", value=PERCENT, **when))
    assert few["state"] == "not_measured"
    assert "or they waited in a queue until something changed" in few["message"]
    many = finding(scene, expecting(scene, LOSS, *AB, op="<=", value=21 * PERCENT, **when))
    assert many["state"] == "passed"


def test_a_bound_that_is_just_missed_is_told_apart_from_the_figure() -> None:
    assert compared(14_000_384, 14_000_000, NS) == ("14.0004 ms", "14 ms")
    assert compared(14_000_000, 14_000_000, NS) == ("14 ms", "14 ms")
    assert compared(13 * MS, 14 * MS, NS) == ("13 ms", "14 ms")
    assert compared(100_000_001, 100_000_000, PPB) == ("10.0000001 %", "10 %")
    assert compared(5_000_001, 5_000_000, BPS) == ("5.000001 Mb/s", "5 Mb/s")
    assert compared(3_000_000_001, 3_000_000_000, NS) == ("3.000000001 s", "3.000000000 s")


def test_few_bursts_say_little_of_a_loss(tmp_path: Path) -> None:
    """598 probes of a path that loses 5 % in bursts of 8 packets are some five bursts."""
    bursts = TDL.replace("a--s latency=5ms", "a--s latency=5ms loss=5% burst=8")
    scene = Scene(tmp_path, bursts)
    scene.probe(lambda sent, _: None if 20 * SECOND <= sent < 22 * SECOND else 10 * MS)
    for op, value in (("<", 4 * PERCENT), (">", 2 * PERCENT)):
        found = finding(scene, expecting(scene, LOSS, *AB, op=op, value=value))
        assert found["state"] == "not_measured"
        assert "bursts, and of 598 probes 3.34 % were lost, which tells" in found["message"]
        assert "give or take 10.1 %, and not whether it is" in found["message"]
    far = finding(scene, expecting(scene, LOSS, *AB, op="<", value=20 * PERCENT))
    assert (far["state"], far["figure"]) == ("passed", 20 * 10**9 // 598)


def test_a_lossy_end_is_not_measured_by_what_arrived(tmp_path: Path) -> None:
    """From 55 s on half are lost: 15 are told, and of the last two seconds none, but as open."""
    scene = Scene(tmp_path)
    scene.probe(lambda sent, delay: None if sent > 55 * SECOND and sent % (200 * MS) else delay)
    whole = {"from_ns": 49_900 * MS, "to_ns": scene.plan.end_ns}  # 15 to 24 of 100 were lost

    def of(op: str, percent: int, **when: Any) -> dict[str, Any]:
        value = percent * PERCENT
        return finding(scene, expecting(scene, LOSS, *AB, op=op, value=value, **{**whole, **when}))

    found = of("<", 20)
    assert found["state"] == "not_measured"
    assert (
        "15 of 100 probes were lost, and of 9 of them nobody knows, since the run"
        in found["message"]
    )
    assert "it was 15 % to 24 %, where less than 20 % is expected" in found["message"]
    assert [of("<", 25)[key] for key in ("state", "figure")] == ["passed", 24 * PERCENT]
    assert "until something changed, at most 24 %, full" in of("<", 25)["message"]
    assert [of("<", 15)[key] for key in ("state", "figure")] == ["failed", 15 * PERCENT]
    assert [of(">=", 15)[key] for key in ("state", "figure")] == ["passed", 15 * PERCENT]
    assert [of(">", 24)[key] for key in ("state", "figure")] == ["failed", 24 * PERCENT]
    # From some moment on: of those that are known long before the end, and of the last ones.
    assert of("<", 1, eventually=True)["state"] == "not_measured"
    assert of("<", 90, eventually=True)["state"] == "passed"
    [*_, last] = [one for one in scene.judged()["evidence"].pairs if one["from"] == "a.0"]
    told = [last["measured"][name] for name in ("probes", "lost", "open")]
    assert told == [599 - 10, 15, 10]  # the very first one met the change at the start
    late = of("<", 1, from_ns=58 * SECOND + MS)
    assert late["state"] == "not_measured"
    assert late["message"].startswith(
        "a.0 -> b.0: 0 of 18 probes were lost, and of 9 of them nobody"
    )


@pytest.mark.parametrize("how", [{"measure": "round-trip"}, {"reports_at_end": False}])
def test_what_is_told_nowhere_is_reckoned_by_the_interval(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    """Nobody reported at the end of the run: of the last seconds only those are told that came."""
    scene = _scene(tmp_path, **how)
    latest = {"op": "<", "value": 8 * PERCENT, "from_ns": 40 * SECOND, "to_ns": scene.plan.end_ns}
    assert finding(scene, expecting(scene, LOSS, *AB, **latest))["state"] == "passed"
    scene.forget(lambda sent, _: sent > 57 * SECOND and sent % (300 * MS) != 0)
    found = finding(scene, expecting(scene, LOSS, *AB, **latest))
    assert found["state"] == "not_measured"
    sooner = {**latest, "value": 20 * PERCENT}
    assert finding(scene, expecting(scene, LOSS, *AB, **sooner))["state"] == "passed"


def test_nothing_came_through_as_long_as_somebody_looked(tmp_path: Path) -> None:
    """Probing ended at 31 of 60 s, one second after the path went."""
    scene = _scene(tmp_path, CHANGING.replace("at 35s a--s join\n", ""))
    scene.forget(lambda sent, _delay: sent > 31 * SECOND)
    when = {"from_ns": 30 * SECOND, "to_ns": 45 * SECOND}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **when))
    assert found["state"] == "not_measured"
    assert "nobody would have seen what came through" in found["message"]
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **{**when, "to_ns": 32 * SECOND}))
    assert found["state"] == "passed"


def test_round_trips_are_of_one_network(tmp_path: Path) -> None:
    """200 ms each way, 700 from 20 s on: the way back of the last ones before it is no longer."""
    text = CHANGING.replace("a--s latency=5ms", "a--s latency=195ms").replace("=25ms", "=695ms")
    scene = _scene(tmp_path, text)
    when = {"from_ns": 10 * SECOND, "to_ns": 20 * SECOND, "statistic": "max"}
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=420 * MS, **when))
    assert found["state"] == "passed"


def test_unreachable_while_a_link_is_away(tmp_path: Path) -> None:
    scene = _scene(tmp_path, CHANGING)
    when = {"from_ns": 30 * SECOND, "to_ns": 35 * SECOND}
    assert finding(scene, expecting(scene, UNREACHABLE, *AB, **when))["state"] == "passed"
    longer = {"from_ns": 30 * SECOND, "to_ns": 36 * SECOND}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **longer))
    assert found["state"] == "failed"
    assert 35 * SECOND < found["at_ns"] < 35.2 * SECOND
    soon = {"from_ns": 30 * SECOND, "to_ns": 30 * SECOND + 5 * MS, "eventually": True}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **soon))
    assert found["state"] == "passed"
    assert "to 35 s" in found["message"]
    early = {"from_ns": 29 * SECOND, "to_ns": 29 * SECOND + 100 * MS, "eventually": True}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **early))
    assert found["state"] == "failed"
    told = re.search(r"(\d+) of (\d+) probes came through", found["message"])
    assert told and told[1] == told[2], "those before its time are not counted as lost"


def test_packets_that_come_through_a_closed_path(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHANGING)
    scene.probe(lambda _sent, delay: 10 * MS if delay is None else delay)
    when = {"from_ns": 30 * SECOND, "to_ns": 35 * SECOND}
    found = finding(scene, expecting(scene, UNREACHABLE, *AB, **when))
    assert found["state"] == "failed"
    assert "the run is INVALID" in found["message"]


def test_where_every_probe_is_lost_no_round_trip_is_short(tmp_path: Path) -> None:
    scene = _scene(tmp_path, CHANGING)
    when = {"from_ns": 31 * SECOND, "to_ns": 34 * SECOND}
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=SECOND, **when))
    assert (found["state"], found["figure"], found["threshold"]) == ("failed", None, SECOND)


def test_rates_of_what_was_delivered(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    scene.flow("a.0", "b.0", 40_000_000, begin_s=10, end_s=20)
    when = {"from_ns": 12 * SECOND, "to_ns": 18 * SECOND}
    found = finding(scene, expecting(scene, THROUGHPUT, *AB, op=">", value=39 * 10**6, **when))
    assert (found["state"], found["unit"]) == ("passed", "bps")
    assert abs(found["figure"] - 40_000_000) < 100_000
    most = {"op": ">", "value": 41 * PERCENT, "of_plan": True, **when}
    found = finding(scene, expecting(scene, THROUGHPUT, *AB, **most))
    assert (found["state"], found["threshold"]) == ("failed", 41_000_000)
    whole = finding(scene, expecting(scene, THROUGHPUT, *AB, op=">", value=39 * 10**6))
    assert whole["state"] == "failed"
    starts = {"from_ns": 9 * SECOND, "to_ns": 11 * SECOND, "eventually": True}
    found = finding(scene, expecting(scene, THROUGHPUT, *AB, op=">", value=39 * 10**6, **starts))
    assert found["state"] == "passed"
    assert (
        finding(scene, expecting(scene, THROUGHPUT, "b.0", "a.0", op="<", value=1, **when))["state"]
        == "passed"
    )


def test_a_path_without_a_rate_has_no_part_of_one(tmp_path: Path) -> None:
    scene = _scene(tmp_path, TDL.replace(" up=100Mb symmetric", ""))
    scene.flow("a.0", "b.0", 40_000_000)
    wanted = expecting(scene, THROUGHPUT, *AB, op=">", value=90 * PERCENT, of_plan=True)
    found = finding(scene, wanted)
    assert (found["state"], "has no limit" in found["message"]) == ("not_measured", True)
    short = {"from_ns": SECOND, "to_ns": SECOND + 100 * MS}
    found = finding(scene, expecting(scene, THROUGHPUT, *AB, op=">", value=1, **short))
    assert found["state"] == "not_measured"


def test_without_probes_rates_are_known_and_nothing_else(tmp_path: Path) -> None:
    scene = Scene(tmp_path, options=RunOptions(probes=False))
    scene.flow("a.0", "b.0", 40_000_000)
    wanted = [
        expecting(scene, RTT, *AB, op="<", value=SECOND),
        expecting(scene, LOSS, *AB, op="<", value=PERCENT),
        expecting(scene, UNREACHABLE, *AB),
        expecting(scene, THROUGHPUT, *AB, op=">", value=10**6),
    ]
    found = findings(scene, *wanted)
    assert [one["state"] for one in found] == ["not_measured"] * 3 + ["passed"]
    assert all("--no-probes" in one["message"] for one in found[:3])


def test_an_interval_that_the_run_did_not_reach(tmp_path: Path) -> None:
    scene = _scene(tmp_path, options=RunOptions(until_ns=20 * SECOND))
    rtt = {"op": "<", "value": 25 * MS}
    after = {"from_ns": 30 * SECOND, "to_ns": 40 * SECOND}
    half = {"from_ns": 10 * SECOND, "to_ns": 40 * SECOND}
    found = findings(
        scene,
        *(expecting(scene, RTT, *AB, **rtt, **when) for when in (after, half, {})),
    )
    assert [one["state"] for one in found] == ["not_measured", "not_measured", "passed"]
    assert found[0]["message"] == "the run ended at 20 s, before 30 s"
    assert found[1]["message"].startswith("the run ended at 20 s, before 40 s; until then: ")


def test_a_run_that_was_interrupted_leaves_the_rest_open(tmp_path: Path) -> None:
    scene = _scene(tmp_path, options=RunOptions(until_ns=20 * SECOND))
    wanted = expecting(scene, RTT, *AB, op="<", value=25 * MS)
    found = finding(scene, wanted, outcome="interrupted")
    assert found["state"] == "not_measured"


def test_doubts_of_the_verdict_are_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.probe(lambda _sent, delay: delay and delay + 5 * MS)
    found = finding(scene, expecting(scene, RTT, *AB, op="<", value=25 * MS))
    assert found["state"] == "failed"
    assert "; the run is DEGRADED: a.0 to b.0: packets came" in found["message"]


def test_the_planned_rate_of_a_trace_is_that_of_the_time(tmp_path: Path) -> None:
    """10 s of 1.2 Mb/s and 10 s of 12 Mb/s by turns."""
    lines = [*range(10, 10_001, 10), *range(10_001, 20_001)]
    (tmp_path / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    text = TDL.replace("latency=5ms up=100Mb symmetric", "trace=cell.trace", 1)
    scene = _scene(tmp_path, text)
    scene.flow("a.0", "b.0", 1_200_000)
    how = {"op": ">", "value": 90 * PERCENT, "of_plan": True}
    for from_s, state in ((2, "passed"), (12, "failed"), (22, "passed")):
        when = {"from_ns": from_s * SECOND, "to_ns": (from_s + 6) * SECOND}
        found = finding(scene, expecting(scene, THROUGHPUT, *AB, **how, **when))
        assert found["state"] == state, found["message"]


@pytest.mark.parametrize("measure", ["one-way", "round-trip"])
@pytest.mark.parametrize("lost", [0, 7], ids=["none lost", "each seventh lost"])
def test_all_tell_the_same_median(tmp_path: Path, measure: str, lost: int) -> None:
    """By docs/run.md, Medians: of an even number of probes, while nothing changes for the pair."""
    pairs = (AB, AB[::-1]) if measure == "one-way" else (AB,)
    scene = Scene(tmp_path, TDL.replace("5ms", "5ms jitter=2ms"), pairs=pairs, measure=measure)
    scene.probe(lambda sent, delay: None if lost and sent // MS % lost == 0 else delay)
    scene.forget(lambda sent, _delay: not SECOND <= sent < 58 * SECOND - 100 * MS * bool(lost))
    evidence = scene.judged()["evidence"]
    held = HeldDirectory.hold(scene.place.resolve())
    expected = finding(scene, expecting(scene, RTT, *AB, op="<", value=SECOND))["figure"]
    recorded = probe_record.read(held)
    assert recorded is not None
    ((_, trips),) = gather(recorded, 1).round_trips.items()
    round_trips = pair_series.read(held, scene.plan, AB, "rtt")
    assert len(round_trips.measured) % 2 == 0, "there is no one in the middle"
    assert round_trips.median() == nearest_rank(sorted(trips)) == expected
    header, report = read_some(held, PROBES)
    spread = Probes(TimeGrid(0, SECOND, 60), header, len(pairs), 1)
    spread.take(report)
    facts = RunFacts(cast(RunDirectory, held), scene.plan, {}, {}, "", (), evidence.pairs)
    table = TABLES["paths"]
    row = dict(zip(table.columns, next(table.rows(facts)), strict=True))
    one_way = measure == "one-way"
    delays = pair_series.read(held, scene.plan, AB, "delay") if one_way else round_trips
    on_the_page = spread.record(0)["cdf"][PERMILLE.index(500)]
    assert on_the_page == row["measured_delay_p50_ns"] == delays.median()
