"""What of the kernel datapath's measurements measures nothing: tables, trees."""

from __future__ import annotations

from collections import Counter

from bench import report
from bench.tcal import peers as tcal_peers
from bench.tcal import timings as tcal

MACHINE = {
    "cores": 2,
    "cpu": "Some CPU",
    "hypervisor": "yes",
    "kernel": "Linux 6.1",
    "load_1min_before": "0.10",
    "memory_mib": 1024,
}


def test_the_table_of_timings_has_targets_and_ratios() -> None:
    least = {
        "tcald": {"rates": 4.004, "rates staged": 12.5, "usage": 3.0},
        tcal_peers.TcBatch.name: {"rates": 400.4},
        tcal_peers.Pyroute2.name: {},
    }
    rows = [tcal._row(step, least) for step in ("rates", "usage")]
    text = report.section("tcal", {"machine": MACHINE, "results": {"tcal": rows}})
    assert "| change 1,000 rates | 10 ms | 4.0 ms | 12.5 ms | 400.4 ms (100 ×) | – |" in text
    assert tcal.missed(rows) == ["read the usage of 1,000: 3.0 ms, not 2"]


def test_tc_is_given_the_same_tree() -> None:
    """For every destination a class, a netem, a fifo and a filter in the bucket of its octets."""
    lines = list(tcal_peers._tree(1000))
    kinds = Counter(line.split()[0] for line in lines)
    assert kinds["class"] == 1000
    assert kinds["qdisc"] == 1 + 2 * 1000
    buckets = Counter(line.split(" ht ")[1].split()[0] for line in lines if "flowid" in line)
    assert len(buckets) == 1000
    assert set(buckets.values()) == {1}
