"""`tstorm exec RUN INSTANCE -- CMD…`: a command inside a running instance."""

from __future__ import annotations

import click

from tstorm import parameters
from tstorm.exits import CommandError


# Options end at RUN: what follows INSTANCE belongs to CMD, with or without the `--`.
@click.command(context_settings={"allow_interspersed_args": False})
@parameters.run_argument(required=True)
@click.argument("instance")
@click.argument("argv", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(run: str, instance: str, argv: tuple[str, ...]) -> None:
    """Run CMD inside INSTANCE (such as server.0) of the running experiment RUN.

    RUN is a run's name or directory. CMD sees the instance's network, host name and processes; its
    exit code becomes this command's (128 + N if it was killed by signal N, 125 if the instance
    cannot be entered, 126 or 127 if CMD cannot be started).

    \b
    Examples:
      tstorm exec runs/a client.0 -- ping -c 3 server.0
      tstorm exec quickstart-20260301T120000Z server.0 -- sh
    """
    from tstorm.running import errors_shown

    words = argv[1:] if argv[0] == "--" else argv
    if not words:
        raise click.UsageError("Missing command after '--'.")
    with errors_shown():
        from runtime.launch.enter import exec_argv

        code = exec_argv(run, instance, words)
    raise CommandError(code=code)
