"""`tstorm destroy [RUN|--all]`: end runs and remove what they left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import options, output

if TYPE_CHECKING:
    from runtime.destroy import Destroyed


def _row(one: Destroyed) -> tuple[str, ...]:
    return (
        one.run_id,
        "was running" if one.was_live else "left over",
        str(one.processes),
        one.directory,
    )


@click.command()
@options.run_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Every run of this user.")
@options.table_or_json
def command(run: str | None, everything: bool, form: str) -> None:
    """End RUN if it is running and remove its processes, namespaces and temporary files.

    RUN is a run's name or directory; without it, the only run there is. Run directories with their
    results stay. Destroying twice is not an error. Prints what was ended and how many processes had
    to be killed.

    \b
    Examples:
      tstorm destroy
      tstorm destroy runs/quickstart-20260301T120000Z
      tstorm destroy --all
    """
    if run is not None and everything:
        raise click.UsageError("Name one run, or give --all, not both.")
    from tstorm.running import errors_shown

    with errors_shown():
        from runtime.destroy import destroy

        found = destroy(run, everything=everything)
    if form == "json":
        output.emit_json_rows(
            {
                "directory": one.directory,
                "processes_killed": one.processes,
                "run": one.run_id,
                "was_running": one.was_live,
            }
            for one in found
        )
    elif found:
        output.emit_table(("RUN", "STATE", "KILLED", "DIRECTORY"), map(_row, found), right=(2,))
    else:
        output.note("nothing to destroy")
