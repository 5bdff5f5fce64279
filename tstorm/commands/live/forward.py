"""`tstorm forward RUN INSTANCE:PORT [LOCAL]`: a port of a program, on this machine."""

from __future__ import annotations

import click

from tstorm import output
from tstorm.options.shared import run_argument

MOST = 65535


class _Target(click.ParamType[tuple[str, int]]):
    name = "INSTANCE:PORT"

    def convert(
        self,
        value: str | tuple[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        instance, _, port = value.rpartition(":")
        if not instance or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= MOST:
            self.fail(f"{value!r:.60} is not INSTANCE:PORT, such as web.0:80", param, ctx)
        return instance, int(port)


@click.command()
@run_argument(required=True)
@click.argument("target", metavar="INSTANCE:PORT", type=_Target())
@click.argument("local", metavar="[LOCAL]", required=False, type=click.IntRange(1, MOST))
def command(run: str, target: tuple[str, int], local: int | None) -> None:
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

        portforward.forward(run, instance, port, local, opened, output.note)
        output.note("the run has ended")
