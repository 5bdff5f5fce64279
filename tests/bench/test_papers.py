"""The published experiments' calculations, and their runner: what needs no measuring."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import NormalDist

import pytest

from bench import ROOT, report
from bench.engine.wiring import smooth_burst_bytes
from bench.errors import BenchError
from bench.papers import __main__ as runner
from bench.papers import (
    database,
    destinations,
    dynamics,
    flows,
    kernel,
    pings,
    rates,
    rows,
    scalefree,
    sharing,
    theory,
    trunk,
)
from bench.papers.catalogue import ALL, Experiment
from bench.papers.context import SCENES, Context, placed
from bench.papers.rows import ABSOLUTE, BELOW, HOLDS, LEAST, MOST, RELATIVE, TOLD, goal, row
from bench.tables import Record
from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan
from compiler.sources import SourceFolder
from tests.plan.topologies import instances
from tests.runs.delivered import Delivered
from tests.runs.runlog import IncompleteRunError, Planned


def test_a_full_link_carries_its_rate_less_headers() -> None:
    assert theory.goodput_bps(1.5e9) == pytest.approx(1.448e9)
    assert theory.ethernet_bps(1_500_000_000) == 1_514_000_000
    # 1,448 MB through 1.5 Gb/s of which 0.3 Gb/s are taken: 10 s times 1.5 / 1.2 times 8 / 8.
    assert theory.copy_seconds(1_448_000_000, 1.5e9, 0.3e9) == pytest.approx(10.0)
    assert theory.deviation(98.0, 100.0) == pytest.approx(0.02)


def test_the_papers_rates_are_told_with_and_without_headers() -> None:
    """Like with like: 954 Mb/s of payload are 988 Mb/s of IP."""
    assert rates.printed(1e9, 954e6) == "954 Mb/s, -4.6 %; of IP -1.2 %"
    assert pytest.approx(988.3e6, rel=1e-4) == 954e6 / theory.PAYLOAD


def test_jitter_is_held_against_what_was_configured() -> None:
    assert theory.jitter_ratio([9.0, 11.0, 9.0, 11.0], 0.5) == 2.0
    middle = NormalDist(100.0, 0.5).samples(2000, seed=1)
    assert theory.middle_ratio(middle, 0.5) == pytest.approx(1.0, rel=0.1)
    stalled = [*middle[:-20], *[150.0] * 20]
    assert theory.middle_ratio(stalled, 0.5) == pytest.approx(1.0, rel=0.1)
    assert theory.jitter_ratio(stalled, 0.5) > 5
    # The relative standard error of a deviation of n normal samples is one over the root of 2n.
    assert 2.8 / math.sqrt(2 * pings.PROBES) < pings.WITHIN


def test_what_the_machine_adds_is_told_by_a_pair_without_jitter() -> None:
    said = pings._beside([6.01, 6.61], 0.4)
    assert "a deviation of 0.300 ms in the same run, which makes 1.250 of this jitter" in said
    assert said.endswith("its mean was off by +310 µs")


def test_single_late_round_trips_are_told_apart() -> None:
    assert scalefree._single([0.01, -0.1]) == ""
    said = scalefree._single([0.01, -0.01, 5.0])
    assert said == "1 of 3 round trips were more than 0.2 ms off; the others make 0.00010 ms²"


def test_a_share_without_theory_is_told_beside_the_kernels_own_runs() -> None:
    own = [{"long flow beside requests": 100e6}, {"long flow beside requests": 140e6}]
    made = flows._third("long flow beside requests", 90e6, "hosts 2", own, "late")
    assert made["wanted"] == 120e6
    assert made["why"] == f"{flows.BY_PAIR}; the kernel's own runs had 100 Mb/s and 140 Mb/s; late"
    assert flows._third("requests beside it (wrk)", 90e6, "hop-exact", [], "")["wanted"] is None


def test_the_error_of_table_4_is_a_mean_of_squares() -> None:
    assert theory.mean_squared([0.1, -0.1, 0.2]) == pytest.approx(0.02)


def test_shapes_allow_slack_between_neighbours_but_not_between_the_ends() -> None:
    assert theory.shape_falls([10, 10.5, 4], 0.1)
    assert not theory.shape_falls([10, 12, 4], 0.1)
    assert not theory.shape_falls([10, 10.5, 10.2], 0.1)
    assert theory.shape_grows([1, 5, 4.9], 0.1)
    assert not theory.shape_grows([5, 1, 9], 0.1)


def compiled(source: Path) -> Plan:
    """With the files beside it."""
    return compile_source(source.read_text(), sources=SourceFolder(source.parent)).plan


def test_an_update_waits_for_the_far_replica_and_a_read_does_not(tmp_path: Path) -> None:
    """The theory of Figs 11 and 12 is the plan's."""
    plan = compiled(placed(tmp_path, "geo", {}))
    near, far = Planned(plan, "bench.0", "frankfurt.0"), Planned(plan, "frankfurt.0", "sydney.0")
    for at_s, share in ((100, 1.0), (300, 0.5), (500, 1.0)):
        wanted = near.at(at_s).rtt_ms + far.at(at_s).rtt_ms
        assert database.far_ms(share) == pytest.approx(wanted)
    assert near.at(100).rtt_ms == pytest.approx(database.NEAR_MS)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENES.glob("*.tdl")))
