"""`tstorm compile EXP.tdl`: text in, plan directory out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.plan.collector import collector_paused
from runtime.say import some
from tstorm import output as out
from tstorm.options import option_types
from tstorm.options.shared import beside, budget, diagnostics, params, seed, underlay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.pipeline import Compilation


_NAMED = 3  # services that a note names


@collector_paused()
def _manifests(compilation: Compilation) -> Mapping[str, bytes]:
    """The plan as Kubernetes objects, by file name. What they cannot express is no error here."""
    from compiler.plan.format import PlanError
    from manifests import bundle, kubernetes
    from manifests.refusal import ManifestError
    from manifests.render_options import Options
    from manifests.write import encoded

    missing = [one.name for one in compilation.topology.services if not one.image]
    if missing:
        out.note(f"note: the plan has no manifests for Kubernetes: {_imageless(missing)}")
        return {}
    try:
        return encoded(kubernetes.render(bundle.make(compilation.plan), Options()))
    except (ManifestError, PlanError) as error:
        out.notes(f"note: the plan has no manifests for Kubernetes: {error}")
        return {}


def _imageless(services: list[str]) -> str:
    if len(services) == 1:
        return f"service {services[0]!r} has no image; add img=IMAGE"
    named = some([repr(one) for one in services], _NAMED)
    return f"the services {named} have no image; add img=IMAGE to each"


@click.command()
@click.argument("file", metavar="EXP.tdl", type=option_types.INPUT)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=option_types.DIRECTORY,
    help="The plan directory.  [default: EXP.plan in the working directory]",
)
@click.option(
    "--no-manifests", is_flag=True, help="Leave out manifests/: see 'tstorm render' for what it is."
)
@beside
@seed
@params
@budget
@underlay
@diagnostics
def command(
    file: str,
    output: str | None,
    no_manifests: bool,
    tdl: str | None,
    more: tuple[str, ...],
    seed: int | None,
    params: dict[str, str],
    budget_bps: int | None,
    underlay_ns: int | None,
    strict: bool,
    form: str,
    most: int | None,
) -> None:
    """Compile EXP.tdl ('-' reads standard input) into a plan directory.

    The same text and seed give the same bytes everywhere. The plan is written whole or not at all;
    it replaces an older plan, and nothing else. Its folder manifests has the plan as Kubernetes
    objects, as 'tstorm render' makes them; no digest covers it.

    \b
    Examples:
      tstorm compile quickstart.tdl                 # writes quickstart.plan
      tstorm compile quickstart.tdl -o out/p --seed 7
      generate | tstorm compile - -o generated.plan
    """
    if output == "-":
        raise click.BadParameter(
            "a plan is a directory and cannot go to standard output; "
            "for its content see 'tstorm events' and 'tstorm paths'",
            param_hint="'-o'",
        )
    from compiler.feasibility.warnings import Machines
    from tstorm.loading import compile_text, read_experiment, source_name, write_plan

    machines = Machines(budget_bps=budget_bps, underlay_ns=underlay_ns, kubernetes=not no_manifests)
    raw = read_experiment(file, tdl, more)
    compilation = compile_text(
        raw, file, seed, strict=strict, form=form, machines=machines, most=most, params=params
    )
    directory = Path(output) if output else Path(Path(source_name(file)).stem + ".plan")
    beside = None if no_manifests else _manifests(compilation)
    digest = write_plan(compilation, directory, beside)
    click.echo(
        f"{directory}: {len(compilation.events)} events, seed {compilation.plan.seed}, "
        f"sha256 {digest}",
        err=form != "text",
    )
