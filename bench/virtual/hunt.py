"""How many storms it takes to a bug: `python -m bench.virtual.hunt`. Blind storms are those that
`tstorm hunt` draws; guided ones are changes of earlier ones (bench.virtual.guided_storms).

The bugs are errors of released programs, re-created in small ones: bench/virtual/bugs has an
experiment NAME.tdl and a program NAME.py for each, whose header says what it re-creates and where
that was told. Most take two faults together, or one at a certain moment. A trial draws storms with
a seed of its own until one fails, `--most` at most; both ways have the same seeds. Storms are
counted, not seconds, which depend on what else the machine does. They are carried out by
bench.virtual.stand_in, in a tenth of a second each; with `--guest N` this says for N storms of each
bug that fail there, and N that pass, what becomes of them in virtual time.

Writes bench/results/virtual-hunt.json after each trial, and goes on with what is there: the trials
of all bugs take turns, so that it may be ended at any time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from bench import RESULTS, ROOT, machine
from bench.errors import BenchError
from bench.tables import Record, Table
from bench.virtual import stand_in
from bench.virtual.guided_storms import LAG, Guidance
from compiler.pipeline import compile_source
from runtime.options import VIRTUAL, RunOptions
from tstorm.comparing import ranks
from tstorm.hunt import storm_runs, storms
from tstorm.hunt.hunt_results import FAILED, StormResult
from tstorm.hunt.storm_runs import HuntRequest
from tstorm.loading import sources_beside

FILE = RESULTS / "virtual-hunt.json"
PLACE = ROOT / "bench" / "virtual" / "bugs"
BUGS = sorted(path.stem for path in PLACE.glob("*.tdl"))
WAYS = ("blind", "guided")
TABLES = (
    Table(
        {
            "bug": "{bug}",
            "trials": "{trials}",
            "blind: median storms": "{blind_median:g}",
            "guided": "{guided_median:g}",
            "guided / blind": "{ratio:.2f}",
            "p (Mann-Whitney)": "{p:.2g}",
            "without a find": "{blind_without} and {guided_without}",
        }
    ),
)
IN_GUEST = (
    Table(
        {
            "bug": "{bug}",
            "fail in the stand-in": "{failed}",
            "of these in virtual time": "{failed_again}",
            "pass in the stand-in": "{passed}",
            "of these in virtual time ": "{passed_again}",
        }
    ),
)
Task = tuple[str, int, str, int]  # bug, seed, way, storms at most


def requested(bug: str) -> HuntRequest:
    source = PLACE / f"{bug}.tdl"
    text, sources = source.read_text(), sources_beside(str(source))
    compiled = compile_source(text, sources=sources, doubts=False)
    assert compiled.hunt is not None
    options = RunOptions(time=VIRTUAL, page=False, probes=False, packets=True)
    return HuntRequest(
        str(source), storms.without_hunt(text), sources, {}, options, bug, compiled.hunt,
        compiled.plan.end_ns, 1, 1,
    )  # fmt: skip


def trial(task: Task) -> int | None:
    """The number of storms up to the first that fails, that one included; None if none does.
    Each is drawn from what came of those that are LAG before it, as in a hunt."""
    bug, seed, way, most = task
    request = requested(bug)
    guidance = Guidance(request.space, seed, request.refused)
    found: list[StormResult] = []
    for number in range(most):
        if way == "guided" and number >= LAG:
            before = found[number - LAG]
            guidance.take(before.storm, before.reached)
        found.append(stand_in.carried_out(request, guidance.storm(number)))
        if found[-1].outcome == FAILED:
            return number + 1
    return None


def row(bug: str, ways: dict[str, list[int | None]], most: int) -> Record:
    """Of the trials that both ways have. Of one without a find the number of storms is known to be
    more than `most`."""
    count = min(len(ways[way]) for way in WAYS)
    known = {way: [most + 1 if one is None else one for one in ways[way][:count]] for way in WAYS}
    medians = {way: statistics.median(known[way]) for way in WAYS}
    return {
        "bug": bug,
        "trials": count,
        **{f"{way}_median": medians[way] for way in WAYS},
        **{f"{way}_without": known[way].count(most + 1) for way in WAYS},
        "ratio": medians["guided"] / medians["blind"],
        "p": ranks.probability(known["blind"], known["guided"]),
    }


def kept(most: int) -> Record:
    """What is known. BenchError if trials had another bound."""
    empty: Record = {"most": most, "runs": {bug: {way: [] for way in WAYS} for bug in BUGS}}
    if not FILE.exists():
        return empty
    document: Record = json.loads(FILE.read_text())
    if document["most"] != most:
        raise BenchError(f"{FILE} has trials with --most {document['most']}: say so, or --anew")
    document["runs"] = empty["runs"] | document["runs"]
    return document


def write(document: Record) -> None:
    runs, most = document["runs"], document["most"]
    rows = [row(bug, ways, most) for bug, ways in sorted(runs.items()) if all(ways.values())]
    results = {**document.get("results", {}), "hunt": rows}
    whole = {**document, "machine": machine.describe(), "results": results}
    draft = FILE.with_suffix(".new")
    draft.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    draft.replace(FILE)


def measure(document: Record, bugs: Sequence[str], trials: int, many: int) -> None:
    runs, most = document["runs"], document["most"]
    tasks = [
        (bug, seed, way, most)
        for seed in range(trials)
        for bug in bugs
        for way in WAYS
        if len(runs[bug][way]) <= seed
    ]
    with multiprocessing.get_context("fork").Pool(many) as pool:
        for (bug, seed, way, _), found in zip(tasks, pool.imap(trial, tasks), strict=True):
            runs[bug][way].append(found)
            print(bug, way, seed, found, flush=True)
            write(document)


def in_guest(bug: str, count: int) -> Record:
    """Blind storms that fail and pass in the stand-in, once more in virtual time."""
    request = requested(bug)
    again: dict[str, list[Any]] = {"failed": [], "passed": []}
    number = 0
    while any(len(one) < count for one in again.values()) and number < 100 * count:
        storm = storms.drawn(request.space, 0, number, request.refused)
        number += 1
        kind = stand_in.carried_out(request, storm).outcome
        if len(again[kind]) < count:
            found = storm_runs.carried_out(request, storm)
            again[kind].append(found is not None and found.outcome == kind)
    counts = {kind: len(found) for kind, found in again.items()}
    return {"bug": bug, **counts, **{f"{kind}_again": sum(again[kind]) for kind in again}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    parser.add_argument("--bug", choices=BUGS, action="append")
    parser.add_argument("--anew", action="store_true", help="forget the trials that are known")
    parser.add_argument("--guest", type=int, metavar="N", help="compare 2 N storms with the guest")
    asked = parser.parse_args()
    bugs: Sequence[str] = asked.bug or BUGS
    if asked.anew:
        FILE.unlink(missing_ok=True)
    try:
        document = kept(asked.most)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if asked.guest:
        rows = document.setdefault("results", {}).setdefault("guest", [])
        for bug in bugs:
            rows[:] = [one for one in rows if one["bug"] != bug] + [in_guest(bug, asked.guest)]
            print(rows[-1], flush=True)
            write(document)
    else:
        measure(document, bugs, asked.trials, asked.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
