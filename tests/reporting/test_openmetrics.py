"""`tstorm report --format openmetrics`: what the format's own reader makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.support import status, tstorm
from tests.reporting import support
from tests.runtime import recorded

START_NS = 1_700_000_000_000_000_000
DROPS = ["drop_queue", "drop_loss", "drop_down"]
SENT = ["offered_pkts", "offered_bytes", "delivered_pkts", "delivered_bytes"]
MOVED = ["pkts", "bytes", "out_pkts", "out_bytes"]
COLUMNS = {
    "links": ["link", *MOVED, *DROPS, "backlog_bytes", "backlog_pkts"],
    "pairs": ["src", "dst", *SENT, *DROPS, "drop_route"],
}
MS = 1_000_000


def sample(elapsed_ms: int, *links: list[int], pairs: Any = ()) -> dict[str, Any]:
    at = elapsed_ms * MS
    return {"at_ns": at, "elapsed_ns": at, "links": list(links), "pairs": list(pairs)}


SAMPLES = [
    {"columns": COLUMNS, "interval_ns": 100 * MS},
    sample(100, [0, 1, 100, 1, 100, 0, 0, 0, 0, 0]),
    sample(900, [0, 9, 900, 8, 800, 1, 0, 0, 100, 1], pairs=[[0, 1, 9, 900, 8, 800, 1, 0, 0, 0]]),
    sample(1200, [0, 9, 900, 9, 900, 1, 0, 0, 0, 0]),
    sample(2000, [1, 1, 50, 0, 0, 0, 0, 1, 0, 0]),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = support.make(tmp_path / "run")
    support.put(made, "manifest.json", {**recorded.MANIFEST, "start_unix_ns": START_NS})
    (made / "samples.jsonl").write_bytes(recorded.lines(SAMPLES))
    return made


def families(run: Path) -> dict[str, dict[tuple[Any, ...], list[tuple[float, float | None]]]]:
    """(value, seconds since the start) by labels in the order of their names, of each family."""
    done = tstorm("report", str(run), "--format", "openmetrics")
    assert status(done) == 0, done.output
    found: dict[str, dict[tuple[Any, ...], list[tuple[float, float | None]]]] = {}
    for family in text_string_to_metric_families(done.stdout):  # type: ignore[no-untyped-call]
        series = found.setdefault(family.name, {})
        for one in family.samples:
            at = None if one.timestamp is None else round(float(one.timestamp) - START_NS / 1e9, 3)
            labels = tuple(value for _, value in sorted(one.labels.items()))
            series.setdefault(labels, []).append((one.value, at))
    return found


def test_counters_are_those_of_each_seconds_last_reading(run: Path) -> None:
    found = families(run)
    assert found["tstorm_link_entered_bytes"][("a.0->s1",)] == [(900, 0.9)]
    assert found["tstorm_link_left_bytes"][("a.0->s1",)] == [(800, 0.9), (900, 1.2)]
    assert found["tstorm_link_waiting_bytes"][("a.0->s1",)] == [(100, 0.9), (0, 1.2)]
    dropped = found["tstorm_link_dropped_packets"]
    assert dropped["queue", "a.0->s1"] == [(1, 0.9)]
    assert dropped["down", "s1->a.0"] == [(1, 2.0)]
    [(ends, sent)] = found["tstorm_pair_sent_bytes"].items()
    assert (len(ends), sent) == (2, [(900, 0.9)])


def test_the_run_its_probes_and_events_are_there(run: Path) -> None:
    found = families(run)
    [labels] = found["tstorm_run"]
    assert {"exp", "completed", "degraded"} <= set(labels)
    assert found["tstorm_probe_delay_seconds"] == {("b.0", "a.0"): [(0.00203, 0.0)]}
    assert found["tstorm_probes_lost"] == {("b.0", "a.0"): [(1, 0.0)]}
    kinds = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    carried_out = {one["kind"] for one in kinds if "seq" in one}
    assert {kind for (kind,) in found["tstorm_events"]} == carried_out


def test_probes_of_which_nobody_knows_are_counted_apart(run: Path) -> None:
    late = {"at_ns": 2 * 10**9, "probes": [], "open": [[0, 15 * 10**8], [0, 16 * 10**8]]}
    (run / "probes.jsonl").write_bytes(recorded.lines([*support.PROBES, {**late, "last": True}]))
    found = families(run)
    assert found["tstorm_probes_lost"] == {("b.0", "a.0"): [(1, 0.0)]}
    assert found["tstorm_probes_open"] == {("b.0", "a.0"): [(2, 1.6)]}


def test_times_are_the_runs_own_where_the_plan_has_another_pace(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["options"] |= {"pace": 10}
    support.put(run, "manifest.json", manifest)
    later = [support.PROBES[0], {"at_ns": 10**10, "probes": [[0, 5 * 10**9, 2_000_000]]}]
    (run / "probes.jsonl").write_bytes(recorded.lines(later))
    assert families(run)["tstorm_probe_delay_seconds"]["b.0", "a.0"] == [(0.002, 0.5)]


def test_names_that_are_hostile_stay_one_label(run: Path) -> None:
    hostile = 'a"} 1\n# EOF\n\\{x="'
    manifest = json.loads((run / "manifest.json").read_text())
    support.put(run, "manifest.json", {**manifest, "experiment": hostile})
    [labels] = families(run)["tstorm_run"]
    assert hostile in labels


def test_a_row_of_another_plan_is_an_error(run: Path) -> None:
    rows = [SAMPLES[0], sample(100, [77, 1, 100, 1, 100, 0, 0, 0, 0, 0])]
    (run / "samples.jsonl").write_bytes(recorded.lines(rows))
    done = tstorm("report", str(run), "--format", "openmetrics")
    assert status(done) == 1
    assert "none of this plan" in str(done.exception)
