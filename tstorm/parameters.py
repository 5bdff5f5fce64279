"""Option declarations and value types that several commands share."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from tstorm import paramtype
from tstorm.thresholdtype import THRESHOLD, gathered

F = TypeVar("F", bound=Callable[..., Any])


class MeasureType(click.ParamType[int]):
    """A number with a unit as TDL writes it, as an integer in the unit of tdl.values.

    `reads` is the name of the function there that reads it.
    """

    def __init__(self, name: str, reads: str, missing: str) -> None:
        self.name = name
        self._reads = reads
        self._missing = missing

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from tdl import values

        if not value:
            self.fail(self._missing, param, ctx)
        try:
            found: int = getattr(values, self._reads)(value)
        except values.ValueProblem as problem:
            hint = f" ({problem.hint})" if problem.hint else ""
            self.fail(f"{problem.message}{hint}", param, ctx)
        if found == 0 and self._reads not in ("time", "cpu"):
            self.fail(f"a {self.name} of zero compares with nothing", param, ctx)
        return found


DURATION = MeasureType("duration", "time", "a duration is missing, such as 90s, 1h30m or 250ms")
_RATE = MeasureType("rate", "rate", "a rate is missing, such as 10Gb or 800Mb")
_CPU = MeasureType("number of processors", "cpu", "a number of processors is missing, such as 0.5")
_ROUND_TRIP = MeasureType("round trip", "latency", "a time is missing, such as 0.5ms or 200us")


class AroundType(click.ParamType[tuple[int, int]]):
    """A moment and how far to look before and after it: `45s±3s`, both in ns."""

    name = "moment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        at, sign, reach = value.replace("+-", "±").partition("±")
        found = DURATION.convert(at.strip(), param, ctx)
        return found, DURATION.convert(reach.strip(), param, ctx) if sign else 10**9


AROUND = AroundType()
_TOO_FINE = re.compile(r"[.,]\d{7}")


class InstantType(click.ParamType[int]):
    """A date, or date and time, of ISO 8601, in ns since 1970; UTC unless it says more."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is no date such as 2026-03-01 or 2026-03-01T12:00:00Z", param, ctx
            )
        if _TOO_FINE.search(value):  # fromisoformat would leave the rest out
            self.fail(f"{value!r} is too exact: microseconds are kept", param, ctx)
        known = found if found.tzinfo else found.replace(tzinfo=UTC)
        since = known - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(microseconds=1) * 1000


INSTANT = InstantType()


class CpuModelType(click.ParamType[int]):
    """What computing costs: `model=FACTOR` in billionths, `none` as 0."""

    name = "model"
    _known = "say model=FACTOR, such as model=1 or model=0.25, or none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from runtime.options import CPU_RANGE_PPB

        if value == "none":
            return 0
        word, _, text = value.partition("=")
        if word != "model" or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
            self.fail(f"{value!r} says not what computing costs: {self._known}", param, ctx)
        found = int(Decimal(text) * 10**9)
        least, most = CPU_RANGE_PPB
        if not least <= found <= most:
            self.fail(f"the factor is {text}; give one from 0.001 to 1000", param, ctx)
        return found


CPU_MODEL = CpuModelType()


class ThreadsType(click.ParamType[int]):
    """How many threads, `auto` as 0."""

    name = "threads"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from runtime.options import MAX_ENGINE_THREADS

        known = [str(number) for number in range(1, MAX_ENGINE_THREADS + 1)]
        if value not in ("auto", *known):
            self.fail(f"{value!r} is neither auto nor 1 to {MAX_ENGINE_THREADS}", param, ctx)
        return 0 if value == "auto" else int(value)


THREADS = ThreadsType()


# Whether it can be read is found out by reading it, with the kernel's own words.
INPUT = click.Path(allow_dash=True, readable=False)


class Text(click.ParamType[str]):
    """A text. An empty one is more likely an unset variable than meant."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("nothing is given", param, ctx)
        return value


class DirectoryType(click.Path):
    """A directory to write. An empty name is more likely an unset variable than meant."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("the name of a directory is missing", param, ctx)
        return super().convert(value, param, ctx)


