"""The options of a run as a command asks for them: those of the run itself, as their rows say
(runtime.options), and those of the cluster it may be in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, fields
from typing import Any, TypeVar, cast

import click

from runtime.options import OF_CLUSTERS, Asked, RunOptions, flag_of
from tstorm.options import option_types
from tstorm.options.cluster import BACKEND, CONTEXT, KEEP, NODES, OBJECTS, SAID
from tstorm.options.shared import declared

# `--threshold NAME=VALUE`: what the verdict of a run is decided by, said by the user.


class ThresholdType(click.ParamType[tuple[str, int]]):
    """A name of runtime.thresholds, and a value in its unit: a time, a part in percent, a size."""

    name = "threshold"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        from runtime.thresholds import THRESHOLDS

        name, sign, text = value.partition("=")
        if not sign or not text:
            self.fail(f"{value!r} is not NAME=VALUE, such as path_late=2ms", param, ctx)
        if name not in THRESHOLDS:
            known = ", ".join(sorted(THRESHOLDS))
            self.fail(f"there is no threshold {name!r}; known: {known}", param, ctx)
        return name, self._read(THRESHOLDS[name].unit, text, param, ctx)

    def _read(
        self, unit: str, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        from runtime.thresholds import BYTES, NS, PPM
        from tdl import values

        try:
            if unit == NS:
                return values.time(text)
            if unit == BYTES:
                return values.size(text)
            found = values.probability(text, "a threshold")
        except values.ValueProblem as problem:
            hint = f" ({problem.hint})" if problem.hint else ""
            self.fail(f"{problem.message}{hint}", param, ctx)
        return found // 1000 if unit == PPM else found


class ReseedType(click.ParamType[tuple[str, int]]):
    """A moment and the seed from then on: `5s=7`."""

    name = "moment and seed"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        moment, sign, seed = value.partition("=")
        if not sign:
            self.fail(f"{value!r} is not T=SEED, such as 5s=7", param, ctx)
        at_ns = option_types.DURATION.convert(moment, param, ctx)
        numbers = option_types.WholeNumber(min=0, max=option_types.MOST_SEED)
        return str(at_ns), numbers.convert(seed, param, ctx)


def gathered(
    _context: click.Context, _option: click.Parameter, value: Sequence[tuple[str, int]]
) -> dict[str, int] | None:
    """All that were said as one; None for none. The last one of a name counts."""
    return dict(value) or None


THRESHOLD = ThresholdType()


F = TypeVar("F", bound=Callable[..., Any])

_KINDS: dict[str, click.ParamType[Any]] = {
    "cpu model": option_types.CPU_MODEL,
    "instant": option_types.INSTANT,
    "threads": option_types.THREADS,
    "threshold": THRESHOLD,
    "reseed": ReseedType(),
}
_UNIT = "_ns"  # at the end of the names of durations


def _of_row(row: Field[Any]) -> Iterator[Callable[[Any], Any]]:
    """One for each flag of an option of a run; what is not said is None."""
    for asked in row.metadata.get("asked", ()):
        if asked.kind == OF_CLUSTERS:
            continue
        flag = flag_of(row, asked)
        how: dict[str, Any] = {"help": asked.help, "metavar": asked.metavar or None}
        if asked.value:
            how |= {"flag_value": asked.value}
        elif row.type == "bool":
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
            how |= {"default": None}
        else:
            how |= {"type": _type(row, asked)}
        if asked.kind in ("threshold", "reseed"):
            how |= {"multiple": True, "callback": gathered}
        yield click.option(flag, row.name, **how)


def _type(row: Field[Any], asked: Asked) -> click.ParamType[Any]:
    if asked.kind:
        return _KINDS[asked.kind]
    if row.metadata["choices"]:
        return click.Choice([word for word in row.metadata["choices"] if word])
    if row.name.endswith(_UNIT):
        return option_types.DURATION
    if row.type == "str":
        return option_types.TextType()
    assert row.metadata["within"], f"the row of {row.name} does not say which numbers it takes"
    return option_types.WholeNumber(min=row.metadata["within"][0])


RUNNING: tuple[Callable[[Any], Any], ...] = (
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
    *(option for row in fields(RunOptions) for option in _of_row(row)),
    *(BACKEND, CONTEXT, *OBJECTS, NODES, KEEP),
)


def running(function: F) -> F:
    """--quiet, --format, --out, and the options of a run: those that were said are passed on as one
    `asked`, by their names in runtime.options.RunOptions. What is said of a cluster and is none of
    them is `cluster`, by the names in tstorm.k8s.clusterrun.ClusterAsked."""

    @functools.wraps(function)
    def inner(**given: Any) -> Any:
        known = {field.name for field in fields(RunOptions)} & given.keys()
        asked = {name: value for name in known if (value := given.pop(name)) is not None}
        cluster = {name: given.pop(name) for name in SAID if name in given}
        return function(asked=asked, cluster=cluster, **given)

    return declared(RUNNING, cast(F, inner))
