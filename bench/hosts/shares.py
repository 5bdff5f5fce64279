"""The networks of the papers over 1, 2 and 4 hosts: what each client gets, against the model.

Input: examples/sixclients.tdl (paper 000, section 5.4), examples/dumbbell.tdl (paper 002, Fig. 9)
and one sender with two destinations. The shares of the first are those that the paper prints; of
the others they are the model's over the paths that the plan has at the time, which follow the same
published formula. What is measured is what the run's counters say was delivered from the middle of
a stage to its end: Reno adds one packet a round trip, so it takes up to 5 s to fill what it may.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.engine.probing import Record
from bench.report import ROOT
from bench.sharing import CLIENTS, STAGES
from compiler.plan.reader import Plan, read_plan
from compiler.plan.state import NetworkState
from runtime.agent.path.view import PlanView
from runtime.agent.share.solver import UNLIMITED
from tests.runs.delivered import Delivered, Ends
from tests.runs.runlog import NS_PER_S
from tests.runs.scenes import model, numbers, two_destinations_text

HOSTS = (1, 2, 4)
SETTLE = 0.5  # of a stage is left out
MBIT = 1e6

CarryOut = Callable[..., Path]


@dataclass(frozen=True, slots=True)
class Stage:
    """A time in which nothing changes."""

    start_s: float  # of the plan
    end_s: float
    shares: dict[Ends, float]  # Mb/s by source and destination


def sixclients(_plan: Plan) -> list[Stage]:
    pairs = [(f"{client}.0", f"server.{number}") for number, client in enumerate(CLIENTS)]
    return [
        Stage(start, end, dict(zip(pairs, shares, strict=False))) for start, end, shares in STAGES
    ]


def dumbbell(plan: Plan) -> list[Stage]:
    """Everyone who is there and reaches its server takes what it can get."""
    pairs = [(f"c{number}.0", f"sv{number}.0") for number in (1, 2, 3)]
    return [_stage(plan, pairs, start, start + 10) for start in range(0, 80, 10)]


def two_destinations(plan: Plan) -> list[Stage]:
    """Nobody at first, then both: 1/20 ms to 1/100 ms."""
    return [_stage(plan, [("c.0", "near.0"), ("c.0", "far.0")], 1, 8)]


def _stage(plan: Plan, pairs: list[Ends], start: int, end: int) -> Stage:
    at = numbers(plan)
    state = plan.state_at(start * NS_PER_S)
    active = [pair for pair in pairs if _reaches(state, at[pair[0]], at[pair[1]])]
    wanted = {(at[a], at[b]): UNLIMITED for a, b in active}
    found, _ = model(plan, start * NS_PER_S, wanted)
    return Stage(start, end, {(a, b): found[at[a], at[b]] / MBIT for a, b in active})


def _reaches(state: NetworkState, source: int, dest: int) -> bool:
    return PlanView(state).path(source, dest) is not None


# By name: the text (empty: that of examples/), what is expected, and how much faster it runs.
SCENES: dict[str, tuple[str, Callable[[Plan], list[Stage]], int]] = {
    "sixclients": ("", sixclients, 2),
    "dumbbell": ("", dumbbell, 1),
    "destinations": (two_destinations_text(), two_destinations, 1),
}


def measure(folder: Path, carry_out: CarryOut) -> list[Record]:
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
