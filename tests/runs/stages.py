"""Stages of the papers' networks, and the share that each client has in them.

Of examples/sixclients.tdl (paper 000, section 5.4) they are those that the paper prints; of
examples/dumbbell.tdl (paper 002, Fig. 9) and of one sender with two destinations they are the
model's over the paths that the plan has at the time, which follow the same published formula.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from runtime.agent.path.prefetcher import PlanView
from runtime.agent.share.solver import UNLIMITED
from tests.runs.delivered import Ends
from tests.runs.runlog import NS_PER_S
from tests.runs.scenes import model, numbers

CLIENTS = tuple(f"c{number}" for number in range(1, 7))  # of sixclients
MBIT = 1e6

# Of sixclients: plan time of each stage in s, and shares in Mb/s by client.
SIX_CLIENTS: tuple[tuple[float, float, tuple[float, ...]], ...] = (
    (1, 20, (23.08, 26.92)),
    (20, 40, (18.46, 21.54, 10.0)),
    (40, 60, (16.93, 19.75, 10.0, 23.70, 29.62)),
    (60, 80, (15.05, 17.55, 10.0, 21.07, 26.33, 10.0)),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A time in which nothing changes."""

    start_s: float  # of the plan
    end_s: float
    shares: dict[Ends, float]  # Mb/s by source and destination


def sixclients(_plan: Plan) -> list[Stage]:
    pairs = [(f"{client}.0", f"server.{number}") for number, client in enumerate(CLIENTS)]
    return [
        Stage(start, end, dict(zip(pairs, shares, strict=False)))
        for start, end, shares in SIX_CLIENTS
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
