"""`tstorm check EXP.tdl`: diagnostics only."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import click

from tstorm import output, units
from tstorm.notes import SHOWN_EVENTS
from tstorm.options import option_types
from tstorm.options.cluster import BACKEND
from tstorm.options.shared import beside, budget, diagnostics, params, seed, underlay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler.pipeline import Compilation


@click.command()
@click.argument("file", metavar="EXP.tdl", type=option_types.INPUT)
@beside
@seed
@params
@budget
@underlay
@BACKEND
@diagnostics
def command(
    file: str,
    tdl: str | None,
    more: tuple[str, ...],
    seed: int | None,
    params: dict[str, str],
    budget_bps: int | None,
    underlay_ns: int | None,
    backend: str | None,
    strict: bool,
    form: str,
    most: int | None,
) -> None:
    """Report everything that is wrong with EXP.tdl ('-' reads standard input), or what is in it.

    The file is compiled in full, so errors that only show over time (too few instances to crash)
    are found, too. Programs that are not on this machine are warned about. Nothing is written. Ends
    with 1 when there is an error.

    \b
    Examples:
      tstorm check quickstart.tdl
      tstorm check --strict --format sarif quickstart.tdl > quickstart.sarif
      tstorm check --budget 10Gb --underlay 200us quickstart.tdl
      tstorm check --backend k8s quickstart.tdl     # and what is other there
      tstorm check docker-compose.yml --tdl storm.tdl
    """
    from compiler.feasibility.warnings import Machines
    from runtime.options import K8S
    from tstorm import which
    from tstorm.loading import compile_text, folder_of, read_experiment, source_name

    find = which.finder(folder_of(file))
    in_cluster = backend == K8S
    machines = Machines(
        budget_bps, underlay_ns, kubernetes=in_cluster, find=None if in_cluster else find
    )
    raw = read_experiment(file, tdl, more)
    found = compile_text(
        raw, file, seed, strict=strict, form=form, machines=machines, most=most, params=params
    )
    if form == "text":
        click.echo(_summary(found))
        name = source_name(file)
        notes = (
            *(_public(found, name), _drawn(found, name), _cut_off(found, name)),
            *(_empty(found, name), _not_measured(found, name, in_cluster)),
            _refused(found, name) if in_cluster else (),
        )
        for text in chain.from_iterable(notes):
            output.line(text)


def _summary(found: Compilation) -> str:
    """`ok: 2 services, 4 instances, 3 links, 12 events, ends at 25s`."""
    from compiler.phrases import moment, number

    topology = found.topology
    counts = {
        "service": len(topology.services),
        "instance": sum(node.is_instance for node in topology.nodes),
        "link": len(topology.links) // 2,
        "event": len(found.events),
    }
    if found.plan.expectations:
        counts["expectation"] = len(found.plan.expectations)
    if found.plan.figures:
        counts["figure"] = len(found.plan.figures)
    said = ", ".join(number(count, what) for what, count in counts.items())
    warned = f" with {number(len(found.diagnostics), 'warning')}" if found.diagnostics else ""
    return f"ok{warned}: {said}, ends at {moment(found.timeline.end_ns)}"


def _public(found: Compilation, file: str) -> Iterator[str]:
    """What a file for the public tool means there and not here."""
    from tdl.presentation import named

    first = found.model.declared.bootstrapper
    if first is not None:
        place = f"{named(file, first.span.file)}:{first.span.line}"
        yield f"{place}: the image is the public tool's, not that of our agents (--agent-image)"
        if found.model.declared.dialect is not None:
            return
        yield f"{place}: that tool takes one where an action has no number; here it concerns all"
        if found.topology.routing == "delay":
            yield f"{place}: that tool takes the way of fewest links; here `routing hops` does"


def _refused(found: Compilation, file: str) -> Iterator[str]:
    from compiler.plan.rules.capabilities import KUBERNETES, refusal, to_blame
    from tstorm.command_support import place_of

    text = refusal(found.plan, KUBERNETES)
    if text:
        place = place_of(to_blame(found.plan, KUBERNETES), file, found.plan) or f"{file}: "
        yield f"{place}{text}: a run there is refused"


def _drawn(found: Compilation, file: str) -> Iterator[str]:
    """`quickstart.tdl:8: server.0 leave at 38.24s, a moment drawn from the interval`, for each
    statement whose moments are drawn."""
    from runtime.say import some
    from tdl.presentation import named

    steps = {step.order: step.statement for step in found.model.steps}
    for order, events in sorted(found.timeline.drawn.items()):
        span = steps[order].span
        made = [found.events[seq] for seq in events]
        said = [f"{one.target} {one.kind} at {units.duration(one.at_ns)}" for one in made]
        moments = "a moment" if len(made) == 1 else "moments"
        place = f"{named(file, span.file)}:{span.line}"
        yield f"{place}: {some(said, SHOWN_EVENTS)}, {moments} drawn from the interval"


def _cut_off(found: Compilation, file: str) -> Iterator[str]:
    """`quickstart.tdl:8: the partition also cuts off client.0 from db.0`."""
    from runtime.say import some
    from tdl import ast, some_packets
    from tdl.presentation import named

    steps = {step.order: step.statement for step in found.model.steps}
    for order, told in sorted(found.timeline.cut_off.items()):
        span, action = steps[order].span, steps[order].action
        assert isinstance(action, ast.Partition)
        how = " in one direction" if action.one_way else ""
        if action.only is not None:
            how += f", for only={some_packets.written(action.only)}"
        for one in told:
            whom = some(one.whom, SHOWN_EVENTS) if one.whom else "each other"
            said = f"the partition also cuts off {some(one.who, SHOWN_EVENTS)} from {whom}{how}"
            if not one.who:
                said = "whom else the partition cuts off was not looked at: there are too many"
            yield f"{named(file, span.file)}:{span.line}: {said}"


def _empty(found: Compilation, file: str) -> Iterator[str]:
    """`quickstart.tdl: nobody is at site3, and no packet passes there`."""
    from runtime.say import some

    if found.empty:
        yield f"{file}: nobody is at {some(found.empty, SHOWN_EVENTS)}, and no packet passes there"


def _not_measured(found: Compilation, file: str, in_cluster: bool) -> Iterator[str]:
    """`quickstart.tdl: no run of this can be VALID, …`, if none in real time can be; figures that
    a cluster does not measure."""
    from runtime.certify.never_valid import why_never
    from runtime.options import K8S, LOCAL, RunOptions
    from runtime.schedule import Schedule

    options = RunOptions(backend=K8S if in_cluster else LOCAL)
    said = [why_never(found.plan, Schedule(found.plan, options))]
    if in_cluster:
        from runtime.expectations import kept_files, measured_figures

        said.append(measured_figures.not_in_cluster(found.plan))
        said.append(kept_files.not_in_cluster(found.plan))
    yield from (f"{file}: {text}" for text in said if text)
