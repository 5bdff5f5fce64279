"""What the commands that touch runs share: errors, options, and carrying a plan out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.loading import STDIN, plan_errors_shown
from tstorm.options.cluster import only_in_cluster

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.rules.datapath_fit import Misfit
    from runtime.driver.progress import Progress, Reporter
    from runtime.errors import UnfitError
    from runtime.launch.run_result import RunResult
    from runtime.options import RunOptions, RunPlaces
    from runtime.virtual.standstill import Repetition
    from tstorm.loading import PlanToRun


@contextmanager
def errors_shown() -> Iterator[None]:
    """Turns a RunError or PlanError inside into the command's end, with its own exit code."""
    from runtime.errors import RunError

    try:
        with plan_errors_shown():
            yield
    except RunError as error:
        remedy = f"\nhint: {output.visible(error.remedy)}" if error.remedy else ""
        said = output.visible(error.message)
        raise CommandError(f"error: {said}{remedy}", error.exit_code) from error


def options_of(asked: Mapping[str, Any], recorded: Mapping[str, Any] | None = None) -> RunOptions:
    """What the command line says (`asked`: by option, what was said), else what the manifest of an
    earlier run says, else defaults."""
    from runtime.options import DEFAULTS, K8S, REAL, VIRTUAL, WITH_AGENTS, WITH_VIRTUAL_TIME, decode

    before = decode(recorded["options"], "options") if recorded else DEFAULTS
    changes = dict(asked)
    if asked.get("backend", before.backend) != before.backend or asked.get("hosts") == 0:
        # elsewhere or hop-exact, whatever the recorded run was
        elsewhere = {"faults": {}, "datapath": DEFAULTS.datapath, "hosts": 0, "nodes": ""}
        changes = {**elsewhere, **asked}
    if asked.get("backend") == K8S and "time" not in asked:
        changes["time"] = REAL  # a cluster has no other
    if asked.get("backend") == K8S and "images" not in asked:
        changes["images"] = DEFAULTS.images
    if (asked.get("backend") == K8S or asked.get("hosts")) and "packets" not in asked:
        changes["packets"] = False  # no process sees them there; who asks for them is told
    one_thread = {"backend": K8S, "time": VIRTUAL, "datapath": "kernel"}
    if any(changes.get(name, getattr(before, name)) == value for name, value in one_thread.items()):
        changes.setdefault("engine_threads", DEFAULTS.engine_threads)
    in_cluster = changes.get("backend", before.backend) == K8S
    hosts = in_cluster or changes.get("hosts", before.hosts)
    virtual = changes.get("time", before.time) == VIRTUAL
    _only_with({WITH_AGENTS: bool(hosts), WITH_VIRTUAL_TIME: virtual}, asked)
    if not virtual:
        changes["cpu_ppb"] = DEFAULTS.cpu_ppb  # whatever the recorded run charged
        changes["reseeds"] = DEFAULTS.reseeds  # its events are in the plan
    if asked.get("max_lateness_ns") == 0:
        raise click.UsageError("nothing is ever exactly on time: give --max-lateness 1ms or more.")
    if not hosts and asked.get("datapath") == "kernel":
        raise click.UsageError(
            "--datapath kernel shapes whole paths, which takes agents: add --hosts 1 or more, or "
            "--backend k8s."
        )
    return replace(before, **changes)


def _only_with(given: Mapping[str, bool], asked: Mapping[str, Any]) -> None:
    """A usage error for an option that means nothing without another one, which is not `given`."""
    from runtime.options import RunOptions, flag_of

    for row in fields(RunOptions):
        only = row.metadata.get("only", "")
        if only and not given[only] and row.name in asked:
            raise click.UsageError(f"{flag_of(row, row.metadata['asked'][0])} is for {only}.")


def places_of(source: str, out: str | None, name: str) -> RunPlaces:
    """Where the files of a run of `source` are. `name`: what it is called after."""
    from runtime.options import RunPlaces

    start, beside = directories(source)
    return RunPlaces(
        Path(out) if out else None,
        name,
        start,
        beside,
        kept_programs(source),
        recorded_digests(source),
    )


@contextmanager
def passing_places(prefix: str, source: str, name: str) -> Iterator[RunPlaces]:
    """The same for a run of which nothing is kept: its directory goes afterwards. `prefix`: one of
    runtime.rundir.runfiles, by which `tstorm destroy` knows what a killed command has left."""
    from runtime.rundir.passing_place import passing_place

    with passing_place(prefix) as place:
        yield places_of(source, str(place / "run"), name)


def check_repeats(path: str, options: RunOptions, *, may_have_hosts: bool) -> None:
    """RunError for a run that is not the same each time that it is carried out."""
    from runtime.errors import RunError

    if not (options.repeats if may_have_hosts else options.can_branch):
        where = "" if may_have_hosts else "on one engine "
        raise RunError(
            f"{path} is not the same when it is carried out again",
            f"only runs {where}in virtual time are, in which computing takes none (--cpu)",
        )


def kept_programs(source: str) -> str:
    """Where the run at `source` has copies of what it ran; '' if it is no run."""
    from runtime.rundir.runfiles import PROGRAMS
    from tstorm.loading import is_run

    return str(Path(source).absolute() / PROGRAMS) if is_run(source) else ""


