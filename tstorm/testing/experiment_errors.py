"""What goes wrong with an experiment in a test. Failures of the system under test are
AssertionErrors; everything else says that the test could not find out.
"""

from __future__ import annotations


class ExperimentError(Exception):
    """The experiment cannot be carried out, asked or read."""


class StartError(ExperimentError):
    """It does not begin: its text is wrong, or this machine cannot do it. The text is what
    `tstorm run` has said, the code what it ended with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class DeadlineError(ExperimentError):
    """What was waited for has not come. The text has the last known state."""


class NotTrustedError(ExperimentError):
    """The verdict on the run is not what was required, whatever the test has found."""


class ExpectationsError(AssertionError):
    """Expectations or programs of the experiment have failed."""
