"""The dumbbells of the papers over 1, 2 and 4 hosts: what each client gets, against the model.

Input: examples/sixclients.tdl (paper 000, section 5.4) and examples/dumbbell.tdl (paper 002, Fig.
9). The shares of the first are those that the paper prints; of the second they are the model's over
the paths that the plan has at the time, which follow the same published formula.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench.hosts_scenes import model, numbers
from bench.probing import Record
from bench.report import ROOT
from bench.runlog import NS_PER_S, RunLog
from bench.sharing import CLIENTS, STAGES
from compiler.plan.reader import Plan, read_plan
from compiler.plan.state import NetworkState
from runtime.agent.solver import UNLIMITED
from runtime.agent.view import PlanView

HOSTS = (1, 2, 4)
SETTLE = 0.35  # of a stage is left out: TCP needs time to fill what it may
PACE = 2

Stage = tuple[float, float, dict[str, float]]  # plan time in s, share by client in Mb/s
CarryOut = Callable[..., Path]

DUMBBELL = ("c1", "c2", "c3")
DUMBBELL_STEPS_S = (0, 10, 20, 30, 40, 50, 60, 70)


def measure(folder: Path, carry_out: CarryOut) -> list[Record]:
    rows: list[Record] = []
    for example, stages in (("sixclients", _six), ("dumbbell", _dumbbell)):
        source = ROOT / "examples" / f"{example}.tdl"
        for hosts in HOSTS:
            run = carry_out(source, folder / f"{example}-{hosts}", hosts, "--pace", str(PACE))
            for number, stage in enumerate(stages(read_plan(run / "plan")), 1):
                row = {"example": example, "hosts": hosts, "stage": number, **_row(run, stage)}
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
    return rows


def _six(_plan: Plan) -> list[Stage]:
    return [(start, end, dict(zip(CLIENTS, shares, strict=False))) for start, end, shares in STAGES]


def _dumbbell(plan: Plan) -> list[Stage]:
    """Everyone who is there and reaches its server takes what it can get."""
    at = numbers(plan)
    found: list[Stage] = []
    for start in DUMBBELL_STEPS_S:
        state = plan.state_at(start * NS_PER_S)
        active = [client for client in DUMBBELL if _reaches(state, at, client)]
        pairs = {(at[f"{client}.0"], at[f"sv{client[1]}.0"]): UNLIMITED for client in active}
        shares, _ = model(plan, start * NS_PER_S, pairs)
        by_client = {
            client: shares[at[f"{client}.0"], at[f"sv{client[1]}.0"]] / 1e6 for client in active
        }
        found.append((start, start + 10, by_client))
    return found


def _reaches(state: NetworkState, at: dict[str, int], client: str) -> bool:
    ends = at[f"{client}.0"], at[f"sv{client[1]}.0"]
    return PlanView(state).path(*ends) is not None


def _row(run: Path, stage: Stage) -> Record:
    start, end, shares = stage
    low, high = (start + SETTLE * (end - start)) / PACE, end / PACE
    log = RunLog(run)
    return {
        "clients": list(shares),
        "model_mbps": [round(share, 2) for share in shares.values()],
        "measured_mbps": [_rate(log, client, low, high) for client in shares],
    }


def _rate(log: RunLog, client: str, low: float, high: float) -> float:
    """Mb/s of IP bytes; what an interval has inside the window counts in proportion."""
    bits = seconds = 0.0
    for line in log.intervals(f"{client}.0"):
        inside = min(line.end_s, high) - max(line.start_s, low)
        if inside > 0:
            bits += line.ip_bps * inside
            seconds += inside
    return round(bits / seconds / 1e6, 2) if seconds else 0.0
