"""The benchmark's own parts that need no measuring: tables, and the judge of the demonstration."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import report
from bench.errors import BenchError
from bench.judge import HEAD, Row, table
from compiler.pipeline import compile_source
from tests.runs.runlog import IncompleteRunError, Planned, RunLog

ROOT = Path(__file__).resolve().parents[2]

DOCUMENT: dict[str, Any] = {
    "format": 1,
    "machine": {
        "cores": 2,
        "cpu": "Some CPU",
        "hypervisor": "yes",
        "kernel": "Linux 6.1",
        "load_1min_before": "0.10",
        "memory_mib": 1024,
    },
    "results": {
        "rate": [
            {"shaper": "pktd", "rate_bps": 128_000, "error_percent": -0.01},
            {"shaper": "htb", "rate_bps": 128_000, "error_percent": 0.5},
            {"shaper": "pktd", "rate_bps": 4_000_000_000, "error_percent": 0.0},
        ]
    },
}


def results(folder: Path) -> Path:
    (folder / "root.json").write_text(json.dumps(DOCUMENT))
    return folder


def test_the_tables_come_from_the_results(tmp_path: Path) -> None:
    text = report.figures(results(tmp_path), report.PERFORMANCE)
    assert "Some CPU, 2 cores" in text
    assert "| 128 kb/s | -0.010 % | +0.500 % | – |" in text
    assert "| 4 Gb/s | +0.000 % | – | – |" in text


def test_only_the_generated_part_of_the_document_changes(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("before\n<!-- begin figures -->\nold\n<!-- end figures -->\nafter\n")
    report.update(results(tmp_path), {document: report.PERFORMANCE})
    text = document.read_text()
    assert text.startswith("before\n<!-- begin figures -->\n### As root")
    assert text.endswith("<!-- end figures -->\nafter\n")
    assert "old" not in text
    report.update(tmp_path, {document: report.PERFORMANCE})
    assert document.read_text() == text


def test_a_document_without_markers_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("nothing\n")
    with pytest.raises(BenchError, match="begin figures"):
        report.update(results(tmp_path), {document: report.PERFORMANCE})


@pytest.mark.parametrize("document", report.DOCUMENTS, ids=lambda path: path.name)
def test_the_document_is_current(document: Path) -> None:
    found = report.figures(ROOT / "bench" / "results", report.DOCUMENTS[document])
    assert found in document.read_text()


def test_planned_properties_change_with_the_timeline() -> None:
    text = (
        "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1ms up=10Mb symmetric\n"
        "link b--s latency=2ms\nat 5s a--s set latency=4ms\nat 8s a--s leave\nat 10s quit\n"
    )
    planned = Planned(compile_source(text).plan, "a.0", "b.0")
    found = [(s.start_s, s.end_s, s.reachable, s.rtt_ms) for s in planned.stretches]
    assert found == [(0, 5, True, 6), (5, 8, True, 12), (8, 10, False, 0)]
    assert planned.at(4.9).rtt_ms == 6
    assert planned.at(5).rtt_ms == 12


def test_logs_are_read_in_plan_time(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    manifest = {"facts": {"start_monotonic_ns": 1_000_000_000}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    lines = [
        '{"t_ns":1500000000,"seq":0,"rtt_us":2500.0}',
        "not JSON",
        '{"t_ns":2500000000,"seq":1,"lost":true}',
        '{"t_ns":3',
    ]
    (tmp_path / "logs" / "a.0.log").write_text("\n".join(lines))
    probes = RunLog(tmp_path).probes("a.0")
    assert [(p.sent_s, p.rtt_ms) for p in probes] == [(0.5, 2.5), (1.5, None)]


def test_a_run_without_a_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(IncompleteRunError, match="start_monotonic_ns"):
        RunLog(tmp_path)


def test_the_demos_table_has_aligned_columns() -> None:
    cells = tuple(str(number) for number in range(len(HEAD)))
    lines = table([Row(cells, ())]).splitlines()
    assert len(lines) == 3
    assert lines[2].index("1") == lines[0].index("time")


@pytest.mark.e2e
def test_a_measurement_is_written_with_its_machine(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    argv = [sys.executable, "-m", "bench", "--quick", "--only", "commit", "--out", str(out)]
    plain = {**os.environ, "PATH": "/usr/local/bin:/usr/bin:/bin"}  # an ordinary user's on Debian
    done = subprocess.run(
        argv, cwd=ROOT, env=plain, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    (row,) = document["results"]["commit"]
    assert row["route_changes"] == 10_000
    assert row["beside_lost"] == 0
    assert document["machine"]["cores"] >= 1
    assert socket.gethostname() not in out.read_text().split('"')
