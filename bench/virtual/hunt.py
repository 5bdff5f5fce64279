"""How many runs it takes to a planted bug, guided and blind: `python -m bench.virtual.hunt`.

The bugs are those of bench.virtual.planted_bugs. A trial draws storms with a seed of its own until
one fails, `--most` at most; what fails is not shrunk. Runs are counted, not seconds: those do not
depend on what else the machine does. Writes bench/results/virtual-hunt.json after each trial.
Guidance begins with storm 8 (tstorm.hunt.guidance), so a bug that takes fewer runs says nothing
about it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import RESULTS, machine
from bench.virtual.planted_bugs import BUGS
from compiler.pipeline import compile_source
from runtime.options import VIRTUAL, RunOptions
from tstorm.campaign import jobs
from tstorm.hunt import hunt_directory, storm_runs, storms
from tstorm.hunt.guidance import Guidance
from tstorm.hunt.hunt_directory import HuntRecord
from tstorm.hunt.hunt_results import FAILED, FindResult, StormResult
from tstorm.hunt.hunting import Hunting
from tstorm.hunt.storm_runs import HuntRequest
from tstorm.hunt.storms import Storm
from tstorm.loading import sources_beside

FILE = RESULTS / "virtual-hunt.json"
WAYS = ("guided", "blind")


class Runs:
    """Runs storms; of those that fail nothing further is made."""

    def __init__(self, request: HuntRequest) -> None:
        self.request = request

    def storm(self, storm: Storm) -> StormResult | None:
        return storm_runs.carried_out(self.request, storm)

    def find(self, found: StormResult, _draft: Path) -> FindResult:
        return FindResult(found.storm.number, 0)


def requested(bug: str, place: Path) -> HuntRequest:
    """With its files in that folder."""
    source, text = place / f"{bug}.tdl", BUGS[bug].experiment
    source.write_text(text)
    (place / f"{bug}.py").write_text(BUGS[bug].program)
    sources = sources_beside(str(source))
    compiled = compile_source(text, sources=sources, doubts=False)
    assert compiled.hunt is not None
    options = RunOptions(time=VIRTUAL, page=False, probes=False, packets=True)
    return HuntRequest(
        str(source), storms.without_hunt(text), sources, {}, options, bug, compiled.hunt,
        compiled.plan.end_ns, 1, 1,
    )  # fmt: skip


def trial(request: HuntRequest, seed: int, way: str, most: int) -> int | None:
    """The number of runs up to the first that fails, that one included; None if none does."""
    blind = way == "blind"
    record = HuntRecord(
        hunt_directory.FORMAT, hunt_directory.VERSION, request.name, request.source, "", seed,
        blind, 1, 1, {}, request.options.to_record(),
    )  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="ts-hunt-") as place,
        hunt_directory.opened(Path(place) / "hunt", record) as hunt,
    ):

        def is_over(number: int) -> bool:
            failed = any(one.outcome == FAILED for one in hunt.storms.values())
            return failed or number >= most

        guidance = Guidance(request.space, seed, request.refused, blind)
        hunting = Hunting(hunt, guidance, Runs(request), is_over, lambda _one: None)
        hunting.carry_out(jobs.shares(None, 8, virtual=True))
        failed = [number for number, one in hunt.storms.items() if one.outcome == FAILED]
        return 1 + min(failed) if failed else None


def summed(runs: list[int | None], most: int) -> dict[str, Any]:
    """Of trials without a find the number of runs is known to be more than `most`."""
    known = [most + 1 if one is None else one for one in runs]
    median = statistics.median(known)
    return {"runs": runs, "found": sum(one is not None for one in runs), "median": median}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--bug", choices=BUGS, action="append")
    asked = parser.parse_args()
    rows: dict[str, dict[str, list[int | None]]] = {}
    with tempfile.TemporaryDirectory(prefix="ts-hunt-") as place:
        for bug in asked.bug or BUGS:
            request = requested(bug, Path(place))
            rows[bug] = {way: [] for way in WAYS}
            for seed in range(asked.trials):
                for way in WAYS:
                    rows[bug][way].append(trial(request, seed, way, asked.most))
                    print(bug, way, seed, rows[bug][way][-1], flush=True)
                written(rows, asked.most)
    return 0


def written(rows: dict[str, dict[str, list[int | None]]], most: int) -> None:
    """What was measured so far."""
    found = {
        bug: {way: summed(runs, most) for way, runs in ways.items()} for bug, ways in rows.items()
    }
    document = {"most": most, "bugs": found, "machine": machine.describe()}
    FILE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
