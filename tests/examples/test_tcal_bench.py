"""What of the kernel datapath's measurements measures nothing: tables, trees, documents."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench import tcal, tcal_peers, tcal_queue, tcal_report
from bench.errors import BenchError
from bench.tcal_structures import STRUCTURES, Bottleneck

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {
    "cores": 2,
    "cpu": "Some CPU",
    "hypervisor": "yes",
    "kernel": "Linux 6.1",
    "load_1min_before": "0.10",
    "memory_mib": 1024,
}
TCP = {"cwnd_mean": 56.18, "rtt_ms_mean": 33.84, "loss_percent": 0.049}


def row(structure: str, traffic: str, **figures: float) -> dict[str, Any]:
    path = tcal_queue.PATHS[0]
    facts = {"rate_bps": path.rate_bps, "queue_bytes": path.queue_bytes}
    return {"structure": structure, "traffic": traffic, **facts, **figures}


def test_the_queues_tables_have_the_reference_first_and_leave_out_what_was_not_offered() -> None:
    rows = [
        row("tcald", "udp", sent=12_500, loss_percent=33.14),
        row("tcald", "cubic:1", **TCP),
        row("router", "cubic:1", **TCP),
        row("router", "udp", sent=8000, loss_percent=1.1),
    ]
    lines = tcal_queue.tables(rows).splitlines()
    assert (
        lines[0] == "| 20 Mb/s, 50 kB | cubic × 1 | cubic × 4 | reno × 1 | reno × 4 | UDP: lost |"
    )
    assert lines[2].endswith("| 56 · 33.8 · 0.05 % | – | – | – | – |")
    assert lines[3] == "| **tcald** | 56 · 33.8 · 0.05 % | – | – | – | 33.1 % |"
    assert len(lines) == 4


def test_every_structure_in_the_table_can_be_built() -> None:
    assert set(tcal_queue.TITLES) <= set(STRUCTURES)


def test_the_queues_document_is_current() -> None:
    found = json.loads((ROOT / "bench/results/tcal_queue.json").read_text())
    made = tcal_queue.tables(found["results"]["tcal_queue"])
    assert f"<!-- begin queue -->\n{made}<!-- end queue -->" in tcal_queue.DOCUMENT.read_text()


def test_only_the_tables_of_a_document_change(tmp_path: Path) -> None:
    document = tmp_path / "tcal.md"
    document.write_text("a\n<!-- begin queue -->\nold\n<!-- end queue -->\nb\n")
    tcal_queue.update("new\n", document)
    assert document.read_text() == "a\n<!-- begin queue -->\nnew\n<!-- end queue -->\nb\n"
    document.write_text("nothing")
    with pytest.raises(BenchError, match="begin queue"):
        tcal_queue.update("new\n", document)


def test_a_shaper_that_counts_frames_gets_the_rate_of_ip_bytes() -> None:
    path = Bottleneck(15_000_000, 10_000_000, 30_000)
    assert path.frame_rate_bps == 15_140_000
    assert path.frame_queue_bytes == 30_280
    assert path.packets == (18_750 + 30_000) // 1500


def test_the_table_of_timings_has_targets_and_ratios() -> None:
    least = {
        "tcald": {"rates": 4.004, "rates staged": 12.5, "usage": 3.0},
        tcal_peers.TcBatch.name: {"rates": 400.4},
        tcal_peers.Pyroute2.name: {},
    }
    rows = [tcal._row(step, least) for step in ("rates", "usage")]
    text = tcal_report.section({"machine": MACHINE, "results": {"tcal": rows}})
    assert "| change 1,000 rates | 10 ms | 4.0 ms | 12.5 ms | 400.4 ms (100 ×) | – |" in text
    assert tcal_report.wrong(rows) == ["read the usage of 1,000: 3.0 ms, not 2"]


def test_tc_is_given_the_same_tree() -> None:
    """For every destination a class, a netem, a fifo and a filter in the bucket of its octets."""
    lines = list(tcal_peers._tree(1000))
    kinds = Counter(line.split()[0] for line in lines)
    assert kinds["class"] == 1000
    assert kinds["qdisc"] == 1 + 2 * 1000
    buckets = Counter(line.split(" ht ")[1].split()[0] for line in lines if "flowid" in line)
    assert len(buckets) == 1000
    assert set(buckets.values()) == {1}
