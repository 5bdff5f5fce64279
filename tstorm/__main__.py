"""`tstorm` and `python -m tstorm`: runs the command and turns its outcome into an exit code.

Exit codes: 0 ok; 1 error in the input or a failed check; 2 usage; 3 this machine cannot do it;
130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys

import click

from tstorm.cli import cli
from tstorm.exits import INTERRUPTED, OK, CommandError


def _write_utf8() -> None:
    """Products are UTF-8 with plain line ends, whatever the locale says."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")


def main() -> int:
    """Entry point of the console script."""
    _write_utf8()
    try:
        result = cli.main(prog_name="tstorm", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CommandError as error:
        if error.message:
            click.echo(error.message, err=True)
        return error.code
    except BrokenPipeError:
        # The reader (`| head`) is gone. Point stdout at nothing, so that the last flush is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return result if isinstance(result, int) else OK


if __name__ == "__main__":
    sys.exit(main())
