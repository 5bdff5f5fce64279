"""The options of a run: those of the run itself, and of the cluster it may be in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

import click

from tstorm.options import option_types
from tstorm.options.cluster import BACKEND, CONTEXT, KEEP, NODES, OBJECTS, SAID
from tstorm.options.shared import declared
from tstorm.options.thresholdtype import THRESHOLD, gathered

F = TypeVar("F", bound=Callable[..., Any])

RUNNING = (
    click.option("--quiet", is_flag=True, help="No progress; errors and the result only."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the result: the run directory, or its summary as JSON.",
    ),
    click.option(
        "--out",
        metavar="DIR",
        type=option_types.DIRECTORY,
        help="The run directory.  [default: a new one, runs/NAME-TIME]",
    ),
    click.option(
        "--until",
        "until_ns",
        metavar="T",
        type=option_types.DURATION,
        help="End at this time of the plan.",
    ),
    click.option(
        "--start-at",
        "start_at_ns",
        metavar="T",
        type=option_types.DURATION,
        help="Begin with the state of this time of the plan and go on from there.",
    ),
    click.option(
        "--pace",
        metavar="N",
        type=option_types.WholeNumber(min=1),
        help="Run the timeline N times faster; the network's properties stay.  [default: 1]",
    ),
    click.option(
        "--time",
        type=click.Choice(["real", "virtual"]),
        help="Run on this machine's time, or in virtual time: exact however slow or busy the "
        "machine is, and the same to the last byte each time.  [default: real]",
    ),
    click.option(
        "--on-spin",
        type=click.Choice(["fail", "creep"]),
        help="With --time virtual: end the run if a program computes on and on, which stops time; "
        "or let time go on beside it.  [default: fail]",
    ),
    click.option(
        "--spin-limit",
        "spin_limit_ns",
        metavar="T",
        type=option_types.DURATION,
        help="With --time virtual: for how long a program may compute (processor time of this "
        "machine) before it counts as such.  [default: 60s]",
    ),
    click.option(
        "--clock-start",
        "clock_start_ns",
        metavar="DATE",
        type=option_types.INSTANT,
        help="With --time virtual: what clocks say when the experiment begins.  "
        "[default: 2000-01-01T00:00:00Z]",
    ),
    click.option(
        "--cpu",
        "cpu_ppb",
        metavar="model=FACTOR",
        type=option_types.CPU_MODEL,
        help="With --time virtual: computing takes time, FACTOR virtual seconds for each second of "
        "this machine's processor time, longer with less than one processor (cpu=). Then no two "
        "runs are the same. With none, it takes no time.  [default: none]",
    ),
    click.option(
        "--scatter",
        "scatter_ns",
        metavar="T",
        type=option_types.DURATION,
        help="With --time virtual: delay programs that wake, and pause them in between, by up to "
        "T, as the seed draws it: other orders, which may show races.  [default: 0s]",
    ),
    click.option(
        "--datapath",
        type=click.Choice(["auto", "user", "kernel"]),
        help="What emulates the network: the packet engine (auto and user), or, with --hosts, the "
        "kernel's queueing disciplines.  [default: auto]",
    ),
    click.option(
        "--hosts",
        metavar="N",
        type=option_types.WholeNumber(min=0),
        help="Spread the instances over N local hosts, with an agent and a datapath each.  "
        "[default: 0; one engine models every link]",
    ),
    BACKEND,
    CONTEXT,
    *OBJECTS,
    NODES,
    KEEP,
    click.option(
        "--images",
        "images",
        flag_value="preferred",
        help="Run the image of every service that has one (img=), also where exec= is stated.  "
        "[default: where exec= is not stated]",
    ),
    click.option(
        "--programs",
        "images",
        flag_value="never",
        help="Run no images: services without exec= are idle.",
    ),
    click.option(
        "--clock-budget",
        "clock_budget_ns",
        metavar="T",
        type=option_types.DURATION,
        help="With agents: do not start if a host's clock is known less well than this.  "
        "[default: 5ms]",
    ),
    click.option(
        "--on-agent-loss",
        type=click.Choice(["keep", "close"]),
        help="With agents: what a host without its agent does with traffic until the agent is "
        "back: as it was last, or drop it.  [default: keep]",
    ),
    click.option(
        "--max-lateness",
        "max_lateness_ns",
        metavar="T",
        type=option_types.DURATION,
        help="End with 4 if anything that is judged was later than this: events, programs' starts, "
        "packets, stalls.",
    ),
    click.option(
        "--require",
        type=click.Choice(["valid", "degraded"]),
        help="End with 4 if the verdict is not VALID; with 'degraded', if it is neither VALID nor "
        "DEGRADED.",
    ),
    click.option(
        "--threshold",
        "thresholds",
        metavar="NAME=VALUE",
        type=THRESHOLD,
        multiple=True,
        callback=gathered,
        help="Decide the verdict by this bound in the place of the default; may be repeated "
        "(docs/certificate.md has the names).",
    ),
    click.option(
        "--fail-on-exit/--no-fail-on-exit",
        default=None,
        help="End with 5 if a program ended by itself with another status than 0 or by a signal, "
        "also where its service does not state expect=. One that cannot be started ends any run.",
    ),
    click.option(
        "--fail-fast/--no-fail-fast",
        default=None,
        help="As --fail-on-exit, and end the run at the first such failure, or the first program "
        "that does not do what expect= of its service states.",
    ),
    click.option(
        "--discard-instances/--no-discard-instances",
        default=None,
        help="Remove the data directories of all instances at the end; logs and results stay.",
    ),
    click.option(
        "--probes/--no-probes",
        default=None,
        help="Measure paths all the time with light probes between instances (probes.jsonl of the "
        "run directory): at most a thousandth of the smallest rate of each link.  [default: they "
        "are measured]",
    ),
    click.option(
        "--packets/--no-packets",
        default=None,
        help="Keep every packet of every link in packets/LINK.pcapng of the run directory, also "
        "those that were dropped, with the reason.",
    ),
    click.option(
        "--engine-threads",
        "engine_threads",
        metavar="auto|N",
        type=option_types.THREADS,
        help="Threads of the packet engine, all but one of which help only under load; packets "
        "are the same with any number.  [default: auto: half of the processors, at most 4]",
    ),
    click.option(
        "--allow-spoofing/--no-allow-spoofing",
        default=None,
        help="Let packets through whose source address is not that of the instance that sends "
        "them.  [default: they are dropped and reported]",
    ),
)


def running(function: F) -> F:
    """--quiet, --format, --out, and the options of a run: those that were said are passed on as one
    `asked`, by their names in runtime.options.RunOptions. What is said of a cluster and is none of
    them is `cluster`, by the names in tstorm.k8s.choosing.ClusterAsked."""

    @functools.wraps(function)
    def inner(**given: Any) -> Any:
        from runtime.options import RunOptions

        known = {field.name for field in fields(RunOptions)} & given.keys()
        asked = {name: value for name in known if (value := given.pop(name)) is not None}
        cluster = {name: given.pop(name) for name in SAID if name in given}
        return function(asked=asked, cluster=cluster, **given)

    return declared(RUNNING, cast(F, inner))
