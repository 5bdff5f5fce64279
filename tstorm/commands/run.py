"""`tstorm run PLAN|EXP.tdl`: carry a plan out, on this machine or in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from tstorm import output, units
from tstorm.campaign.points import SeedsType
from tstorm.exit_codes import OK, CommandError
from tstorm.options import option_types
from tstorm.options.cluster import only_in_cluster
from tstorm.options.port_targets import PublishedPort
from tstorm.options.run_options import running
from tstorm.options.shared import beside, budget, params, seed, source

if TYPE_CHECKING:
    from pathlib import Path

    from compiler.plan.reader import Plan
    from runtime.driver.progress import Progress
    from runtime.options import RunOptions
    from tstorm.live.publishing import Published, Publisher
    from tstorm.ui.beside_run import PageBeside


@click.command()
@source
@beside
@seed
@params
@budget
@running
@click.option(
    "--seeds",
    metavar="A..B",
    type=SeedsType(),
    help="Run once with each of these seeds; --out is the directory of them all. Given again with "
    "the same --out, only what is missing runs.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    help="With --seeds: so many runs at a time.  [default: in virtual time one for each processor, "
    "in real time 1]",
)
@click.option(
    "--junit",
    metavar="F",
    type=option_types.TextType(),
    help="When the run has ended, also write it as JUnit XML, as 'tstorm report --format junit'.",
)
@click.option(
    "--publish",
    "published_ports",
    metavar="INSTANCE:PORT[=LOCAL]",
    type=PublishedPort(),
    multiple=True,
    help="A TCP port of a program, at port LOCAL of 127.0.0.1 while it runs, past the emulated "
    "network, as 'tstorm forward'. Can be repeated.",
)
@click.option(
    "--ui",
    "with_page",
    is_flag=True,
    help="Serve the page of the run while it goes on, as 'tstorm ui' does; its link is shown.",
)
@click.option(
    "--ui-port",
    metavar="PORT",
    type=option_types.WholeNumber(min=0, max=65535),
    help="With --ui: the port of the page.  [default: a free one]",
)
def command(
    source: str,
    tdl: str | None,
    more: tuple[str, ...],
    seed: int | None,
    params: dict[str, str],
    seeds: range | None,
    jobs: int | None,
    junit: str | None,
    published_ports: tuple[Published, ...],
    with_page: bool,
    ui_port: int | None,
    budget_bps: int | None,
    asked: dict[str, Any],
    cluster: dict[str, Any],
    out: str | None,
    quiet: bool,
    form: str,
) -> None:
    """Run an experiment on this machine, as root or as an ordinary user, or in a cluster.

    Progress goes to standard error, the run directory to standard output. Ctrl-C ends the run
    cleanly and keeps what was recorded. --out must be new or empty. --format json prints
    {"run", "directory", "outcome", "summary", "verdict"}.

    With --backend k8s the experiment runs in the cluster of the kubeconfig, in a namespace of its
    own that is removed at the end (docs/kubernetes.md). If this command is killed (-9), the run
    goes on there; 'tstorm inspect --backend k8s' and 'tstorm destroy --backend k8s' find it.

    A relative path of a program (exec="./serve") is relative to the folder of the TDL file or of
    the plan. The command always reports what came later than its bound and programs that could not
    start; with --max-lateness and --fail-on-exit its exit code says so, too.

    \b
    Examples:
      tstorm run quickstart.tdl
      tstorm run quickstart.plan --until 2m --out runs/first
      tstorm run day.tdl --pace 60              # a day in 24 minutes, links as they are
      tstorm run quickstart.tdl --format json | jq .outcome
      tstorm run docker-compose.yml --tdl storm.tdl
      tstorm run bank.tdl --time virtual --seeds 1..100 --fail-on-exit
      tstorm run bank.tdl --seeds 1..20 --out runs/bank   # killed? the same again goes on
      tstorm run bank.tdl --seeds 1..5 --param rtt=5ms,50ms   # each seed with each value
      tstorm run shop.tdl --publish web.0:80=8080   # http://127.0.0.1:8080/
      tstorm run quickstart.tdl --ui            # and watch and steer it in a browser
      tstorm run quickstart.plan --backend k8s --nodes pool=lab
    """
    from runtime.options import PREFERRED
    from tstorm.command_support import (
        carry_out,
        errors_shown,
        options_of,
        places_of,
    )
    from tstorm.loading import folder_of, plan_to_run, recorded_plan, show_in_cluster
    from tstorm.text.ending_text import report
    from tstorm.which import finder

    with errors_shown():
        options = options_of(asked)
        if ui_port is not None and not with_page:
            raise click.UsageError("--ui-port is for --ui.")
        _check_beside(options, seeds, page=with_page, ports=bool(published_ports))
        if seeds is not None:
            if junit is not None:
                raise click.UsageError("--junit is for one run, not for --seeds.")
            if tdl is not None or more:
                message = "--seeds takes one text: write include of these files into a TDL file."
                raise click.UsageError(message)
            _search(source, seed, params, options, cluster, out, seeds, jobs, form)
            return
        if jobs is not None:
            raise click.UsageError("--jobs is for --seeds.")
        find = None
        if options.on_this_machine and recorded_plan(source) is None:
            find = finder(folder_of(source), images=options.images == PREFERRED)
        pace = asked.get("pace")
        found = plan_to_run(
            source,
            seed,
            budget_bps=budget_bps,
            pace=pace,
            find=find,
            params=params,
            tdl=tdl,
            more=more,
            reseeds=asked.get("reseeds"),
        )
        _note_end(found.plan, options)
        if not quiet:
            _note_short(found.plan, options)
        if not options.on_this_machine:
            show_in_cluster(found.plan, source, refuse=True)
        places = places_of(source, out, found.name)
        page = _page(ui_port or 0) if with_page else None
        ports = (*published_ports, *_ports_of_services(found.plan, options))
        with _beside(found.plan, ports, page) as seen:
            result = carry_out(found, options, places, cluster, quiet=quiet, seen=seen)
    report(result, form, quiet=quiet)
    if junit is not None:
        _write_junit(result.directory, junit)
    if result.exit_code != OK:
        raise CommandError(code=result.exit_code)


def _check_beside(options: RunOptions, seeds: range | None, *, page: bool, ports: bool) -> None:
    """As `_check_page` and `_check_published`, for what is asked for."""
    if page:
        _check_page(options, seeds)
    if ports:
        _check_published(options, seeds)


def _check_page(options: RunOptions, seeds: range | None) -> None:
    """Usage errors, and RunError where packages for it are missing."""
    from tstorm.ui.ui_extra import check_installed

    if seeds is not None or not options.on_this_machine:
        raise click.UsageError("--ui is for one run on this machine.")
    check_installed()


def _check_published(options: RunOptions, seeds: range | None) -> None:
    """Usage errors."""
    from runtime.options import VIRTUAL

    if seeds is not None or not options.on_this_machine:
        raise click.UsageError("--publish is for one run on this machine.")
    if options.time == VIRTUAL:
        message = (
            "--publish is for real time: in virtual time nobody waits for who asks from outside."
        )
        raise click.UsageError(message)


def _ports_of_services(plan: Plan, options: RunOptions) -> Sequence[Published]:
    """Those of `publish=`, where programs can be reached."""
    from runtime.options import VIRTUAL
    from tstorm.live import publishing

    if options.time != VIRTUAL:
        return publishing.of_services(plan.topology)
    if note := publishing.left_out(plan.topology, "in virtual time"):
        output.note(note)
    return ()


@contextmanager
def _published(plan: Plan, ports: tuple[Published, ...]) -> Iterator[Publisher]:
    from tstorm.live.publishing import published

    with published(plan.topology, ports) as publisher:
        for address in publisher.addresses:
            output.note(f"{address}, past the emulated network")
        yield publisher


@contextmanager
def _beside(
    plan: Plan, ports: tuple[Published, ...], page: PageBeside | None
) -> Iterator[Callable[[Progress], Progress] | None]:
    """What goes on beside the run, and sees its progress. RunError."""
    with ExitStack() as stack:
        seers = []
        if ports:
            seers.append(stack.enter_context(_published(plan, ports)).seen)
        if page is not None:
            seers.append(stack.enter_context(page).seen)

        def seen(record: Progress) -> Progress:
            for see in seers:
                record = see(record)
            return record

        yield seen if seers else None


def _page(port: int) -> PageBeside:
    from tstorm.ui.beside_run import PageBeside

    return PageBeside(port)


def _note_end(plan: Plan, options: RunOptions) -> None:
    """An --until that is later than all that happens lengthens nothing."""
    if options.until_ns is not None and options.until_ns > plan.end_ns:
        asked, end = units.duration(options.until_ns), units.duration(plan.end_ns)
        hint = f"'at {asked} quit' in the text makes it longer"
        output.note(f"note: the experiment ends at {end}, before --until {asked}: {hint}")


def _note_short(plan: Plan, options: RunOptions) -> None:
    """What cannot be VALID is said before it runs."""
    from runtime.certify.never_valid import why_never
    from runtime.schedule import Schedule

    why = why_never(plan, Schedule(plan, options))
    if why:
        output.note(f"note: {why}")


def _write_junit(directory: Path, target: str) -> None:
    from tstorm.command_support import errors_shown
    from tstorm.reporting import formats, output_files

    with errors_shown():
        output_files.put_file(
            target, formats.pieces(output_files.gathered(str(directory)), formats.JUNIT)
        )


def _search(
    source: str,
    seed: int | None,
    params: dict[str, str],
    options: RunOptions,
    cluster: Mapping[str, Any],
    out: str | None,
    seeds: range,
    jobs: int | None,
    form: str,
) -> None:
    from tstorm.campaign import carryout
    from tstorm.campaign.points import grid
    from tstorm.loading import STDIN

    if seed is not None:
        raise click.UsageError("--seed and --seeds exclude each other.")
    if not options.on_this_machine:
        raise click.UsageError("--seeds is for runs on this machine.")
    if source == STDIN:
        raise click.UsageError("--seeds reads the experiment for each seed: name a file.")
    only_in_cluster(cluster)
    carryout.search(source, options, out, grid(seeds, params), jobs, form)
