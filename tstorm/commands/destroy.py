"""`tstorm destroy [RUN|--all]`: end runs and remove what they left behind."""

from __future__ import annotations

import click

from tstorm import output


@click.command()
@click.argument("run", required=False)
@click.option("--all", "everything", is_flag=True, help="Every run of this user.")
def command(run: str | None, everything: bool) -> None:
    """End RUN if it is running and remove its processes, namespaces and temporary files.

    Run directories with their results stay. Destroying twice is not an error.

    \b
    Examples:
      tstorm destroy quickstart-1
      tstorm destroy --all
    """
    if bool(run) == everything:
        raise click.UsageError("Name one run, or give --all.")
    from tstorm.running import errors_shown

    with errors_shown():
        from runtime.destroy import destroy

        removed = destroy(run)
    for line in removed:
        output.note(line)
