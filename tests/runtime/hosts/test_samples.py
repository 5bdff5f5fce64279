"""Counters of a hosts run never fall, whatever datapaths come and go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from runtime.backend.hosts.samples import HostSamples
from runtime.options import RunOptions
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.schedule import Schedule

TEXT = "service a replicas=3\nbridge s\nlink a--s latency=1\nat 5s quit\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "samples.jsonl"


def samples(file: Path, *, digests: bool = False) -> HostSamples:
    timeline = Schedule(compile_source(TEXT).plan, RunOptions())
    return HostSamples(
        LineFile(HeldDirectory.hold(file.parent), file.name, pytest.fail),
        timeline.clock,
        ["n0", "n1"],
        digests=digests,
    )


def test_digests_of_paths_are_written_where_datapaths_keep_them(file: Path) -> None:
    digests = [[0, 1, "00000000000000ff"]]
    for keeps in (True, False):
        found = samples(file, digests=keeps)
        found.take(0, 7, [[0, 1, 10, 1000, 9, 900, 1, 0, 0, 0]], digests)
        header, line = (json.loads(text) for text in file.read_text().splitlines())
        assert header["columns"].get("digests") == (["src", "dst", "digest"] if keeps else None)
        assert line.get("digests") == (digests if keeps else None)
        file.unlink()


def test_a_datapath_that_begins_anew_goes_on_where_the_one_before_was(file: Path) -> None:
    found = samples(file)
    for row in (
        [0, 1, 10, 1000, 9, 900, 1, 0, 0, 0],
        [0, 1, 12, 1200, 11, 1100, 1, 0, 0, 0],
        [0, 1, 3, 300, 3, 300, 0, 0, 0, 0],  # another datapath
        [0, 1, 5, 500, 4, 400, 0, 0, 1, 0],
        [0, 1, 1, 100, 0, 0, 0, 0, 0, 0],  # and another one
    ):
        found.take(0, 7, [row])
        found.take(1, 7, [[1, 0, 2, 2, 2, 2, 0, 0, 0, 0]])  # stays as it is
    rows = [json.loads(line)["pairs"][0] for line in file.read_text().splitlines()[1:]]
    assert [row[2:] for row in rows if row[0] == 0] == [
        [10, 1000, 9, 900, 1, 0, 0, 0],
        [12, 1200, 11, 1100, 1, 0, 0, 0],
        [15, 1500, 14, 1400, 1, 0, 0, 0],
        [17, 1700, 15, 1500, 1, 0, 1, 0],
        [18, 1800, 15, 1500, 1, 0, 1, 0],
    ]
    assert found.pairs == {b"0 1": b"0 1 18 1800 15 1500 1 0 1 0", b"1 0": b"1 0 2 2 2 2 0 0 0 0"}