DIRECTORY = DirectoryType()


MOST_SEED = 2**63 - 1


class WholeNumber(click.IntRange):
    """An integer in a range, called so in messages."""

    name = "whole number"


def seed(function: F) -> F:
    """--seed N."""
    return click.option(
        "--seed",
        type=WholeNumber(min=0, max=MOST_SEED),
        metavar="N",
        help="Seed of all random choices. Wins over the file's own; 0 when neither is given.",
    )(function)


def params(function: F) -> F:
    """--param NAME=VALUE."""
    return click.option(
        "--param",
        "params",
        type=paramtype.PARAM,
        metavar="NAME=VALUE",
        multiple=True,
        callback=paramtype.gathered,
        help="Another value for a parameter that the text has (`param NAME = VALUE`). Repeatable.",
    )(function)


_NODES = click.option(
    "--nodes",
    metavar="SELECTOR",
    type=Text(),
    help="Kubernetes: use the nodes with these labels only, as 'kubectl get nodes -l' takes them.  "
    "[default: all on which an ordinary pod may run]",
)
_IMAGE = click.option(
    "--agent-image",
    metavar="REF",
    type=Text(),
    help="The image of agents and coordinator.  [default: the plan's bootstrapper, or this "
    "release's]",
)
_OBJECTS = (
    click.option(
        "--namespace",
        metavar="N",
        type=Text(),
        help="The Kubernetes namespace.  [default: tstorm- and twelve digits of the plan's "
        "SHA-256]",
    ),
    _IMAGE,
    click.option(
        "--agent-cpu",
        "agent_cpu_millis",
        metavar="CPU",
        type=_CPU,
        help="Processors that an agent asks its node for.  [default: 1]",
    ),
)


def _with(options: Iterable[Callable[[F], F]], function: F) -> F:
    for option in reversed(list(options)):
        function = option(function)
    return function


def cluster_objects(function: F) -> F:
    """--namespace, --agent-image, --nodes, --agent-cpu: what Kubernetes objects are made like."""
    return _with((*_OBJECTS, _NODES), function)


def cluster_nodes(function: F) -> F:
    """--nodes, --agent-image: what is looked for in a cluster."""
    return _with((_NODES, _IMAGE), function)


_BACKEND = click.option(
    "--backend",
    type=click.Choice(["local", "k8s"]),
    help="Where instances run: on this machine, or in a Kubernetes cluster.  [default: local]",
)
_CONTEXT = click.option(
    "--context",
    metavar="C",
    type=Text(),
    help="With --backend k8s: the context of the kubeconfig.  [default: its current one]",
)
_KEEP = click.option(
    "--keep",
    is_flag=True,
    default=None,
    help="With --backend k8s: leave what an ended run has there; a failed start is removed.",
)
_WHERE = click.option(
    "--namespace", metavar="N", type=Text(), help="With --backend k8s: the namespace of the run."
)


def in_cluster(function: F) -> F:
    """--backend, --context, --namespace: where a run is. Passed on as `cluster`, a Where, or None
    for this machine."""

    @functools.wraps(function)
    def inner(backend: str | None, context: str | None, namespace: str | None, **given: Any) -> Any:
        if backend != "k8s":
            only_in_cluster({"context": context, "namespace": namespace})
        cluster = Where(context, namespace) if backend == "k8s" else None
        return function(cluster=cluster, **given)

    return _with((_BACKEND, _CONTEXT, _WHERE), cast(F, inner))


@dataclass(frozen=True, slots=True)
class Where:
    """In which cluster and namespace a run is; None: the kubeconfig's own, and all."""

    context: str | None
    namespace: str | None


_OF_CLUSTER = {
    "context": "--context",
    "namespace": "--namespace",
    "agent_image": "--agent-image",
    "agent_cpu_millis": "--agent-cpu",
    "keep": "--keep",
    "nodes": "--nodes",
}