def recorded_run(source: str) -> dict[str, Any] | None:
    """What the run at `source` recorded about itself; None if it is no run."""
    from runtime.rundir import rundir
    from tstorm.loading import is_run

    return rundir.recorded(source).manifest() if is_run(source) else None


def directories(source: str) -> tuple[str, str]:
    """Where a run is called, and where its relative programs are: for a recorded run as it was
    then; else here, and where the TDL file or the plan directory is."""
    here = str(Path.cwd())
    beside = here if source == STDIN else str(Path(source).parent.absolute())
    known = recorded_run(source) or {}
    found = (known.get("start_directory"), known.get("source_directory"))
    first, second = (one if isinstance(one, str) and one.startswith("/") else "" for one in found)
    return first or here, second or beside


def recorded_digests(source: str) -> dict[str, str]:
    """What the images of a recorded run on this machine were; {} if `source` is none."""
    from runtime.options import LOCAL, decode

    known = recorded_run(source) or {}
    found = known.get("images")
    if not isinstance(found, dict) or decode(known["options"], "options").backend != LOCAL:
        return {}  # a cluster has other digests of them
    return {str(name): digest for name, digest in found.items() if isinstance(digest, str)}


def carry_out(
    found: PlanToRun,
    options: RunOptions,
    places: RunPlaces,
    cluster: Mapping[str, Any],
    *,
    quiet: bool,
    seen: Callable[[Progress], Progress] | None = None,
    again: Repetition | None = None,
) -> RunResult:
    """Runs the plan where the options say, with progress on stderr. `cluster`: what was said of one
    and is no option of the run; `seen`: what else looks at progress, and may add to it; `again`:
    what is done again in virtual time."""
    from runtime.errors import UnfitError
    from tstorm import display

    with display.reporter(quiet) as show:

        def relay(record: Progress) -> None:
            with output.kept_going(sys.stderr):
                show(record if seen is None else seen(record))

        try:
            run = _runner(found, options, cluster, again)
            return run(found.plan, options, places, relay)
        except UnfitError as error:
            raise misfit_shown(error, found.source_name, found.plan) from error


def _runner(
    found: PlanToRun, options: RunOptions, cluster: Mapping[str, Any], again: Repetition | None
) -> Callable[[Plan, RunOptions, RunPlaces, Reporter], RunResult]:
    """What carries it out. Usage errors, and RunError for a cluster that cannot be reached."""
    from runtime.options import K8S

    if options.backend == K8S:
        from tstorm.k8s import clusterrun

        place = clusterrun.place(found.plan, options, clusterrun.ClusterAsked(**cluster))
        return partial(clusterrun.run, cluster=place)
    from runtime.launch.launch import run

    only_in_cluster(cluster)
    return partial(run, again=again)


# What a datapath cannot do, told with the line of the TDL text that asks for it.


def misfit_shown(error: UnfitError, source_name: str, plan: Plan) -> CommandError:
    """`FILE:LINE: what is beyond the datapath`, and what to do."""
    place = place_of(error.misfit, source_name, plan)
    return CommandError(f"error: {place}{error.message}\nhint: {error.remedy}", error.exit_code)


def place_of(misfit: Misfit | None, source_name: str, plan: Plan) -> str:
    """`FILE:LINE: `, or '' where no line asks for it."""
    from tdl.presentation import named

    if misfit is None:
        return ""
    file, line = (misfit.file, misfit.line) if misfit.line else declared_at(plan, misfit.link)
    return f"{named(source_name, file)}:{line}: " if line else ""


def declared_at(plan: Plan, link: str) -> tuple[str, int]:
    """File and line that declare a link direction such as `pg.0->s1`, or without one how packets
    are routed; line 0 if none does."""
    from compiler.declare.common import with_common_links
    from compiler.declare.nodes.machines import with_parts
    from compiler.plan.types import element_of, named_direction
    from compiler.sources import RecordedFiles
    from tdl import ast
    from tdl.diagnostics import Sink
    from tdl.parser import parse_partial

    src, dst, called = named_direction(link)
    ends = [(element_of(end), end.removeprefix(f"{element_of(end)}.")) for end in (src, dst)]
    wanted = [(name, int(index) if index.isdecimal() else None) for name, index in ends]
    file = with_parts(parse_partial(plan.source, RecordedFiles(plan), plan.params).file, Sink())
    for statement in with_common_links(file).statements:
        if isinstance(statement, ast.Routing) and not link:
            return statement.span.place
        if isinstance(statement, ast.LinkStatement):
            if called != (statement.name.text if statement.name else ""):
                continue
            found = [
                (statement.a.text, statement.a_index),
                (statement.b.text, statement.b_index),
            ]
            for way in (found,) if statement.directed else (found, found[::-1]):
                if all(map(_stands_for, way, wanted)):
                    return statement.span.place
    return "", 0


def _stands_for(end: tuple[str, int | None], node: tuple[str, int | None]) -> bool:
    """An end of a link statement, and a node; the end of a service stands for all its instances."""
    return end[0] == node[0] and end[1] in (None, node[1])