def test_the_scenes_compile_as_they_are(name: str, tmp_path: Path) -> None:
    assert compiled(placed(tmp_path, name, {})).end_ns > 0


def test_the_regions_are_those_of_the_table(tmp_path: Path) -> None:
    plan = compiled(placed(tmp_path, "jitter", {"probes": 5}))
    for number, (_, rtt_ms, jitter_ms, _) in enumerate(pings.TABLE_3):
        there = Planned(plan, f"source.{number}", f"region.{number}")
        assert there.at(1.0).rtt_ms == pytest.approx(rtt_ms)
        jitters = jitter_of(plan, f"source.{number}", f"region.{number}")
        assert jitters == (round(jitter_ms * 1e6), 0)
    still = len(pings.TABLE_3)
    assert jitter_of(plan, f"source.{still}", f"region.{still}") == (0, 0)
    assert Planned(plan, f"source.{still}", f"region.{still}").at(1.0).rtt_ms == pings._STILL_RTT_MS


def jitter_of(plan: Plan, source: str, dest: str) -> tuple[int, int]:
    """Of the link there and back at 1 s, in ns."""
    names = [node.name for node in plan.topology.nodes]
    ends = names.index(source), names.index(dest)
    state = plan.state_at(1_000_000_000)
    by_ends = {
        (link.src, link.dst): now.jitter_ns
        for link, now in zip(state.topology.links, state.links, strict=True)
    }
    return by_ends[ends], by_ends[ends[::-1]]


def test_the_delays_are_on_the_way_there(tmp_path: Path) -> None:
    plan = compiled(placed(tmp_path, "delays", {"probes": 5}))
    for delay_ms in range(len(pings.TABLE_42)):
        found = Planned(plan, f"client.{delay_ms}", f"server.{delay_ms}").at(1.0).rtt_ms
        assert found == pytest.approx(delay_ms)


def test_two_clients_rates_rise_and_what_is_not_shaped_stays(tmp_path: Path) -> None:
    """Figs 4.12 to 4.15: step n has n times the unit, and delays are on the way there only."""
    values = {"of_two": '"latency=5ms"', "unit": 10_000, "seconds": 3}
    plan = compiled(placed(tmp_path, "trunk", values))
    for step in range(1, trunk.STEPS + 1):
        one, two = (Planned(plan, client, "server.0").at(3 * step + 2) for client in TWO)
        assert (one.rate_bps, two.rate_bps) == (step * 10_000_000, trunk.TRUNK_BPS)
        assert (one.rtt_ms, two.rtt_ms) == pytest.approx((1, 5))
    assert trunk.margin([9.0, 10.0, 11.0, 10.0]) == pytest.approx(1.96 * 0.8165 / 2 / 10, rel=1e-3)


TWO = ("one.0", "two.0")


