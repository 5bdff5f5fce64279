"""Option and argument declarations that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tstorm.options import option_types

_MOST = 1000  # characters of a value
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)

F = TypeVar("F", bound=Callable[..., Any])


def declared(options: Iterable[Callable[[F], F]], function: F) -> F:
    """The function with all of the options, in their order."""
    for option in reversed(list(options)):
        function = option(function)
    return function


def seed(function: F) -> F:
    """--seed N."""
    return click.option(
        "--seed",
        type=option_types.WholeNumber(min=0, max=option_types.MOST_SEED),
        metavar="N",
        help="Seed of all random choices. Wins over the file's own; 0 when neither is given.",
    )(function)


def params(function: F) -> F:
    """--param NAME=VALUE."""
    return click.option(
        "--param",
        "params",
        type=PARAM,
        metavar="NAME=VALUE",
        multiple=True,
        callback=_params,
        help="Another value for a parameter that the text has (`param NAME = VALUE`). Repeatable.",
    )(function)


def beside(function: F) -> F:
    """--tdl and -f: what belongs to a Compose file."""
    more = click.option(
        "-f",
        "--file",
        "more",
        metavar="FILE",
        type=option_types.INPUT,
        multiple=True,
        help="With a Compose file: another one, merged over it, as 'docker compose -f' does. "
        "Repeatable; docker-compose.override.yml is then not read by itself.",
    )
    tdl = click.option(
        "--tdl",
        metavar="FILE",
        type=option_types.INPUT,
        help="With a Compose file: a TDL file beside it, with links, events and expectations.",
    )
    return tdl(more(function))


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
        type=option_types.WholeNumber(min=0),
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
        type=option_types.RATE,
        help="Warn of rates above what one machine can carry, such as 10Gb.",
    )(function)


def underlay(function: F) -> F:
    """--underlay RTT."""
    return click.option(
        "--underlay",
        "underlay_ns",
        metavar="RTT",
        type=option_types.ROUND_TRIP,
        help="Warn of round trips below that between two machines of the cluster, such as 200us "
        "(a number alone is milliseconds).",
    )(function)


def source(function: F) -> F:
    """The experiment: a plan directory, a run directory, a TDL file, or `-`."""
    return click.argument("source", metavar="PLAN|EXP.tdl", type=option_types.INPUT)(function)


def _complete_run(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The runs that go on now, by name; the shell adds directories."""
    from runtime.launch.run_status import live_runs

    names = [run["run_id"] for run in live_runs()]
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="dir")]


def run_argument(*, required: bool) -> Callable[[F], F]:
    """RUN: a run's name or directory."""
    return click.argument("run", required=required, shell_complete=_complete_run)


class _ParamType(click.ParamType[tuple[str, str]]):
    """A name as `param` declares it, and its value as text; what it means the language says."""

    name = "parameter"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, sign, text = value.partition("=")
        if not sign or not _NAME.fullmatch(name):
            self.fail(f"{value!r:.60} is not NAME=VALUE, such as rtt=20ms", param, ctx)
        if not text.isprintable() or len(text) > _MOST:
            self.fail(
                f"the value of {name} is not one line of at most {_MOST} characters",
                param,
                ctx,
            )
        return name, text


def _params(
    _context: click.Context, _option: click.Parameter, value: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """All that were said. The last one of a name counts."""
    return dict(value)


PARAM = _ParamType()
