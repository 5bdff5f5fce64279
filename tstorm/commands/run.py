"""`tstorm run PLAN|EXP.tdl`: carry a plan out, on this machine or in a cluster."""

from __future__ import annotations

from typing import Any

import click

from tstorm import parameters
from tstorm.exits import OK, CommandError


@click.command()
@parameters.source
@parameters.seed
@parameters.budget
@parameters.running
def command(
    source: str,
    seed: int | None,
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
      tstorm run quickstart.plan --backend k8s --nodes pool=lab
    """
    from runtime.options import K8S
    from tstorm.loading import plan_to_run, show_rejoins
    from tstorm.outcome import report
    from tstorm.running import carry_out, errors_shown, options_of, places_of

    with errors_shown():
        options = options_of(asked)
        found = plan_to_run(source, seed, budget_bps=budget_bps, pace=asked.get("pace"))
        if options.backend == K8S:
            show_rejoins(found.plan, source, refuse=True)
        result = carry_out(found, options, places_of(source, out, found.name), cluster, quiet=quiet)
    report(result, form)
    if result.exit_code != OK:
        raise CommandError(code=result.exit_code)