def test_values_replace_lets_and_nothing_else(tmp_path: Path) -> None:
    text = placed(tmp_path, "rates", {"rate": "1Gb", "cc": "bbr"}).read_text()
    assert "let rate = 1Gb\n" in text
    assert "let cc = bbr\n" in text
    assert "let rate = 128Kb" not in text
    assert "let seconds = 20\n" in text
    with pytest.raises(BenchError, match="0 lines 'let no"):
        placed(tmp_path, "rates", {"no": 1})


def test_a_large_network_has_only_steady_links_and_the_joined_ask_each_other() -> None:
    plan = compile_source(scalefree.text(1000, 20, 10)).plan
    state = plan.state_at(1_000_000_000)
    assert len(plan.topology.nodes) == 1000
    assert all(now.jitter_ns == now.loss_ppb == now.rate_bps == 0 for now in state.links)
    joined = [f"n{number}.0" for number in range(20)]
    names = [node.name for node in plan.topology.nodes]
    assert names[:20] == joined
    assert all("." not in name for name in names[20:])  # bridges
    assert instances(1000) == 666


def test_the_six_clients_come_and_go_as_the_paper_says(tmp_path: Path) -> None:
    found = sharing.stages()
    assert [len(stage.shares) for stage in found] == [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]
    plan = compiled(placed(tmp_path, "shares", {}))
    assert found[-1].end_s * 1e9 == plan.end_ns
    names = [node.name for node in plan.topology.nodes]
    for stage in found:
        nodes = plan.state_at(round((stage.start_s + stage.end_s) / 2 * 1e9)).nodes
        up = {name for name, what in zip(names, nodes, strict=True) if what == "up"}
        assert {a for a, _ in stage.shares} == {name for name in up if name[0] == "c"}


@pytest.mark.parametrize(
    ("target", "wanted", "ours", "expected"),
    [
        (goal(RELATIVE, 0.01), 100.0, 101.0, True),
        (goal(RELATIVE, 0.01), 100.0, 98.9, False),
        (goal(ABSOLUTE, 0.05), 10.0, 10.04, True),
        (goal(ABSOLUTE, 0.05), 10.0, 10.06, False),
        (goal(LEAST, 0.1), 100.0, 145.0, True),
        (goal(LEAST, 0.1), 100.0, 89.0, False),
        (goal(MOST, 20.0), 100.0, 60.0, True),
        (goal(MOST, 20.0), 100.0, 121.0, False),
        (goal(BELOW, 0.005), None, 0.004, True),
        (goal(BELOW, 0.005), None, 0.006, False),
        (goal(HOLDS), None, 0.0, False),
        (goal(TOLD), 1.0, 5.0, None),
    ],
)
def test_a_row_is_judged_by_its_goal(
    target: Record, wanted: float | None, ours: float, expected: bool | None
) -> None:
    assert rows.met(row("x", "hop-exact", "", ours, wanted, goal=target)) is expected


def test_a_missed_row_is_marked_with_its_reason() -> None:
    made = row("x", "hop-exact", "b/s", 98e6, 100e6, goal=goal(RELATIVE, 0.01), why="a stall")
    [told] = rows.missed([made])
    assert told == "x, hop-exact: 98 Mb/s (-2.00 %) instead of 100 Mb/s, ±1 %: a stall"
    [table] = rows.TABLES
    assert "**missed**: a stall" in table([made])
    assert "(met in virtual time): a stall" in table([{**made, "virtual": 100e6}])
    assert "no reason is known" in table([{**made, "why": ""}])


@pytest.mark.parametrize(
    ("ours", "why", "late_us", "told"),
    [
        (98e6, "", 2367, "1 of 100 timers of this machine was 2.4 ms late, or later, "),
        (98e6, "", 200, ""),
        (98e6, "a stall", 2367, "a stall"),
        (100e6, "", 2367, ""),
    ],
)
def test_late_timers_are_the_reason_where_none_is_known(
    ours: float, why: str, late_us: int, told: str
) -> None:
    made = row("x", "hop-exact", "b/s", ours, 100e6, goal=goal(RELATIVE, 0.01), why=why)
    [found] = rows.blame([made], {"timers_late_p99_us": late_us})
    assert found["why"].startswith(told)
    assert bool(found["why"]) == bool(told)


