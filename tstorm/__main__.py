"""`tstorm` and `python -m tstorm`: runs the command and turns its outcome into an exit code.

Exit codes: 0 ok; 1 error in the input or a failed check; 2 usage; 3 this machine or cluster cannot
do it; 4 the result is not to be trusted; 5 the experiment failed; 130 interrupted.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import click

from tstorm import output
from tstorm.cli import cli
from tstorm.exit_codes import (
    FAILED,
    INTERRUPTED,
    OK,
    CommandError,
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # what writing to a stream answers


def _prepare_streams() -> None:
    """Products are UTF-8 with plain line ends, whatever the locale says.

    Where the caller has closed a stream, what is said there goes nowhere.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _refused(error: OSError) -> str:
    """What the system has refused, where nobody below knew better what it was for."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno in _FULL:
        return f"writing the output: {reason}"
    try:
        Path.cwd()
    except OSError:
        return f"the working directory: {reason}"
    return reason


def main() -> int:
    """Entry point of the console script."""
    _prepare_streams()
    try:
        result = cli.main(prog_name="tstorm", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CommandError as error:
        if error.message:
            output.notes(error.message)
        return error.code
    except BrokenPipeError:
        output.drop(sys.stdout)  # the reader (`| head`) is gone
        return OK
    except OSError as error:
        output.drop(sys.stdout)
        output.note(f"error: {_refused(error)}")
        return FAILED
    except MemoryError:
        output.note("error: there is not enough memory")
        return FAILED
    return result if isinstance(result, int) else OK


if __name__ == "__main__":
    sys.exit(main())
