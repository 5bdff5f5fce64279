"""Series of a pair out of records that were made by hand: every value is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source, write
from runtime.datapath.sampler import PAIR_COLUMNS
from tests.runtime import recorded
from tstorm.testing import ExperimentError, Run

TDL = b"service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1ms\nlink b--s\nat 9s quit\n"
THERE, BACK = ("a.0", "b.0"), ("b.0", "a.0")
MS, S = 10**6, 10**9
Probe = tuple[int, int, int | None]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for name, data in recorded.files().items():
        (run / name).write_bytes(data)
    write(compile_source(TDL, filename="exp.tdl", seed=None), run / "plan")
    return run


def probe(directory: Path, probes: Sequence[Probe], measure: str = "one-way", **more: Any) -> Run:
    """With these probes, in one report: pair, when it was sent, delay. `more`: what else it has;
    it is the last one unless this says otherwise."""
    header = {
        "kind": "header",
        "format": "tstorm-probes",
        "version": 1,
        "start_monotonic_ns": 0,
        "clock": "one",
        "measure": measure,
        "pairs": [THERE, BACK],
        "interval_ns": S,
        "intervals_ns": [S, S],
        "of": 2,
    }
    ordered = sorted(probes, key=lambda one: (one[1], one[0]))
    report = {"at_ns": 9 * S, "probes": ordered, "last": True, **more}
    lines: list[dict[str, Any]] = [header, report]
    (directory / "probes.jsonl").write_bytes(recorded.lines(lines))
    return Run(directory)


def sample(directory: Path, *lines: dict[str, Any]) -> Run:
    """samples.jsonl; `bytes` of a line are those that a has delivered to b."""
    column = PAIR_COLUMNS.index("delivered_bytes")
    found: list[dict[str, Any]] = [{"columns": {"links": [], "pairs": PAIR_COLUMNS}}]
    for line in lines:
        row = [0, 1, *[0] * (len(PAIR_COLUMNS) - 2)]
        row[column] = line.get("bytes", 0)
        pairs = [row] if "bytes" in line else []
        rest = {key: value for key, value in line.items() if key != "bytes"}
        found.append({"links": [], "pairs": pairs, **rest})
    (directory / "samples.jsonl").write_bytes(recorded.lines(found))
    return Run(directory)


def test_a_round_trip_is_a_probe_and_the_nearest_one_back(directory: Path) -> None:
    probes: list[Probe] = [
        (0, 1 * S, 5 * MS),
        (0, 2 * S, 6 * MS),
        (0, 3 * S, None),
        (0, 4 * S, 7 * MS),
        (1, 1 * S + 1, 10 * MS),
        (1, 2 * S - 1, 20 * MS),
        (1, 4 * S + 9, None),
    ]
    found = probe(directory, probes).series(THERE, "rtt")
    assert found.times_ns == (1 * S, 2 * S, 3 * S, 4 * S)
    assert found.values == (15 * MS, 26 * MS, None, None)
    assert found.measured == (15 * MS, 26 * MS)
    assert (found.unit, found.least(), found.most()) == ("ns", 15 * MS, 26 * MS)
    assert (found.median(), found.mean()) == (15 * MS, 20_500_000)
    assert repr(found) == "<Series rtt a.0 -> b.0: 4 values from 15000000 to 26000000 ns, 2 lost>"


def test_round_trips_that_were_measured_are_taken_as_they_are(directory: Path) -> None:
    run = probe(directory, [(0, S, 5 * MS), (1, S, 6 * MS)], measure="round-trip")
    assert run.series(THERE, "rtt").values == (5 * MS,)
    with pytest.raises(ExperimentError, match="round trips only"):
        run.series(THERE, "delay")


def test_delays_and_losses(directory: Path) -> None:
    probes: list[Probe] = [
        (0, 1, 5),
        (0, 2, None),
        (0, 3 * S, None),
        (1, 5, 8),
        (0, 3, 6),
        (0, 4, 7),
    ]
    run = probe(directory, probes)
    assert run.series(THERE, "delay").values == (5, None, 6, 7, None)
    found = run.series(THERE, "loss")
    assert (found.times_ns, found.values) == ((0, 3 * S), (250_000_000, 10**9))
    assert run.series(BACK, "loss").values == (0,)


def test_losses_that_nobody_knows_are_no_zeros(directory: Path) -> None:
    probes: list[Probe] = [(0, S, 5), (0, S + 1, None), (0, 7 * S, 5), (0, 8 * S, 6)]
    found = probe(directory, probes, open=[[0, 7 * S + 1], [0, 9 * S]]).series(THERE, "loss")
    assert found.times_ns == (S, 7 * S, 8 * S, 9 * S)
    assert found.values == (500_000_000, None, 0, None)
    assert "4 values from 0 to 500000000 ppb, 2 open" in repr(found)
    found = probe(directory, probes, last=False).series(THERE, "loss")  # nobody told at its end
    assert found.values == (500_000_000, None, None)
    late = found.between("7s", "9s")
    with pytest.raises(ExperimentError, match=r"nothing of loss .* was measured, 2 were open"):
        late.mean()


def test_a_part_has_its_begin_and_not_its_end(directory: Path) -> None:
    found = probe(directory, [(0, at * S, at) for at in range(1, 6)]).series(THERE, "delay")
    assert found.between("2s", "4s").values == (2, 3)
    nothing = found.between("6s", "7s")
    assert len(nothing) == 0
    with pytest.raises(ExperimentError, match=r"nothing of delay a\.0 -> b\.0"):
        nothing.median()


def test_rates_are_those_since_the_sample_before(directory: Path) -> None:
    run = sample(
        directory,
        {"at_ns": 100 * MS, "elapsed_ns": 100 * MS, "bytes": 1000},
        {"at_ns": 200 * MS, "elapsed_ns": 200 * MS},  # it moved for others only
        {"at_ns": 400 * MS, "elapsed_ns": 400 * MS, "bytes": 3000},
    )
    found = run.series(THERE, "throughput")
    assert found.times_ns == (100 * MS, 200 * MS, 400 * MS, S)
    assert found.values == (80_000, 0, 80_000, 0)
    assert run.series(BACK, "throughput").values == ()


def test_a_rate_is_nothing_in_a_pause_and_its_mean_is_over_time(directory: Path) -> None:
    run = sample(
        directory,
        {"at_ns": 100 * MS, "elapsed_ns": 100 * MS, "bytes": 1000},
        {"at_ns": 2000 * MS, "elapsed_ns": 2000 * MS, "bytes": 3000},
    )
    found = run.series(THERE, "throughput").between("0s", "2s")
    assert found.times_ns == (100 * MS, 1900 * MS, 2000 * MS)
    assert found.values == (80_000, 0, 160_000)
    assert (found.mean(), found.median(), found.least()) == (12_000, 80_000, 0)
    part = found.between("50ms", "1950ms")
    assert (part.times_ns[-1], part.begins_ns[0]) == (1950 * MS, 50 * MS)
    assert part.mean() == (500 + 1000) * 8 * 10**9 // (1900 * MS)


def test_after_the_last_sample_nothing_moves_until_the_end(directory: Path) -> None:
    run = sample(directory, {"at_ns": 100 * MS, "elapsed_ns": 100 * MS, "bytes": 1000})
    found = run.series(THERE, "throughput")
    assert (found.times_ns, found.values) == ((100 * MS, S), (80_000, 0))
    assert found.mean() == 8_000
    (directory / "events.jsonl").write_bytes(b"")
    manifest = json.loads((directory / "manifest.json").read_bytes())
    (directory / "manifest.json").write_text(json.dumps(manifest | {"outcome": "failed"}))
    assert Run(run.directory).series(THERE, "throughput").times_ns == (100 * MS,)


def test_over_hosts_the_host_that_counts_the_pair_is_taken(directory: Path) -> None:
    run = sample(
        directory,
        {"at_ns": 50 * MS, "elapsed_ns": 50 * MS, "host": "host1"},
        {"at_ns": 100 * MS, "elapsed_ns": 100 * MS, "host": "host0", "bytes": 1000},
        {"at_ns": 150 * MS, "elapsed_ns": 150 * MS, "host": "host1"},
        {"at_ns": 200 * MS, "elapsed_ns": 200 * MS, "host": "host0", "bytes": 2000},
    )
    assert run.series(THERE, "throughput").values == (80_000, 80_000, 0)


def test_what_is_not_there_is_said(directory: Path) -> None:
    run = probe(directory, [])
    with pytest.raises(ValueError, match="rtt, delay, loss, throughput"):
        run.series(THERE, "speed")
    with pytest.raises(ExperimentError, match=r"no instance 'c\.0'; it has a\.0, b\.0"):
        run.series(("a.0", "c.0"), "rtt")
    with pytest.raises(ExperimentError, match=r"a\.0 -> a\.0 was not probed: 2 of 2 pairs"):
        run.series(("a.0", "a.0"), "rtt")
    (directory / "probes.jsonl").unlink()
    with pytest.raises(ExperimentError, match="no probes: run without --no-probes"):
        run.series(THERE, "rtt")


def test_a_damaged_sample_is_named(directory: Path) -> None:
    (directory / "samples.jsonl").write_text(json.dumps({"links": [], "pairs": []}) + "\n")
    with pytest.raises(ExperimentError, match=r"samples\.jsonl.*missing"):
        Run(directory).series(THERE, "throughput")
