"""Fig. 8 of the Kollaps paper and Fig. 9 of Thunderstorm's: who gets how much of shared links, and
how soon. Over hosts the model (share in proportion to 1/RTT) decides; hop-exact it is TCP in real
drop-tail queues, and the rows only tell what it takes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench import ROOT
from bench.hosts import reaction
from bench.papers.context import EXACT, HOSTS, Context
from bench.papers.rows import BELOW, RELATIVE, TOLD, fold, goal, row
from bench.tables import Record
from compiler.plan.reader import read_plan
from tests.runs.delivered import Delivered
from tests.runs.stages import MBIT, Stage, dumbbell

WITHIN = 0.05
REACTION_MS = 300  # what the paper measured
_SETTLE = 0.5  # of a stage is left out: TCP adds one packet a round trip
STEP_S = 60
_UP = (
    (50.0,),
    (23.08, 26.92),
    (18.45, 21.55, 10.0),
    (18.45, 21.55, 10.0, 50.0),
    (16.89, 19.75, 10.0, 23.74, 29.62),
    (15.04, 17.55, 10.0, 21.06, 26.33, 10.0),
)
FIG_8 = (*_UP, *reversed(_UP[:-1]))  # clients start one by one and stop in reverse


def stages() -> list[Stage]:
    """Of Fig. 8, in the paper's own seconds."""
    return [
        Stage(
            n * STEP_S,
            (n + 1) * STEP_S,
            {(f"c{c + 1}.0", f"server.{c}"): share for c, share in enumerate(shares)},
        )
        for n, shares in enumerate(FIG_8)
    ]


def figure_8(context: Context) -> list[Record]:
    pace = 20 if context.quick else 6  # up to 5 s until Reno fills what it may
    source = context.scene("shares")
    rows: list[Record] = []
    for place in context.places(HOSTS, EXACT):
        with context.attempt(rows, "all stages", place):
            run = context.run(source, place, "--pace", str(pace))
            rows += shares(run, stages(), place, pace, context.why(run))
    return rows


def figure_9(context: Context) -> list[Record]:
    source = ROOT / "examples" / "dumbbell.tdl"
    more = ("--until", "20s") if context.quick else ()
    rows: list[Record] = []
    for place in context.places(HOSTS, EXACT):
        with context.attempt(rows, "all stages", place):
            run = context.run(source, place, *more)
            wanted = dumbbell(read_plan(run / "plan"))[: 2 if context.quick else None]
            rows += shares(run, wanted, place, 1, context.why(run))
    return fold([*rows, *_reaction(context)], EXACT)


def shares(run: Path, found: Sequence[Stage], place: str, pace: int, why: str) -> list[Record]:
    """A row for each client in each stage. Over hosts, the goal is the model's share."""
    delivered = Delivered(run)
    rows: list[Record] = []
    for number, stage in enumerate(found, 1):
        low = stage.start_s + _SETTLE * (stage.end_s - stage.start_s)
        for ends, share in stage.shares.items():
            got = delivered.mean_bps(ends, low / pace, stage.end_s / pace)
            made = row(
                f"stage {number}, {ends[0].partition('.')[0]}",
                place,
                "b/s",
                got,
                share * MBIT,
                goal=goal(RELATIVE, WITHIN) if place == HOSTS else goal(TOLD),
                paper="the model's share",
                why=why,
            )
            rows.append(made)
    return rows


def _reaction(context: Context) -> list[Record]:
    """How long until two flows have their shares after the second has begun, over hosts."""
    rounds = 10 if context.quick else reaction.REACTION_ROUNDS
    source = context.folder / "reaction.tdl"
    source.write_text(reaction.text(sys.executable, rounds))
    rows: list[Record] = []
    for place in context.places(HOSTS):
        with context.attempt(rows, "reaction to a new flow, p99", place):
            run = context.run(source, place)
            rows.append(_reacted(reaction.read(run, rounds), place, context.why(run)))
    return rows


def _reacted(found: Record, place: str, why: str) -> Record:
    return row(
        "reaction to a new flow, p99",
        place,
        "ms",
        float(found["p99_ms"]),
        None,
        goal=goal(BELOW, REACTION_MS),
        paper="some 300 ms",
        why=why,
        shown=f"{found['p99_ms']} ms, median {found['median_ms']} ms, {found['rounds']} times",
    )
