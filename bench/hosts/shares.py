"""The networks of the papers over 1, 2 and 4 hosts: what each client gets, against the model.

Input: examples/sixclients.tdl, examples/dumbbell.tdl and one sender with two destinations; what is
expected of them is in tests.runs.stages. What is measured is what the run's counters say was
delivered from the middle of a stage to its end: Reno adds one packet a round trip, so it takes up
to 5 s to fill what it may.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import ROOT
from bench.hosts.carry_out import carry_out
from bench.tables import Cell, Record, Table
from compiler.plan.reader import Plan, read_plan
from tests.runs.delivered import Delivered
from tests.runs.scenes import two_destinations_text
from tests.runs.stages import MBIT, Stage, dumbbell, sixclients, two_destinations

HOSTS = (1, 2, 4)
SETTLE = 0.5  # of a stage is left out


# By name: the text (empty: that of examples/), what is expected, and how much faster it runs.
SCENES: dict[str, tuple[str, Callable[[Plan], list[Stage]], int]] = {
    "sixclients": ("", sixclients, 2),
    "dumbbell": ("", dumbbell, 1),
    "destinations": (two_destinations_text(), two_destinations, 1),
}

BOUND = 0.05


def worst(wanted: Sequence[float], measured: Sequence[float]) -> float:
    """Largest relative deviation; 0 without any."""
    return max((abs(m - w) / w for w, m in zip(wanted, measured, strict=True) if w), default=0.0)


def _of_clients(rows: Sequence[Record]) -> str:
    """A line for each stage, a column for each client of any of the networks."""

    def share(name: str) -> Cell:
        def cell(row: Record) -> str:
            both = zip(row["measured_mbps"], row["model_mbps"], strict=True)
            got, want = dict(zip(row["clients"], both, strict=True))[name]
            return f"{got:.2f} ({want:.2f})"

        return cell

    names = sorted({client for row in rows for client in row["clients"]})
    columns: dict[str, Cell] = {
        "Mb/s: measured (model)": "{example}",
        "hosts": "{hosts}",
        "stage": "{stage}",
        **{name: share(name) for name in names},
        "worst": lambda row: f"{worst(row['model_mbps'], row['measured_mbps']) * 100:.1f} %",
    }
    return Table(columns)(rows)


TABLES = (_of_clients,)


def missed(rows: Sequence[Record]) -> list[str]:
    return [
        f"{row['example']} over {row['hosts']} hosts, stage {row['stage']}: "
        f"{error * 100:.1f} % from the model"
        for row in rows
        if (error := worst(row["model_mbps"], row["measured_mbps"])) > BOUND
    ]


def measure(folder: Path) -> list[Record]:
    rows: list[Record] = []
    for name, (text, stages, pace) in SCENES.items():
        source = folder / f"{name}.tdl"
        source.write_text(text or (ROOT / "examples" / source.name).read_text())
        for hosts in HOSTS:
            run = carry_out(source, folder / f"{name}-{hosts}", hosts, "--pace", str(pace))
            delivered = Delivered(run)
            for number, stage in enumerate(stages(read_plan(run / "plan")), 1):
                if stage.shares:
                    row = {"example": name, "hosts": hosts, "stage": number}
                    rows.append({**row, **_row(delivered, stage, pace)})
                    print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _row(delivered: Delivered, stage: Stage, pace: int) -> Record:
    low = stage.start_s + SETTLE * (stage.end_s - stage.start_s)
    ends = low / pace, stage.end_s / pace
    both = any(a == c and b != d for a, b in stage.shares for c, d in stage.shares)
    return {
        "clients": [(b if both else a).partition(".")[0] for a, b in stage.shares],
        "model_mbps": [round(share, 2) for share in stage.shares.values()],
        "measured_mbps": [
            round(delivered.mean_bps(pair, *ends) / MBIT, 2) for pair in stage.shares
        ],
    }