def test_virtual_time_is_a_second_column_of_the_row_it_belongs_to() -> None:
    made = [row("x", "hop-exact", "ms", 2.0, 1.0), row("x", "virtual", "ms", 1.0, 1.0)]
    [found] = rows.fold([*made, row("x", "hosts 2", "ms", 3.0, 1.0)][:2], "hop-exact")
    assert found["virtual"] == 1.0
    alone = rows.fold([row("y", "virtual", "ms", 1.0, 1.0)], "hop-exact")
    assert [one["where"] for one in alone] == ["virtual"]


def test_what_a_change_takes_is_read_from_counters(tmp_path: Path) -> None:
    """8 Mb/s, from 2 s on 0.8: reached in the first window behind the change."""
    counts = [min(n, 20) * 100_000 + max(n - 20, 0) * 10_000 for n in range(50)]
    delivered = Delivered(counted(tmp_path, counts))
    step = Planned(compile_source(CHANGE).plan, *dynamics.ENDS).at(3.0)
    assert step.rate_bps == 800_000
    assert dynamics.soon(delivered, step, falls=True) <= 0.1


CHANGE = (
    "service c1 exec='x'\nservice sv1 exec='x'\nlink c1--sv1 latency=1ms rate=8Mb\n"
    "at 2s c1--sv1 set rate=800Kb\nat 5s quit\n"
)


def counted(folder: Path, counts: list[int]) -> Path:
    """A run of CHANGE in which c1 has delivered so many bytes by each 100 ms."""
    write(compile_source(CHANGE, filename="x.tdl", seed=None), folder / "plan")
    lines: list[Record] = [{"columns": {"pairs": ["src", "dst", "delivered_bytes"]}}]
    lines += [
        {"elapsed_ns": number * 10**8, "pairs": [[0, 1, count]]}
        for number, count in enumerate(counts)
    ]
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_low_rate_is_the_slope_of_its_counters(tmp_path: Path) -> None:
    """Packets of 1,500 bytes each 93.75 ms, counted each 100 ms: the first and the last sample
    alone would be up to 1 % off."""
    counts = [1500 * math.floor(number * 100 / 93.75) for number in range(160)]
    delivered = Delivered(counted(tmp_path, counts))
    assert delivered.slope_bps(dynamics.ENDS, 1.0, 15.5) == pytest.approx(128_000, rel=0.001)
    with pytest.raises(IncompleteRunError, match="too few samples"):
        delivered.slope_bps(dynamics.ENDS, 10.0, 40.0)


def test_a_peers_link_is_shaped_to_the_same_rate_of_ip() -> None:
    [tbf, netem] = kernel.shape(100_000_000, "delay 3ms")
    assert tbf.split()[:6] == ["root", "handle", "1:", "tbf", "rate", "100933333bit"]
    assert tbf.endswith("limit 625000")  # 50 ms, as TDL's default
    assert netem == "parent 1:1 netem limit 100000 delay 3ms"
    assert kernel.shape(0, "loss 1%") == ["root netem limit 100000 loss 1%"]
    assert kernel.shape(128_000, "")[0].endswith("limit 30000")


def test_no_packet_of_an_end_is_larger_than_its_peers_burst() -> None:
    for rate_bps in (128_000, 100_000_000, 500_000_000):
        [_, segments] = kernel.small_gso_arguments(rate_bps)
        burst = smooth_burst_bytes(theory.ethernet_bps(rate_bps))
        assert 2 * 1514 <= int(segments) * 1514 <= burst
    assert smooth_burst_bytes(100_000_000) == 12_500
    assert kernel.small_gso_arguments(1_000_000_000) == []


def test_destinations_are_hashed_by_their_last_two_bytes() -> None:
    lines = destinations.filters(257)
    assert sum(line.startswith("class ") for line in lines) == 257
    last = lines[-1]
    assert "ht 3:0: match ip dst 10.77.2.0/32 flowid 1:101" in last
    assert destinations.destination(64_999) == "10.77.254.231"


