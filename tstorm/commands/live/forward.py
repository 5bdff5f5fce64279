"""`tstorm forward RUN INSTANCE:PORT [LOCAL]`: a port of a program, on this machine."""

from __future__ import annotations

import click

from tstorm import output
from tstorm.options.port_targets import MOST_PORT, PortTarget
from tstorm.options.shared import run_argument


@click.command()
@run_argument(required=True)
@click.argument("target", metavar="INSTANCE:PORT", type=PortTarget())
@click.argument("local", metavar="[LOCAL]", required=False, type=click.IntRange(1, MOST_PORT))
@click.option("--listener", hidden=True, type=click.IntRange(3))
def command(run: str, target: tuple[str, int], local: int | None, listener: int | None) -> None:
    """Make a TCP port of a program in the running experiment RUN reachable on this machine.

    RUN is a run's name or directory. Whoever connects to port LOCAL of 127.0.0.1 is connected to
    PORT of INSTANCE (such as web.0:80); by default LOCAL is PORT, if that is free, else any. The
    address here is printed. It goes on until RUN has ended or Ctrl-C, also when INSTANCE crashes
    and joins again.

    These connections are not part of the experiment: they begin inside the instance, so no link
    delays, loses or counts anything of them. Only this user and root can connect. UDP is not
    forwarded; a run in virtual time or in a cluster is refused ('kubectl port-forward' does it
    there).

    \b
    Examples:
      tstorm forward runs/shop web.0:80 8080
      tstorm forward shop-20260301T120000Z db.1:5432
    """
    from tstorm.command_support import errors_shown

    instance, port = target
    with errors_shown():
        from runtime.launch import portforward

        def opened(address: str) -> None:
            click.echo(address)
            output.note(
                f"{address} is {instance}:{port}, past the emulated network; Ctrl-C ends it"
            )

        if listener is not None:  # of `tstorm run --publish`, which has said where it is
            portforward.forward_from(portforward.inherited(listener), run, target, output.note)
            return
        portforward.forward(run, instance, port, local, opened, output.note)
        output.note("the run has ended")
