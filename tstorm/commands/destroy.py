"""`tstorm destroy [RUN|--all]`: end runs and remove what they left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument, table_or_json

if TYPE_CHECKING:
    from runtime.launch.cleanup import Destroyed
    from tstorm.k8s.remove_runs import Removed


def _state(one: Destroyed) -> str:
    if one.elsewhere:
        return "forgotten" if one.forgotten else "left alone"
    return "was running" if one.was_live else "left over"


def _row(one: Destroyed) -> tuple[str, ...]:
    return (
        one.run_id,
        _state(one),
        str(one.processes),
        one.directory,
    )


def _in_cluster(run: str | None, where: Where, form: str, *, everything: bool) -> None:
    from tstorm.command_support import errors_shown

    with errors_shown():
        from tstorm.k8s import connection, remove_runs

        with connection.connect(where.context) as there:
            found = remove_runs.destroy(
                there, run, where.namespace, everything=everything, say=output.note
            )
    if form == "json":
        output.emit_json_rows(
            {
                "kept": one.kept,
                "namespace": one.run.namespace,
                "owner": one.run.owner,
                "removed": not one.kept and not one.is_left,
                "run": one.run.run_id,
            }
            for one in found
        )
    elif found:
        rows = ((one.run.run_id or "-", _fate(one), one.run.namespace) for one in found)
        output.emit_table(("RUN", "STATE", "NAMESPACE"), rows)
    else:
        output.note("nothing to destroy" + (f": there is no run {run!r} there" if run else ""))
    for one in found:
        if one.is_left:
            owner = one.run.owner or "somebody who is not known"
            output.note(f"nothing was done about {one.run.text}: {owner} began it")
        elif one.is_foreign and one.run.owner:
            output.note(f"note: {one.run.owner} began {one.run.text}")
    kept = [f"{one.run.namespace} may still be there: {one.kept}" for one in found if one.kept]
    if kept:
        raise CommandError(f"error: {'; '.join(kept)}", CANNOT)


def _fate(one: Removed) -> str:
    return "left alone" if one.is_left else "being removed" if one.kept else "removed"


@click.command()
@run_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Every run of this user.")
@click.option(
    "--forget",
    is_flag=True,
    help="Only forget RUN, whose other machine or container no longer exists.",
)
@in_cluster
@table_or_json
def command(
    run: str | None,
    everything: bool,
    forget: bool,
    form: str,
    cluster: Where | None,
) -> None:
    """End RUN if it is running and remove its processes, namespaces and temporary files.

    RUN is a run's name or directory; without it, the only run there is. Run directories with their
    results stay. Destroying twice is not an error. It prints the ended runs and how many
    processes had to be killed.

    If machines or containers share a home, there may be runs of the others. They are reported and
    left alone: end them where they run. --forget forgets a run whose machine or container no longer
    exists, unless the run seems to go on.

    With --backend k8s RUN is in a cluster, from whatever machine it was begun: its namespace is
    deleted with everything in it, or where that was given to its user all that the run has there,
    and this command waits until it is gone. Without RUN and
    --namespace, or with --all, only those count that you began; others are reported and left alone.

    \b
    Examples:
      tstorm destroy
      tstorm destroy runs/quickstart-20260301T120000Z
      tstorm destroy --all
      tstorm destroy quickstart-20260301T120000Z --forget
      tstorm destroy quickstart-20260301T120000Z --backend k8s
    """
    if forget and (run is None or everything):
        raise click.UsageError("--forget needs the name of one run.")
    if run is not None and everything:
        raise click.UsageError("Name one run, or give --all, not both.")
    if cluster is not None:
        if forget:
            raise click.UsageError("--forget is for runs of this machine.")
        _in_cluster(run, cluster, form, everything=everything)
        return
    from tstorm.command_support import errors_shown

    with errors_shown():
        from runtime.launch import cleanup

        if forget and run is not None:
            found = cleanup.forget(run)
        else:
            found = cleanup.destroy(run, everything=everything)
    if form == "json":
        output.emit_json_rows(
            {
                "directory": one.directory,
                "elsewhere": one.elsewhere,
                "forgotten": one.forgotten,
                "processes_killed": one.processes,
                "run": one.run_id,
                "unclosed": one.unclosed,
                "was_running": one.was_live,
            }
            for one in found
        )
    elif found:
        output.emit_table(("RUN", "STATE", "KILLED", "DIRECTORY"), map(_row, found), right=(2,))
    else:
        output.note("nothing to destroy")
    for one in found:
        if one.elsewhere and not one.forgotten:
            output.note(f"nothing was done about {one.run_id}: it is {one.elsewhere}")
        if one.unclosed:
            output.note(f"note: {one.run_id} has no outcome: {one.unclosed}")
