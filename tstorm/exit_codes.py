"""Exit codes, and the one exception by which a command ends with one of them."""

from __future__ import annotations

OK = 0
FAILED = 1  # error in the input, a check that did not hold, or a run that broke off
USAGE = 2  # click's own
CANNOT = 3  # this machine or cluster lacks something; `tstorm doctor` says what
TOO_LATE = 4  # the result is not to be trusted (--require, --max-lateness)
PROGRAMS_FAILED = 5  # the experiment failed (expect, expect=, --fail-on-exit)
INTERRUPTED = 130


class CommandError(Exception):
    """Ends the command with `code`. `message` goes to stderr; empty when all is already said."""

    def __init__(self, message: str = "", code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    @property
    def in_one_line(self) -> str:
        """What it says, for a table or a list."""
        said, _, hint = self.message.removeprefix("error: ").partition("\nhint: ")
        return f"{said} ({hint})" if hint else said
