"""What TCP really takes in examples/sixclients.tdl, hop-exact, beside the model.

Runs the example once for each congestion control, 80 s each. The model is the RTT-aware max-min
share of the papers; hop-exact links are drop-tail queues, so TCP's own shares differ from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.hosts.carry_out import carry_out
from bench.tables import Record, table
from compiler.plan.reader import Plan, read_plan
from tests.runs.runlog import NS_PER_S, RunLog
from tests.runs.stages import CLIENTS, SIX_CLIENTS

CONTROLS = ("reno", "cubic", "bbr")
SHARED = ("b1->b2", "b2->b3")
SETTLE = 0.3  # of a stage is left out: TCP needs time to find its share


def _table(rows: Sequence[Record]) -> str:
    """One row a stage and control: each client's measured share, the model's in brackets."""
    made: list[tuple[str, ...]] = []
    for row in rows:
        cells = [
            f"{got:.1f} ({want:.1f})"
            for got, want in zip(row["measured_mbps"], row["model_mbps"], strict=True)
        ]
        cells += ["–"] * (len(CLIENTS) - len(cells))
        used = [f"{row['used'][name] * 100:.1f} %" for name in SHARED]
        made.append((str(row["control"]), *cells, *used))
    head = ("Mb/s: measured (model)", *CLIENTS, *(f"{link} used" for link in SHARED))
    return table(head, made)


TABLES = (_table,)


def measure(folder: Path) -> list[Record]:
    rows: list[Record] = []
    text = (ROOT / "examples" / "sixclients.tdl").read_text()
    for control in CONTROLS:
        source = folder / f"{control}.tdl"
        source.write_text(text.replace("--cc reno", f"--cc {control}"))
        found = _stages(carry_out(source, folder / control, 0), control)
        rows += found
        for row in found:
            print(row, file=sys.stderr, flush=True)
    return rows


def _stages(directory: Path, control: str) -> list[Record]:
    plan, log = read_plan(directory / "plan"), RunLog(directory)
    rows: list[Record] = []
    for number, (start, end, model) in enumerate(SIX_CLIENTS, 1):
        low, high = start + SETTLE * (end - start), end
        rows.append(
            {
                "control": control,
                "stage": number,
                "model_mbps": list(model),
                "measured_mbps": [_share(log, c, low, high) for c in CLIENTS[: len(model)]],
                "used": {name: _used(directory, plan, name, low, high) for name in SHARED},
            }
        )
    return rows


def _share(log: RunLog, client: str, low: float, high: float) -> float:
    """Mean rate of one client in Mb/s of IP bytes."""
    lines = [
        line for line in log.intervals(f"{client}.0") if line.start_s >= low and line.end_s <= high
    ]
    seconds = sum(line.end_s - line.start_s for line in lines)
    if not seconds:
        raise BenchError(f"{client} reported nothing between {low} and {high} s")
    bits = sum(line.ip_bps * (line.end_s - line.start_s) for line in lines)
    return round(bits / seconds / 1e6, 2)


def _used(directory: Path, plan: Plan, link: str, low: float, high: float) -> float:
    """Share of the link's rate that left it in that time, by the engine's counters."""
    index = [each.name for each in plan.topology.links].index(link)
    header, *samples = map(json.loads, (directory / "samples.jsonl").read_text().splitlines())
    column = header["columns"]["links"].index("out_bytes")
    points: list[tuple[float, int]] = []
    for sample in samples:
        at_s = sample["elapsed_ns"] / NS_PER_S
        if low <= at_s <= high:
            points += [(at_s, row[column]) for row in sample["links"] if row[0] == index]
    if len(points) < 2:
        raise BenchError(f"no samples of {link} between {low} and {high} s")
    (first_s, first), (last_s, last) = points[0], points[-1]
    rate_bps = plan.topology.links[index].state.rate_bps
    return round((last - first) * 8 / (last_s - first_s) / rate_bps, 4)
