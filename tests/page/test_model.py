"""What a page says of a run directory: right sums, bounded sizes, and words for what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source, write
from compiler.plan.reader import read_plan
from runtime.page import downsample, page_logs, page_network, page_traffic
from runtime.page.grid import TimeGrid, grid, packed
from runtime.page.page_data import gather
from runtime.page.page_file import embedded, render
from runtime.page.page_probes import Probes
from runtime.results.loglines import Growth
from runtime.rundir import rundir
from tests.comparing.made import figure
from tests.page.synthetic import SECOND, Shape, make
from tests.runtime.rundir import packets_made

TWO = Shape(seconds=60)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("page") / "two", TWO)


@pytest.fixture
def run(two: Path, tmp_path: Path) -> Path:
    """One to spoil."""
    return Path(shutil.copytree(two, tmp_path / "run"))


def model(path: Path) -> dict[str, Any]:
    directory = rundir.recorded(path)
    return gather(directory, directory.manifest(), directory.summary())


def values(series: dict[str, Any], count: int) -> list[Any]:
    if "i" not in series:
        return list(series["v"])
    told = dict(zip(series["i"], series["v"], strict=True))
    return [told.get(bucket) for bucket in range(count)]


def carried(found: dict[str, Any]) -> int:
    """Bytes, by the rates of all pairs."""
    step = found["time"]["grid"]["step_ns"]
    whole = sum(sum(filter(None, pair["rate"]["v"])) for pair in found["pairs"])
    return whole * step // (8 * SECOND)


# -- the grid -------------------------------------------------------------------------------------


def test_a_grid_has_no_more_buckets_than_its_numbers_allow() -> None:
    assert grid(0, 60 * SECOND, SECOND // 10, 10) == TimeGrid(0, SECOND // 10, 600)
    assert grid(0, 86_400 * SECOND, SECOND // 10, 10).count == 1000
    assert grid(0, 86_400 * SECOND, SECOND // 10, 20_000).count == 60
    assert grid(5, 5, 1, 1) == TimeGrid(5, 1, 1)


def test_what_came_in_two_buckets_is_shared_without_loss() -> None:
    axis = TimeGrid(0, 10, 5)
    assert axis.parts(12, 18, 7) == [(1, 7)]
    assert axis.parts(5, 25, 21) == [(0, 5), (1, 10), (2, 6)]
    assert sum(amount for _, amount in axis.parts(3, 49, 1001)) == 1001
    assert axis.parts(95, 99, 3) == [(4, 3)]  # behind the end


def test_a_series_is_written_as_it_is_shortest() -> None:
    assert packed({3: 7}, 10) == {"i": [3], "v": [7]}
    assert packed({0: 1, 1: 2}, 3) == {"v": [1, 2, None]}


# -- what flowed ----------------------------------------------------------------------------------


def flows(
    axis: TimeGrid, rows: list[tuple[int, list[list[int]]]], pace: int = 1
) -> page_traffic.Flows:
    found = page_traffic.Flows(axis, [0], [], some=False, pace=pace)
    columns = ["link", "out_bytes", "out_pkts", "drop_loss", "backlog_bytes"]
    found.take({"columns": {"links": columns, "pairs": []}, "interval_ns": 10})
    for elapsed_ns, links in rows:
        times = {"at_ns": elapsed_ns * pace, "elapsed_ns": elapsed_ns}
        found.take({**times, "links": links, "pairs": []})
    return found


def test_counters_become_rates_and_a_pause_is_no_traffic() -> None:
    axis = TimeGrid(0, 10, 12)
    rows = [(10, [[0, 100, 1, 0, 0]]), (20, [[0, 300, 2, 1, 500]]), (120, [[0, 350, 3, 1, 0]])]
    found = flows(axis, rows).link_record(0)
    per_byte = 8 * SECOND // 10
    assert values(found["rate"], 12) == [100 * per_byte, 200 * per_byte, *[None] * 9, 50 * per_byte]
    assert values(found["queue"], 12)[1] == 500
    assert values(found["queue"], 12)[11] == 500 * 0
    assert found["drops"] == {"i": [1], "v": [1]}
    assert "lo" not in found


def test_a_bucket_of_several_samples_has_its_smallest_and_largest_rate() -> None:
    rows = [(at, [[0, size, 0, 0, 0]]) for at, size in ((10, 10), (20, 40), (30, 60), (40, 160))]
    found = flows(TimeGrid(0, 40, 1), rows).link_record(0)
    per_byte = 8 * SECOND // 10
    assert (found["lo"]["v"], found["hi"]["v"]) == ([10 * per_byte], [100 * per_byte])
    assert found["rate"]["v"] == [160 * 8 * SECOND // 40]


def test_open_probes_are_neither_lost_nor_left_out() -> None:
    header = {"measure": "one-way", "pairs": [["a.0", "b.0"]], "of": 1, "intervals_ns": [10]}
    found = Probes(TimeGrid(0, 10, 4), header, 1, 1)
    found.take({"probes": [[0, 5, 7], [0, 15, None], [0, 25, 7]]})
    assert "open" not in found.series(0)
    found.take({"probes": [], "open": [[0, 26], [0, 29], [1, 5]], "last": True})
    series = found.series(0)
    assert (series["open"], series["lost"]) == ({"i": [2], "v": [2]}, {"i": [1], "v": [1]})
    assert (series["sent"], series["missing"]) == (3, 1)
    found.coarsen()
    assert found.series(0)["open"] == {"i": [1], "v": [2]}


def test_a_faster_pace_leaves_rates_as_they_are() -> None:
    """A second of the plan is a sixtieth of one, and each link has its planned rate."""
    rows = [(at, [[0, size, 0, 0, 0]]) for at, size in ((10, 10), (20, 40), (30, 60), (40, 160))]
    found = flows(TimeGrid(0, 40 * 60, 1), rows, pace=60).link_record(0)
    per_byte = 8 * SECOND // 10
    assert (found["lo"]["v"], found["hi"]["v"]) == ([10 * per_byte], [100 * per_byte])
    assert found["rate"]["v"] == [160 * 8 * SECOND // 40]


def test_a_counter_that_began_anew_and_rows_of_another_shape() -> None:
    rows = [(10, [[0, 100, 1, 0, 0]]), (20, [[0, 30, 1, 0, 0]]), (30, [[0, 1]])]
    found = flows(TimeGrid(0, 10, 3), rows)
    assert found.reader.misshapen == 1
    assert found.link_record(0)["rate"]["v"] == [
        100 * 8 * SECOND // 10,
        30 * 8 * SECOND // 10,
        None,
    ]


# -- the whole ------------------------------------------------------------------------------------


def test_a_page_has_what_the_run_has(two: Path) -> None:
    found = model(two)
    assert found["notes"] == []
    assert found["verdict"]["lines"] == ["DEGRADED: the driver stood still for 612 ms"]
    assert found["verdict"]["marks"] == [[20 * SECOND, "the driver stood still for 612 ms"]]
    assert [one["state"] for one in found["expectations"]] == ["passed", "failed", "not_measured"]
    assert found["network"]["nodes"] == ["server.0", "client.0", "s1"]
    assert len(found["network"]["epochs"]) == 5
    assert [(one["src"], one["dst"]) for one in found["pairs"]] == [
        ("server.0", "client.0"),
        ("client.0", "server.0"),
    ]
    last = json.loads((two / "summary.json").read_text())["pairs"]
    assert abs(carried(found) - sum(row["delivered_bytes"] for row in last)) < 1000
    probe = found["pairs"][0]["probe"]
    assert (probe["sent"], len(probe["cdf"])) == (60, len(found["permille"]))
    assert probe["cdf"] == sorted(probe["cdf"])
    assert len(found["planned"]["rows"]) == 4
    assert {"exit", "join", "quit"} <= set(found["events"]["kinds"])
    assert [one["instance"] for one in found["logs"]] == ["client.0", "server.0"]
    assert found["logs"][1]["lines"][7] == [
        7 * SECOND,
        7 * SECOND + SECOND // 10,
        "7 s: server.0 is at work",
    ]


def test_the_page_of_a_run_with_a_pace_has_real_rates(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["options"]["pace"] = 10
    (run / "manifest.json").write_text(json.dumps(manifest))
    found = model(run)
    assert found["notes"] == []
    last = json.loads((run / "summary.json").read_text())["pairs"]
    assert abs(carried(found) - 10 * sum(row["delivered_bytes"] for row in last)) < 1000
    assert found["pairs"][0]["probe"]["interval_ns"] == 10 * SECOND


def test_the_same_directory_gives_the_same_bytes(two: Path) -> None:
    directory = rundir.recorded(two)
    pages = {render(directory, directory.manifest(), directory.summary()) for _ in range(2)}
    assert len(pages) == 1


def test_long_files_are_read_in_part_and_sums_stay_right(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = carried(model(two))
    monkeypatch.setattr(downsample, "READ_BYTES", 10_000)
    monkeypatch.setattr(downsample.read_some, "__defaults__", (10_000,))
    monkeypatch.setattr(downsample.stride, "__defaults__", (10_000,))
    found = model(two)
    assert any("samples.jsonl is long: one of some" in note for note in found["notes"])
    assert whole * 0.9 < carried(found) <= whole


def test_a_page_of_many_pairs_is_bounded(tmp_path: Path) -> None:
    shape = Shape(clients=60, seconds=3600, interval_ns=60 * SECOND, probe_ns=60 * SECOND)
    path = make(tmp_path / "many", shape)
    found = model(path)
    assert found["time"]["grid"]["count"] <= 1000
    assert len(found["pairs"]) == 120
    assert any("series are aggregated: each point stands for 6.3" in one for one in found["notes"])
    longest = max(len(log["lines"]) for log in found["logs"])
    assert longest <= page_logs.FULL_BYTES


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("samples.jsonl", "counters are missing from some moment on"),
        ("probes.jsonl", "there is nothing of probes"),
        ("events.jsonl", "events are missing from some moment on"),
        ("logs.jsonl", "lines of logs have no times from some moment on"),
        ("certificate.json", "what was planned for pairs is not shown"),
        ("plan/topology.json", "the network is not shown"),
    ],
)
def test_what_is_damaged_is_left_out_and_said(run: Path, name: str, note: str) -> None:
    (run / name).write_bytes(b'{"x": \x00\n' * 3)
    found = model(run)
    assert any(one.startswith(note) for one in found["notes"]), found["notes"]
    assert found["verdict"]["state"] == "degraded"


@pytest.mark.parametrize("name", ["samples.jsonl", "probes.jsonl", "events.jsonl", "logs", "plan"])
def test_what_is_missing_breaks_nothing(run: Path, name: str) -> None:
    if (run / name).is_dir():
        shutil.rmtree(run / name)
    else:
        (run / name).unlink()
    assert model(run)["run"]["outcome"] == "completed"


def test_a_page_has_the_figures_that_programs_gave(run: Path) -> None:
    assert model(run)["figures"]["rows"] == []
    summary = json.loads((run / "summary.json").read_text())
    summary["figures"] = [figure("lost", "360"), figure("p99", None)]
    (run / "summary.json").write_text(json.dumps(summary))
    assert model(run)["figures"]["rows"] == [["lost", "a.0", "360", ""], ["p99", "a.0", None, ""]]


def test_how_a_program_ended_may_be_missing(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    for kind in ("exits", "failures"):
        summary[kind] = [{"target": "client.0", "last_log_line": ""}]
    (run / "summary.json").write_text(json.dumps(summary))
    failures, ends, _ = model(run)["programs"]
    assert failures["rows"] == [["client.0", "status unknown", ""]]
    assert ends["rows"] == [["client.0", "", "status unknown", ""]]


def test_a_page_tells_what_the_kernel_killed_for_want_of_memory(run: Path) -> None:
    killed = {"target": "client.0", "processes": 2}
    summary = json.loads((run / "summary.json").read_text())
    summary["oom_kills"] = [killed]
    (run / "summary.json").write_text(json.dumps(summary))
    with (run / "events.jsonl").open("a") as events:
        events.write(json.dumps({"kind": "oom_kill", "applied_ns": 59 * SECOND, **killed}) + "\n")
    found = model(run)
    assert found["events"]["rows"][-1][6].startswith("the kernel killed 2 processes of it")
    [facts] = [one for one in found["tables"] if one["name"] == "facts"]
    assert facts["rows"][-1] == ["processes killed for mem=", "2 of client.0"]


def test_a_run_that_was_killed_is_shown_as_far_as_it_came(run: Path) -> None:
    """Files of lines end in the middle of one; there is neither summary nor certificate."""
    for name in ("events.jsonl", "samples.jsonl", "probes.jsonl"):
        data = (run / name).read_bytes()
        (run / name).write_bytes(data[: len(data) * 2 // 3])
    (run / "certificate.json").unlink()
    directory = rundir.recorded(run)
    found = gather(directory, {**directory.manifest(), "outcome": "killed"}, {})
    assert found["run"]["outcome"] == "killed"
    assert 35 * SECOND < found["time"]["end_ns"] < 45 * SECOND
    assert len(found["pairs"]) == 2  # as probed


def test_nothing_is_drawn_after_an_early_end(run: Path) -> None:
    at_ns = 25 * SECOND
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    early = [one for one in lines if json.loads(one).get("applied_ns", 0) <= at_ns]
    ended = {"kind": "quit", "target": "", "reason": "interrupted"}
    moments = {"applied_ns": at_ns, "planned_ns": at_ns}
    killed = {
        "kind": "overdue",
        "target": "server.0",
        "applied_ns": 27 * SECOND,
        "grace_ns": SECOND,
    }
    more = [json.dumps(one) + "\n" for one in ({**ended, **moments}, killed)]
    (run / "events.jsonl").write_text("".join([*early, *more]))
    whole = json.loads((run / "summary.json").read_text())["pairs"]
    found = model(run)
    assert found["time"]["end_ns"] == at_ns
    assert all(epoch["at_ns"] <= at_ns for epoch in found["network"]["epochs"])
    assert len(found["network"]["epochs"]) < 5
    assert max(row[4] for row in found["events"]["rows"] if row[4] is not None) == at_ns
    assert found["notes"] == ["the run ended early: events of its winding down are not shown (1)"]
    assert carried(found) < sum(row["delivered_bytes"] for row in whole) // 2


def test_no_text_ends_the_data() -> None:
    text = embedded({"x": "</script><!--<script>\u2028"})
    assert "<" not in text
    assert json.loads(text) == {"x": "</script><!--<script>\u2028"}


def test_moments_of_a_log_are_thinned_and_bounds_stay_right() -> None:
    growth = Growth()
    for at in range(9):
        growth.add(10 * (at + 1), 100 * at, 100 * at + 50)
    growth.thin()
    assert len(growth) == 5
    assert growth.bounds(5) == (None, 50)
    assert growth.bounds(15) == growth.bounds(25) == (100, 250)
    assert growth.bounds(90) == (700, 850)
    assert growth.bounds(91) == (850, None)


def test_a_link_says_who_manages_its_queue_and_which_packets_differ(tmp_path: Path) -> None:
    text = "service a\nservice b\nlink a--b rate=1Mb latency=1ms aqm=codel;ecn\n"
    text += "at 1s a--b set loss=1% only=udp;tcp:80\n"
    text += "at 2s a--b set aqm=none\nat 2s a--b set only=none\nat 3s quit\n"
    write(compile_source(text, filename="exp.tdl", seed=None), tmp_path / "plan")
    network = page_network.record(read_plan(tmp_path / "plan"), None, [])
    fields = ["link", *network["fields"]]
    first = [epoch["links"][0] for epoch in network["epochs"] if epoch["links"]]
    known = [dict(zip(fields, row, strict=False)) for row in first]
    assert [row.get("aqm") for row in known] == ["codel", "codel", None]
    assert [row.get("only") for row in known] == ["", "tcp:80;udp", None]


def test_packets_are_rows_and_a_damaged_record_of_them_is_a_note(tmp_path: Path) -> None:
    made = packets_made.make(tmp_path / "run", 10**18)
    found = model(made)["packets"]
    assert found["causes"] == ["", "lost by the draw"]
    assert [row[:6] for row in found["rows"]] == [
        [0, 1, 10**6, 3 * 10**6, 0, 3],
        [1, 0, 10**7, 2 * 10**6, 1, 1],
    ]
    assert found["left_out"] == []
    (made / "packets" / "a.0--s1.pcapng").write_bytes(b"no such file")
    spoilt = model(made)
    assert spoilt["packets"] is None
    assert any("packets are not shown" in note for note in spoilt["notes"])
