"""`tstorm exec RUN INSTANCE -- CMD…`: a command inside a running instance."""

from __future__ import annotations

import click

from tstorm.exit_codes import CommandError
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument


# Options end at RUN: what follows INSTANCE belongs to CMD, with or without the `--`.
@click.command(context_settings={"allow_interspersed_args": False})
@in_cluster
@run_argument(required=True)
@click.argument("instance")
@click.argument("argv", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(run: str, instance: str, argv: tuple[str, ...], cluster: Where | None) -> None:
    """Run CMD inside INSTANCE (such as server.0) of the running experiment RUN.

    RUN is a run's name or directory. CMD sees the instance's network, host name and processes; in a
    machine with parts (sat.3) it sees the processes of all parts, and no network. Its exit code
    becomes this command's (128 + N if it was killed by signal N, 125 if INSTANCE cannot be entered,
    126 or 127 if CMD cannot be started).

    If RUN has virtual time, that goes on by itself: without a terminal CMD runs at the experiment's
    speed, and one that waits for you may find it over. While CMD has a terminal, virtual time goes
    no faster than real time. A run that was entered may go another way than one that was not:
    manifest.json says so (talked_to).

    With --backend k8s RUN goes on in a cluster: CMD runs in the container of the instance, as with
    'kubectl exec', and has a terminal if this command has one. Where nobody reads the output any
    more (`| head`), this command ends as by SIGPIPE (141). These options stand before RUN.

    \b
    Examples:
      tstorm exec runs/a client.0 -- ping -c 3 server.0
      tstorm exec quickstart-20260301T120000Z server.0 -- sh
      tstorm exec --backend k8s quickstart-20260301T120000Z server.0 -- sh
    """
    from tstorm.command_support import errors_shown

    words = argv[1:] if argv[0] == "--" else argv
    if not words:
        raise click.UsageError("Missing command after '--'.")
    with errors_shown():
        if cluster is not None:
            from tstorm.k8s import connection, enter_pod

            with connection.connect(cluster.context) as there:
                code = enter_pod.exec_argv(there, run, cluster.namespace, instance, words)
        else:
            from runtime.launch.enter import exec_argv

            code = exec_argv(run, instance, words)
    raise CommandError(code=code)
