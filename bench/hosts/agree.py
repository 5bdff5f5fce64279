"""Random networks, hop-exact and over hosts: the rate of every flow, the round trip of a probe."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BenchError
from bench.hosts.carry_out import carry_out
from bench.hosts.shares import BOUND, worst
from bench.tables import Cell, Record, Table
from tests.runs.delivered import Delivered
from tests.runs.runlog import RunLog
from tests.runs.scenes import Scene, random_scene

RTT_BOUND_MS = 0.3
WINDOW_S = (4.0, 11.5)  # settled, and before the programs end


def _worst(wanted: str) -> Cell:
    return lambda row: f"{worst(row[wanted], row['hosts_mbps']) * 100:.2f} %"


TABLES = (
    Table(
        {
            "Random network": "{seed}",
            "hosts": "{hosts}",
            "flows": lambda row: len(row["flows"]),
            "full links": "{full_links}",
            "rates: worst from hop-exact": _worst("exact_mbps"),
            "from the model": _worst("model_mbps"),
            "RTT hop-exact": lambda row: (
                f"{row['exact_rtt_ms']:.3f} ms" + (" (waits)" if row["probe_waits"] else "")
            ),
            "over hosts": "{hosts_rtt_ms:.3f} ms",
        }
    ),
)


def missed(rows: Sequence[Record]) -> list[str]:
    found: list[str] = []
    for row in rows:
        error = worst(row["exact_mbps"], row["hosts_mbps"])
        apart = abs(row["exact_rtt_ms"] - row["hosts_rtt_ms"])
        if error > BOUND:
            found.append(f"random network {row['seed']}: {error * 100:.1f} % from hop-exact")
        if apart > RTT_BOUND_MS and not row["probe_waits"]:
            found.append(f"random network {row['seed']}: round trips {apart:.3f} ms apart")
    return found


def measure(folder: Path, seeds: int) -> list[Record]:
    rows: list[Record] = []
    for seed in range(1, seeds + 1):
        scene = random_scene(seed)
        source = folder / f"random-{seed}.tdl"
        source.write_text(scene.text)
        hosts = 2 + seed % 3
        exact = carry_out(source, folder / f"random-{seed}-exact", 0)
        spread = carry_out(source, folder / f"random-{seed}-hosts", hosts)
        rows.append(_compared(scene, exact, spread, hosts))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _compared(scene: Scene, exact: Path, spread: Path, hosts: int) -> Record:
    rates = [_delivered(run) for run in (exact, spread)]
    names = sorted(scene.shares)
    return {
        "seed": scene.seed,
        "hosts": hosts,
        "full_links": scene.full,
        "flows": names,
        "elastic": [name in scene.elastic for name in names],
        "model_mbps": [round(scene.shares[name] / 1e6, 3) for name in names],
        "exact_mbps": [round(rates[0][name] / 1e6, 3) for name in names],
        "hosts_mbps": [round(rates[1][name] / 1e6, 3) for name in names],
        "probe_waits": scene.probe_waits,
        "exact_rtt_ms": _round_trip(exact),
        "hosts_rtt_ms": _round_trip(spread),
    }


def _delivered(run: Path) -> dict[str, float]:
    """b/s of IP bytes delivered by client's service, from the run's counters over the window."""
    found = Delivered(run)
    return {
        source.partition(".")[0]: found.mean_bps((source, dest), *WINDOW_S)
        for source, dest in found.pairs()
        if source[0] == "c" and dest == f"s{source[1:]}"
    }


def _round_trip(run: Path) -> float:
    """Median of the probe in ms over the window."""
    low, high = WINDOW_S
    probes = RunLog(run).probes("p.0")
    found = [p.rtt_ms for p in probes if low <= p.sent_s <= high and p.rtt_ms is not None]
    if len(found) < 20:
        raise BenchError(f"{run.name}: only {len(found)} probes came back")
    return round(statistics.median(found), 4)