def only_in_cluster(given: Mapping[str, Any]) -> None:
    """A usage error if anything is said of a cluster where there is none."""
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{_OF_CLUSTER[name]} is for --backend k8s.")


def table_or_json(function: F) -> F:
    """--format table|json."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print.",
    )(function)


def diagnostics(function: F) -> F:
    """--strict, --format text|json|sarif, --max-errors: how diagnostics are judged and printed."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "sarif"]),
        default="text",
        show_default=True,
        help="How to print diagnostics: text on stderr, the others on stdout.",
    )
    strict = click.option("--strict", is_flag=True, help="Treat warnings as errors.")
    most = click.option(
        "--max-errors",
        "most",
        type=WholeNumber(min=0),
        metavar="N",
        help="Show at most N errors and warnings, errors first; 0 shows all. "
        "[default: 20 as text, all as json and sarif]",
    )
    return strict(form(most(function)))


def budget(function: F) -> F:
    """--budget RATE."""
    return click.option(
        "--budget",
        "budget_bps",
        metavar="RATE",
        type=_RATE,
        help="Warn of rates above what one machine can carry, such as 10Gb.",
    )(function)


def underlay(function: F) -> F:
    """--underlay RTT."""
    return click.option(
        "--underlay",
        "underlay_ns",
        metavar="RTT",
        type=_ROUND_TRIP,
        help="Warn of round trips below that between two machines of the cluster, such as 200us "
        "(a number alone is milliseconds).",
    )(function)


def source(function: F) -> F:
    """The experiment: a plan directory, a run directory, a TDL file, or `-`."""
    return click.argument("source", metavar="PLAN|EXP.tdl", type=INPUT)(function)


def _complete_run(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The runs that go on now, by name; the shell adds directories."""
    from runtime.launch.lookup import live_runs

    names = [run["run_id"] for run in live_runs()]
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="dir")]


def run_argument(*, required: bool) -> Callable[[F], F]:
    """RUN: a run's name or directory."""
    return click.argument("run", required=required, shell_complete=_complete_run)


_RUNNING = (
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
        type=DIRECTORY,
        help="The run directory.  [default: a new one, runs/NAME-TIME]",
    ),
    click.option(
        "--until", "until_ns", metavar="T", type=DURATION, help="End at this time of the plan."
    ),
    click.option(
        "--start-at",
        "start_at_ns",
        metavar="T",
        type=DURATION,
        help="Begin with the state of this time of the plan and go on from there.",
    ),
    click.option(
        "--pace",
        metavar="N",
        type=WholeNumber(min=1),
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
        type=DURATION,
        help="With --time virtual: for how long a program may compute (processor time of this "
        "machine) before it counts as such.  [default: 60s]",
    ),
    click.option(
        "--clock-start",
        "clock_start_ns",
        metavar="DATE",
        type=INSTANT,
        help="With --time virtual: what clocks say when the experiment begins.  "
        "[default: 2000-01-01T00:00:00Z]",
    ),
    click.option(
        "--cpu",
        "cpu_ppb",
        metavar="model=FACTOR",
        type=CPU_MODEL,
        help="With --time virtual: computing takes time, FACTOR virtual seconds for each second of "
        "this machine's processor time, longer with less than one processor (cpu=). Then no two "
        "runs are the same. With none, it takes no time.  [default: none]",
    ),
    click.option(
        "--scatter",
        "scatter_ns",
        metavar="T",
        type=DURATION,
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
        type=WholeNumber(min=0),
        help="Spread the instances over N local hosts, with an agent and a datapath each.  "
        "[default: 0; one engine models every link]",
    ),
    _BACKEND,
    _CONTEXT,
    *_OBJECTS,
    _NODES,
    _KEEP,
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
        type=DURATION,
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
        type=DURATION,
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
        help="End with 5 if a program could not start, or ended by itself with another status than "
        "0 or by a signal, also where its service does not state expect=.",
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
        type=THREADS,
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
        cluster = {name: given.pop(name) for name in _OF_CLUSTER if name in given}
        return function(asked=asked, cluster=cluster, **given)

    return _with(_RUNNING, cast(F, inner))
