"""The demonstration's verdict: a run that did what was planned passes, others are told apart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.judge import PEERS, PHASES, judge
from compiler.pipeline import compile_source, write
from compiler.plan.reader import read_plan
from tests.runs.runlog import NS_PER_S, Planned

ROOT = Path(__file__).resolve().parents[2]
START_NS = 5_000_000_000

Change = Callable[[float, float | None], float | None]


def as_planned(_at_s: float, value: float | None) -> float | None:
    return value


def made_run(
    folder: Path, *, rtt_ms: Change = as_planned, mbps: Change = as_planned, peers: int = 5
) -> Path:
    """A run directory whose logs are the plan itself, changed by the given functions."""
    (folder / "logs").mkdir(parents=True)
    write(compile_source((ROOT / "examples" / "demo.tdl").read_bytes()), folder / "plan")
    plan = read_plan(folder / "plan")
    (folder / "manifest.json").write_text(json.dumps({"start_monotonic_ns": START_NS}))
    pings, stream = Planned(plan, "pinger.0", "server.0"), Planned(plan, "streamer.0", "server.0")
    _log(folder, "pinger.0", [_probe(at / 50, pings, rtt_ms) for at in range(43 * 50)])
    _log(folder, "streamer.0", [_interval(at / 4, stream, mbps) for at in range(1, 43 * 4 + 1)])
    names = [node.name for node in plan.topology.nodes]
    for peer in PEERS:
        node = names.index(peer)
        times = [at / 10 for at in range(430) if plan.state_at(at * 10**8).nodes[node] == "up"]
        lines = [_probe(at, pings, as_planned) for at in times]
        _log(folder, peer, lines if PEERS.index(peer) < peers else [])
    return folder


def _log(folder: Path, name: str, lines: list[dict[str, object]]) -> None:
    (folder / "logs" / f"{name}.log").write_text("\n".join(map(json.dumps, lines)) + "\n")


def _probe(at_s: float, planned: Planned, change: Change) -> dict[str, object]:
    stretch = planned.at(at_s)
    rtt = change(at_s, stretch.rtt_ms if stretch.reachable else None)
    line: dict[str, object] = {"t_ns": START_NS + round(at_s * NS_PER_S), "seq": 0}
    return {**line, "lost": True} if rtt is None else {**line, "rtt_us": rtt * 1000}


def _interval(end_s: float, planned: Planned, change: Change) -> dict[str, object]:
    stretch = planned.at(end_s - 0.125)
    mbps = change(end_s, stretch.rate_bps / 1e6 if stretch.reachable else 0.0)
    return {
        "t_ns": START_NS + round(end_s * NS_PER_S),
        "seconds": 0.25,
        "bps": (mbps or 0.0) * 1e6 * 1448 / 1500,
        "mss": 1448,
    }


def wrong(folder: Path) -> dict[str, str]:
    return {row.cells[0]: "; ".join(row.wrong) for row in judge(folder) if row.wrong}


def test_a_run_as_planned_passes(tmp_path: Path) -> None:
    rows = judge(made_run(tmp_path))
    assert [row.cells[0] for row in rows] == [phase.name for phase in PHASES]
    assert [row.wrong for row in rows] == [()] * len(PHASES)
    latency = rows[1].cells
    assert latency[2:6] == ("56.00 ms", "56.00 ms", "100%", "100%")
    assert latency[6:8] == ("20.00 Mb/s", "20.00 Mb/s")
    flap = rows[3].cells
    assert flap[4] == flap[5] and flap[4] in ("49%", "50%", "51%")
    assert flap[6:8] == ("–", "–")


def test_a_change_that_did_not_happen_is_seen(tmp_path: Path) -> None:
    folder = made_run(tmp_path, rtt_ms=lambda at, rtt: 26.0 if 5 <= at < 10 else rtt)
    assert set(wrong(folder)) == {"latency: edge--north 20 ms"}
    assert "26.00 ms instead of 56.00 ms" in wrong(folder)["latency: edge--north 20 ms"]


def test_a_partition_that_leaks_is_seen(tmp_path: Path) -> None:
    folder = made_run(tmp_path, rtt_ms=lambda at, rtt: 26.0 if at >= 33 else rtt)
    assert set(wrong(folder)) == {"partition: edge; core"}
    assert "answered while there was no path" in wrong(folder)["partition: edge; core"]


def test_a_network_that_loses_everything_is_seen(tmp_path: Path) -> None:
    folder = made_run(tmp_path, rtt_ms=lambda _at, _rtt: None)
    assert set(wrong(folder)) == {phase.name for phase in PHASES} - {"partition: edge; core"}


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_rate_is_seen(tmp_path: Path, factor: float) -> None:
    folder = made_run(tmp_path, mbps=lambda at, mbps: (mbps or 0) * (factor if at > 38 else 1))
    assert set(wrong(folder)) == {"healed"}


def test_a_missing_peer_is_seen(tmp_path: Path) -> None:
    found = wrong(made_run(tmp_path, peers=4))
    assert found["as declared"] == "4 peers are alive instead of 5"


def test_the_phases_are_those_of_the_demos_file() -> None:
    compilation = compile_source((ROOT / "examples" / "demo.tdl").read_bytes())
    assert PHASES[0].start_s == 0
    assert PHASES[-1].end_s * NS_PER_S == compilation.timeline.end_ns
    assert compilation.timeline.end_ns < 60 * NS_PER_S
    for before, after in itertools.pairwise(PHASES):
        assert before.end_s == after.start_s
    instants = {event.at_ns / NS_PER_S for event in compilation.events}
    starts = {phase.start_s for phase in PHASES} - {25.0}  # churn has random moments
    assert starts <= instants