def test_the_example_of_dynamics_sends_with_cubic() -> None:
    text = dynamics.with_cubic((ROOT / "examples/dynamics.tdl").read_text())
    assert "iperf3 -c sv1.0 -C cubic -t 38" in text
    with pytest.raises(BenchError, match="another client"):
        dynamics.with_cubic("service c1 exec=other")


def test_the_thirds_leave_out_what_is_near_a_change() -> None:
    intervals = [
        {"sum": {"start": at / 2, "end": at / 2 + 0.5, "bits_per_second": 100 if at < 24 else 50}}
        for at in range(72)
    ]
    said = json.dumps({"intervals": intervals})
    found = flows.thirds(said, "Transfer/sec:      1.00MB\n", 36)
    assert found["long flow alone"] == 100
    assert found["long flow beside requests"] == 50
    assert found["requests beside it (wrk)"] == 8 * (1 << 20)


def fake(made: list[Record] | Exception) -> Experiment:
    def measure(context: Context) -> list[Record]:
        context.cannot["Mininet"] = "no netem"
        if isinstance(made, Exception):
            raise made
        return made

    return Experiment("An experiment", measure)


def test_each_experiment_is_written_when_it_is_done_and_a_failure_stops_none(
    tmp_path: Path,
) -> None:
    experiments = {
        "first": fake([row("x", "hop-exact", "ms", 1.0, 1.0)]),
        "second": fake(BenchError("no iperf3")),
        "third": fake([row("y", "hop-exact", "ms", 1.0, 1.0)]),
    }
    failed = runner.play(list(experiments), tmp_path, True, "real", experiments.__getitem__)
    assert failed == ["second"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.json", "third.json"]
    document = json.loads((tmp_path / "first.json").read_text())
    assert document["results"]["cannot"] == [{"what": "Mininet", "why": "no netem"}]
    assert document["quick"] is True


def test_an_experiment_without_rows_is_no_result(tmp_path: Path) -> None:
    assert runner.play(["x"], tmp_path, True, "virtual", lambda _name: fake([])) == ["x"]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    names = list(ALL)
    assert runner.chosen(tmp_path, names[::-1], True) == names
    whole = {"results": {"rows": [row("x", "hop-exact", "ms", 1.0, 1.0)]}}
    runner.write(tmp_path / f"{names[1]}.json", whole)
    assert runner.chosen(tmp_path, names, True) == [names[0], *names[2:]]
    assert runner.chosen(tmp_path, [names[1]], False) == [names[1]]


def test_the_document_names_what_is_not_measured_yet(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    experiment = fake([row("x", "hop-exact", "ms", 1.0, 1.0)])
    runner.write(tmp_path / "papers/rates.json", runner.one(experiment, True, "real"))
    text = report.figures(tmp_path, report.FIDELITY)
    assert "### Kollaps, Table 2: rates: `--only rates`" in text
    assert "| Mininet | no netem |" in text
    assert "--missing`): jitter, " in text


def test_a_reason_is_the_runs_own_and_what_the_machine_did(tmp_path: Path) -> None:
    context = Context(tmp_path, True, "real")
    verdict = {"state": "degraded", "reasons": [{"what": "engine_stall", "text": "it stood still"}]}
    (tmp_path / "summary.json").write_text(json.dumps({"verdict": verdict}))
    assert context.why(tmp_path) == "it stood still"
    context._waited[tmp_path] = 0.5
    assert context.why(tmp_path) == (
        "it stood still; for 50% of the run something waited for a processor"
    )
    (tmp_path / "summary.json").write_text(json.dumps({"verdict": {"state": "unknown"}}))
    context._waited[tmp_path] = 0.1
    context._stolen[tmp_path] = 0.01
    assert context.why(tmp_path) == ""
    context._stolen[tmp_path] = 0.28
    assert context.why(tmp_path) == "a hypervisor took 28% of the processors meanwhile"


def test_places_are_those_that_the_time_asks_for(tmp_path: Path) -> None:
    assert Context(tmp_path, True, "real").places("hop-exact", "virtual") == ["hop-exact"]
    assert "hop-exact" not in Context(tmp_path, True, "virtual").places("hop-exact", "virtual")
