"""What is drawn: an experiment, with what a run of it has recorded if it is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from compiler.plan.reader import Plan
from compiler.plan.types import Topology, direction_name, named_direction
from runtime.options import DEFAULTS, RunOptions, decode
from runtime.rundir.rundir import RunDirectory, recorded
from runtime.rundir.sample_reader import CounterGrowth, CounterSample, Key, Row, read_samples
from runtime.schedule import Schedule
from tdl.suggest import did_you_mean
from tstorm.loading import STDIN, experiment_name, is_run, load_plan

SECOND = 1e9
TimedRow = tuple[int, int, Row]  # the plan time that a sample tells of, and counters by column


@dataclass(frozen=True, slots=True)
class Subject:
    name: str  # of the run or the experiment
    plan: Plan
    options: RunOptions
    run: RunDirectory | None  # None: nothing was run

    def schedule(self) -> Schedule:
        return Schedule(self.plan, self.options)

    def samples(self) -> Iterator[CounterSample]:
        """None of what was not run. RunError."""
        return iter(()) if self.run is None else read_samples(self.run)

    def rows(self, kind: str, key: Key) -> list[TimedRow]:
        """Of the samples that tell of one link or pair. RunError."""
        pace = self.options.pace
        return [
            (sample.plan_since_ns(pace), sample.at_ns, row)
            for sample in self.samples()
            for _, row in sample.rows(kind, {key})
        ]


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
    rows: Iterable[TimedRow], column: str, begin_ns: int, end_ns: int, count: int
) -> list[int]:
    """By how much a cumulative counter grew in each of `count` equal parts of the time."""
    counter = CounterGrowth()
    for since_ns, at_ns, row in rows:
        counter.add(since_ns, at_ns, row.get(column, 0))
    edges = (begin_ns + (end_ns - begin_ns) * part // count for part in range(count + 1))
    return [after - before for before, after in pairwise(map(counter.by, edges))]


# Names of links on the command line: `A--B` as TDL writes it, `A->B` as plans do, and in front of
# either, or alone, what `name=` calls a link.


def link_of(topology: Topology, name: str) -> int:
    """The direction from A to B; a service with one instance stands for it. Of several between
    the two the first that is declared, unless it is named. Usage error."""
    single = {one.name: f"{one.name}.0" for one in topology.services if one.replicas == 1}
    src, dst, called = (word.strip() for word in named_direction(name.replace("--", "->")))
    src, dst = single.get(src, src), single.get(dst, dst)
    wanted = direction_name(src, dst, called)
    for number, link in enumerate(topology.links):
        a, b, its = named_direction(link.name)
        if ((a, b) == (src, dst) and called in ("", its)) or (its and its == name.strip()):
            return number
    known = [link.name.replace("->", "--") for link in topology.links]
    hint = did_you_mean(wanted.replace("->", "--"), known)
    said = f" {hint[0].upper()}{hint[1:]}" if hint else ""
    raise click.BadParameter(f"no link '{name}'.{said}", param_hint="'--link'")
