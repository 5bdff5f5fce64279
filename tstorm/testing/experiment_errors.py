"""What goes wrong with an experiment in a test. Failures of the system under test are
AssertionErrors; everything else says that the test could not find out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdl.diagnostics import Diagnostic


class ExperimentError(Exception):
    """The experiment cannot be carried out, asked or read."""


class StartError(ExperimentError):
    """It does not begin: its text is wrong, or this machine cannot do it. The text is what
    `tstorm run` has said, the code what it ended with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class ReactionError(ExperimentError):
    """The text of a reaction (`when=`) is wrong: its diagnostics, with their places in it."""

    def __init__(self, number: int, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("\n".join(_line(number, one) for one in diagnostics))
        self.diagnostics = diagnostics


def _line(number: int, one: Diagnostic) -> str:
    hint = f" ({one.hint})" if one.hint else ""
    return f"reaction {number}:{one.span.line}:{one.span.col}: {one.code} {one.message}{hint}"


class DeadlineError(ExperimentError):
    """What was waited for has not come. The text has the last known state."""


class NotTrustedError(ExperimentError):
    """The verdict on the run is not what was required, whatever the test has found."""


class ExpectationsError(AssertionError):
    """Expectations or programs of the experiment have failed."""
