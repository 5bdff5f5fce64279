"""`tstorm render PLAN|EXP.tdl`: the plan as files for Kubernetes or Compose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.options import option_types
from tstorm.options.cluster import cluster_objects
from tstorm.options.shared import params, seed, source

if TYPE_CHECKING:
    from manifests.bundle import Bundle
    from manifests.render_options import Options

STDOUT = "-"
FOLDERS = {"yaml": "kubernetes", "kustomize": "kustomize", "compose": "compose"}


# What Compose has not, and the reason.
_KUBERNETES_ONLY = {
    "namespace": "Compose has no namespaces; a project or stack has the name that it is started "
    "with",
    "nodes": "Compose knows one machine; for several use Kubernetes",
    "agent_cpu_millis": "Compose has one machine, and no scheduler to ask",
}


def _check(target: str | None, form: str, asked: Mapping[str, object]) -> None:
    """What cannot be asked for together."""
    for name, reason in _KUBERNETES_ONLY.items():
        if form == "compose" and asked[name] is not None:
            option = "--" + name.removesuffix("_millis").replace("_", "-")
            raise click.BadParameter(reason, param_hint=f"'{option}'")
    if form == "kustomize" and target == STDOUT:
        raise click.BadParameter(
            "a kustomization is a directory and cannot go to standard output; "
            "--format yaml prints the same objects",
            param_hint="'-o'",
        )


def _rendered(bundle: Bundle, chosen: Options, form: str) -> Mapping[str, str | bytes]:
    from manifests import compose, kubernetes

    if form == "compose":
        return compose.render(bundle, chosen)
    return kubernetes.render(bundle, chosen)


def _print(files: Mapping[str, str | bytes]) -> None:
    from manifests.write import stream

    click.echo(stream(files), nl=False)
    left_out = [name for name in sorted(files) if isinstance(files[name], bytes)]
    if left_out:
        output.note(f"note: it refers to {', '.join(left_out)}, which -o DIR writes")


@click.command()
@source
@click.option(
    "-o",
    "--output",
    "target",
    metavar="DIR",
    type=option_types.DIRECTORY,
    help="The directory, or '-' for one YAML stream.  "
    "[default: EXP.kubernetes, EXP.kustomize or EXP.compose in the working directory]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FOLDERS)),
    default="yaml",
    show_default=True,
    help="Kubernetes objects, the same with a kustomization.yaml, or a file for Compose.",
)
@cluster_objects
@click.option(
    "--slim",
    is_flag=True,
    help="Carry a smaller plan: agents compute its snapshots and routes again and check them.",
)
@seed
@params
def command(
    source: str,
    target: str | None,
    form: str,
    slim: bool,
    seed: int | None,
    params: dict[str, str],
    **asked: Any,
) -> None:
    """Render a plan as files for a cluster. It applies nothing and needs no cluster.

    docs/manifests.md and docs/compose.md describe the files and how to go on. They depend on the
    plan and the options alone. The directory is written whole or not at all; it replaces one with
    earlier files of this command, and nothing else.

    \b
    Examples:
      tstorm render quickstart.plan                    # writes quickstart.kubernetes
      kubectl apply -f quickstart.kubernetes
      tstorm render quickstart.tdl --seed 7 --namespace trial-7 -o - | kubectl apply -f -
      tstorm render quickstart.plan --nodes pool=lab   # agents and instances on these nodes only
      tstorm render quickstart.plan --format compose -o compose
    """
    _check(target, form, asked)
    from manifests import bundle, kubernetes_checks
    from manifests.refusal import ManifestError
    from manifests.render_options import Options
    from manifests.write import write
    from tstorm.command_support import place_of
    from tstorm.loading import experiment_name, load_plan, plan_errors_shown, show_in_cluster
    from tstorm.notes import Statements

    plan = load_plan(source, seed, params)
    try:
        with plan_errors_shown(source):
            carried = bundle.make(plan, slim=slim)
            given = {name: value for name, value in asked.items() if value is not None}
            chosen = Options(kustomize=form == "kustomize", **given)
            rendered = _rendered(carried, chosen, form)
            if form != "compose":
                show_in_cluster(plan, source)
                for text in kubernetes_checks.warnings(plan.topology, chosen.agent_cpu_millis):
                    output.note(f"warning: {text}")
        if target == STDOUT:
            _print(rendered)
            return
        directory = Path(target or f"{experiment_name(source)}.{FOLDERS[form]}")
        write(directory, rendered)
    except ManifestError as error:
        with plan_errors_shown(source):  # of the texts that it carries
            place = place_of(error.misfit, Statements(plan, source).name, plan)
        raise CommandError(f"error: {place}{error}") from error
    where = "" if form == "compose" else f"namespace {chosen.resolve(carried).namespace}, "
    click.echo(f"{directory}: {len(rendered)} files, {where}plan {carried.digest}")
