"""What is drawn: an experiment, with what a run of it has recorded if it is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan.reader import Plan
from runtime.options import DEFAULTS, RunOptions, decode
from runtime.rundir.line_files import read_lines
from runtime.rundir.rundir import RunDirectory, recorded
from runtime.rundir.runfiles import SAMPLES
from runtime.schedule import Schedule
from tstorm.loading import STDIN, experiment_name, is_run, load_plan

SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Subject:
    name: str  # of the run or the experiment
    plan: Plan
    options: RunOptions
    run: RunDirectory | None  # None: nothing was run

    def schedule(self) -> Schedule:
        return Schedule(self.plan, self.options)

    def rows(self, kind: str, keys: Mapping[str, int]) -> Iterator[tuple[int, dict[str, int]]]:
        """(plan time, counters by column) of the samples of one link or pair. RunError."""
        for at_ns, rows in self.samples(kind):
            for one in rows:
                if all(one.get(key) == number for key, number in keys.items()):
                    yield at_ns, one

    def samples(self, kind: str) -> Iterator[tuple[int, list[dict[str, int]]]]:
        """(plan time, counters by column of all that moved) of each sample. RunError."""
        if self.run is None or not self.run.has(SAMPLES):
            return
        columns: list[str] = []
        for sample in read_lines(self.run, SAMPLES):
            if "columns" in sample:
                columns = sample["columns"][kind]
                continue
            at_ns = sample.get("at_ns")
            if isinstance(at_ns, int):
                yield at_ns, [dict(zip(columns, row, strict=False)) for row in sample[kind]]


def subject(source: str, seed: int | None = None) -> Subject:
    """Of a run (by its directory, or by its name while it goes on), a plan or a TDL text."""
    if source != STDIN and not Path(source).exists() and not source.endswith(".tdl"):
        from runtime.launch.run_status import directory_of

        source = str(directory_of(source).path)
    plan = load_plan(source, seed)
    if source == STDIN or not is_run(source):
        return Subject(experiment_name(source), plan, DEFAULTS, None)
    run = recorded(source)
    manifest: Mapping[str, Any] = run.manifest()
    return Subject(manifest["run_id"], plan, decode(manifest["options"], "options"), run)


def bucketed(
    rows: list[tuple[int, dict[str, int]]], column: str, begin_ns: int, end_ns: int, count: int
) -> list[int]:
    """By how much a cumulative counter moved in each of `count` equal parts of the time."""
    found, before = [0] * count, 0
    width = max(end_ns - begin_ns, 1)
    for at_ns, row in rows:
        value = row.get(column, before)
        place = min(max((at_ns - begin_ns) * count // width, 0), count - 1)
        found[place] += max(value - before, 0)
        before = value
    return found
