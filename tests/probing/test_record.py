"""probes.jsonl as it is written and read; what is damaged is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.probing.probe_record import (
    ONE_CLOCK,
    ONE_WAY,
    OpenProbe,
    Probe,
    ProbesHeader,
    line,
    read,
    why_not,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import PROBES

HEADER = ProbesHeader(
    start_monotonic_ns=5,
    clock=ONE_CLOCK,
    measure=ONE_WAY,
    pairs=(("a.0", "b.0"), ("b.0", "a.0")),
    interval_ns=100,
    intervals_ns=(100, 200),
    of=6,
    not_probed=(("a.0", "c.0"),),
)


def fail(message: str) -> None:
    raise AssertionError(message)


def written(place: Path, *records: dict[str, Any]) -> HeldDirectory:
    held = HeldDirectory.hold(place)
    file = LineFile(held, PROBES, fail)
    for record in records:
        file.append(record)
    file.close()
    return held


def test_reads_what_was_written(tmp_path: Path) -> None:
    probes = [Probe(1, 20, None), Probe(0, 20, 7), Probe(1, 10, 0)]
    held = written(
        tmp_path, HEADER.to_record(), line(30, probes), line(30, []), line(40, [probes[0]])
    )
    found = read(held)
    assert found is not None
    assert found.header == HEADER
    assert list(found.probes) == [probes[2], probes[1], probes[0], probes[0]]
    assert (found.open, found.untold_ns) == ([], 0)  # nobody reported at its end


def test_open_ones_are_told_apart_from_the_lost(tmp_path: Path) -> None:
    lost, open_ = Probe(1, 20, None), [OpenProbe(0, 30), OpenProbe(1, 25)]
    last = line(60, [], [], [open_[1]], last=True)
    found = read(written(tmp_path, HEADER.to_record(), line(50, [lost], [], open_), last))
    assert found is not None
    assert list(found.probes) == [lost]
    assert found.open == [open_[1], open_[0], open_[1]]
    assert found.untold_ns is None


def test_a_run_without_probes(tmp_path: Path) -> None:
    assert read(HeldDirectory.hold(tmp_path)) is None
    assert read(written(tmp_path)) is None
    assert "--no-probes" in why_not(RunOptions(probes=False))
    assert why_not(RunOptions()) == ""


BAD_LINES: list[tuple[dict[str, Any], str]] = [
    ({"at_ns": 1, "probes": [[2, 0, 0]]}, "a pair that the header does not name"),
    ({"at_ns": 1, "probes": [[0, 9, 0], [0, 8, 0]]}, "not in the order"),
    ({"at_ns": 1, "probes": [[0, 9]]}, r"probes\[0\] must be"),
    ({"at_ns": 1, "probes": [[0, 9, -1]]}, r"probes\[0\] must be"),
    ({"at_ns": 1, "probes": [[0, -9, 1]]}, r"probes\[0\] must be"),
    ({"at_ns": 1, "probes": [[0, 9, True]]}, r"probes\[0\] must be"),
    ({"at_ns": 1, "probes": [], "open": [[2, 0]]}, "a pair that the header does not name"),
    ({"at_ns": 1, "probes": [], "open": [[0, 1, None]]}, r"open\[0\] must be"),
    ({"at_ns": 1, "probes": [], "last": 1}, "last must be"),
    ({"at_ns": -1, "probes": []}, "at_ns must be"),
    ({"at_ns": 1}, "kind is missing"),
    ({"probes": []}, "at_ns is missing"),
    (HEADER.to_record(), "a second header"),
]


@pytest.mark.parametrize(("bad", "said"), BAD_LINES)
def test_a_damaged_line_is_named(bad: dict[str, Any], said: str, tmp_path: Path) -> None:
    held = written(tmp_path, HEADER.to_record(), line(0, []), bad)
    found = read(held)
    assert found is not None
    with pytest.raises(RunError, match=rf"probes\.jsonl:3: .*{said}"):
        list(found.probes)


BAD_HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "version must be 1"),
    ({"format": "x"}, "format must be"),
    ({"clock": "two"}, "clock must be"),
    ({"measure": "up"}, "measure must be"),
    ({"pairs": [["a.0"]]}, "pairs"),
    ({"intervals_ns": [1]}, "2 pairs"),
    ({"of": None}, "of must be"),
]


@pytest.mark.parametrize(("change", "said"), BAD_HEADERS)
def test_a_damaged_header_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    held = written(tmp_path, {**HEADER.to_record(), **change})
    with pytest.raises(RunError, match=said):
        read(held)


def test_a_report_without_header_and_a_line_that_was_cut(tmp_path: Path) -> None:
    (tmp_path / PROBES).write_text(json.dumps(line(1, [])) + "\n")
    with pytest.raises(RunError, match="no header"):
        read(HeldDirectory.hold(tmp_path))
    (tmp_path / PROBES).write_text(json.dumps(HEADER.to_record()) + '\n{"at_ns":1,"pro')
    found = read(HeldDirectory.hold(tmp_path))
    assert found is not None
    assert list(found.probes) == []
