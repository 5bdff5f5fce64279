"""What bench.routing makes of its measurements: growth, targets, tables. Nothing is timed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import RESULTS, report
from bench import __main__ as command
from bench.engine.netns import privilege
from bench.errors import BenchError
from bench.routing import measure as routing
from bench.routing.graphs import HOP_BITS, access, bridges, whole
from bench.routing.job import Watch, evenly, peak_mib
from bench.routing.judge import exponent, growths, targets
from bench.routing.measured import measured
from compiler.pipeline import compile_source
from tests.plan.topologies import scale_free

Row = dict[str, Any]


def test_exponents_are_those_of_powers() -> None:
    points = [(1000, 3.0), (2000, 12.0), (4000, 48.0)]
    assert exponent(points) == pytest.approx(2)
    assert exponent([(x, 7.0) for x, _ in points]) == pytest.approx(0)


def rows() -> list[Row]:
    """Every part at every size, quadratic or linear."""
    made: list[Row] = []
    for size in (1000, 2000, 4000, 10_000):
        square = (size / 4000) ** 2
        mine = {"wall_s": 0.4 * square, "cpu_s": 0.4 * square, "peak_mib": 50.0}
        pairs = {"part": "all-pairs", "size": size, "sources": 10, "of": 10, **mine}
        made += [
            {
                "part": "compile",
                "size": size,
                **mine,
                "without_manifests": mine,
                "plan_bytes": 5000 * size,
            },
            {"part": "query", "size": size, "wall_s": 0.2, "cpu_s": 0.1, "peak_mib": 30.0},
            {**pairs, "tool": "tstorm", "over": "bridges", "all_wall_s": 0.4 * square},
            {
                **pairs,
                "tool": "networkx",
                "over": "whole",
                "sources": 5,
                "all_wall_s": 20 * square,
            },
            {
                "part": "repair",
                "size": size,
                "wall_s": size / 4000,
                "mean_ms": 0.5,
                "median_ms": 0.1,
                "max_ms": 3.0,
            },
            {
                "part": "recompute",
                "size": size,
                "tool": "scipy",
                "over": "bridges",
                "mean_ms": 400 * square,
            },
            {"part": "ratio", "size": size, "ratio": 800 * square, "ratio_if_needed": 200 * square},
            {
                "part": "agreement",
                "size": size,
                "epochs": 22,
                "pairs": 1000,
                "paths": 20,
                "tied": 1,
                "differences": [],
            },
        ]
    return made


def test_growth_is_of_the_three_sizes_only() -> None:
    found = {row["what"]: row["exponent"] for row in growths(rows())}
    assert found["all pairs: tstorm, bridges"] == 2
    assert found["all pairs: networkx, whole"] == 2
    assert found["plan: size"] == 1
    assert found["one event: tstorm"] == 0
    assert growths([row for row in rows() if row["size"] != 2000]) == []


def test_targets_are_judged_at_their_size() -> None:
    judged = targets(rows())
    assert [row["met"] for row in judged] == [True] * 12
    assert routing.missed(judged) == []
    assert targets([row for row in rows() if row["size"] == 1000])[0]["what"].startswith("agree")
    slow = [{**row, "wall_s": 100.0} if row["part"] == "compile" else row for row in rows()]
    assert routing.missed(targets(slow)) == [
        "tstorm compile, 4000 elements: 100 s instead of ≤ 8 s",
        "tstorm compile, 10000 elements: 100 s instead of ≤ 60 s",
    ]
    few = [{**row, "ratio": 49.9} if row["part"] == "ratio" else row for row in rows()]
    assert routing.missed(targets(few)) == [
        "against recomputing, 4000 elements: 49.9 × instead of ≥ 50 ×"
    ]


def test_a_difference_from_networkx_is_a_failure() -> None:
    wrong = [{**row, "differences": ["a"]} if row["part"] == "agreement" else row for row in rows()]
    assert routing.differs(rows()) == 0
    assert routing.differs(wrong) == 4
    assert (
        "1 in 1,000 paths of 22 epochs instead of no difference"
        in routing.missed(targets(wrong))[-1]
    )


def test_tables_show_what_was_extrapolated() -> None:
    machine = {
        "cpu": "Some CPU",
        "cores": 2,
        "memory_mib": 1024,
        "kernel": "Linux 6.1",
        "hypervisor": "yes",
        "load_1min_before": "0.10",
    }
    found = [*rows(), *growths(rows()), *targets(rows())]
    text = report.section("routing", {"machine": machine, "results": {"routing": found}})
    assert "Some CPU, 2 cores" in text
    assert "| tstorm compile, 4000 elements | ≤ 8 s | 0.4 s | yes |" in text
    assert "| tstorm | bridges, then extended | 25 ms, 50 MiB | 100 ms, 50 MiB |" in text
    assert "| networkx | the whole graph | ≈ 1.25 s, 50 MiB | ≈ 5 s, 50 MiB |" in text
    assert "| best library / tstorm | every epoch | 50 × | 200 × | 800 × | 5000 × | – |" in text
    assert "| 4,000 elements | 22 | 1,000 | 20 | 1 | 0 |" in text


def test_routing_has_a_result_file_of_its_own(tmp_path: Path) -> None:
    found: dict[str, list[Row]] = {"routing": [], "rate": []}
    assert set(command._files(found, None, False)) == {
        RESULTS / "routing.json",
        RESULTS / f"{privilege()}.json",
    }
    assert list(command._files(found, None, True)) == [RESULTS / "quick.json"]
    out = tmp_path / "out.json"
    command._write(out, {"format": 1}, {"rate": [{"a": 1}]}, merge=False)
    command._write(out, {"format": 1}, {"routing": [{"b": 2}]}, merge=True)
    document = json.loads(out.read_text())
    assert document["results"] == {"rate": [{"a": 1}], "routing": [{"b": 2}]}


def test_a_command_is_measured_with_what_it_says() -> None:
    code = "import sys; x = bytearray(60 << 20); print('said'); sys.exit('why')"
    found = measured([sys.executable, "-c", code])
    assert (found["status"], found["stdout"], found["stderr"]) == (1, "said\n", "why\n")
    assert found["peak_mib"] > 60
    assert found["wall_s"] > 0


def test_only_the_making_of_items_is_timed() -> None:
    watch = Watch()
    assert list(watch.times(iter([1, 2, 3]))) == [1, 2, 3]
    assert 0 < watch.wall_s < 5
    assert peak_mib() > 1


def test_samples_are_spread_evenly() -> None:
    assert evenly(range(100), 4) == [0, 25, 50, 75]
    assert evenly([5, 6], 4) == evenly([5, 6], 0) == [5, 6]


def test_graphs_for_libraries_hold_the_links_that_are_up() -> None:
    plan = compile_source(scale_free(60, events=40)).plan
    start = plan.state_at(0)
    graph, core, beside = whole(start), bridges(start), access(start)
    assert (graph.nodes, len(graph.src)) == (60, len(plan.topology.links))
    assert (core.nodes, len(core.src)) == (20, 2 * (1 + 2 * 18))
    assert len(beside.anchor) == len(beside.up) == len(beside.down) == 40
    first = plan.topology.links[0]
    assert graph.weight[0] == (first.state.delay_ns << HOP_BITS) + 1
    assert (graph.src[0], graph.dst[0]) == (first.src, first.dst)
    down = [plan.state_at(e.at_ns) for e in plan.epochs]
    with pytest.raises(BenchError, match="access link is down"):
        [access(state) for state in down]
    assert min(len(whole(state).src) for state in down) < len(graph.src)
