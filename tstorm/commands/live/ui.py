"""`tstorm ui [RUN]`: the page of a run, while it goes on."""

from __future__ import annotations

import sys

import click

from tstorm import output
from tstorm.options import option_types
from tstorm.options.shared import run_argument

_LISTEN = "127.0.0.1"


@click.command()
@run_argument(required=False)
@click.option(
    "--port",
    metavar="PORT",
    type=option_types.WholeNumber(min=0, max=65535),
    default=0,
    help="The port to listen on.  [default: a free one]",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=_LISTEN,
    show_default=True,
    help="The address to listen on. Another than loopback lets others read along: it is not "
    "encrypted.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Take the secret from FILE, which only you can read, instead of a new one: for programs "
    "such as Prometheus.",
)
@click.option("--with-run", is_flag=True, hidden=True, help="End when the run has ended.")
def command(
    run: str | None, port: int, listen: str, token_file: str | None, *, with_run: bool
) -> None:
    """Serve the page of RUN to browsers of this machine: what it does now, and a line to steer it.

    RUN is a run's name or folder; without it, the only one that goes on. The link that is printed
    has a secret: whoever has it can steer the run, nobody else gets anything. The page is that of
    report.html, and moves. Ctrl-C ends the server; the run goes on whatever becomes of it.

    It needs packages that are installed with: pip install 'tstorm[ui]'

    \b
    Examples:
      tstorm ui
      tstorm ui runs/a --port 8080
      ssh -L 8080:127.0.0.1:8080 lab       # and there: tstorm ui --port 8080
    """
    from tstorm.command_support import errors_shown
    from tstorm.ui.ui_extra import check_installed

    with errors_shown():
        check_installed()
        from runtime.launch import registry
        from tstorm.ui import serving

        name = run if run is not None else registry.find(None).directory
        if not serving.is_loopback(listen):
            output.note(
                f"note: {listen} is not loopback: whoever hears this network reads the secret"
            )

        def tell(link: str) -> None:
            output.line(link)
            sys.stdout.flush()

        serving.serve(name, listen, port, token_file, tell, with_run=with_run)
