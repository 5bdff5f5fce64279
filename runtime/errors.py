"""What the runtime raises: a message for the user, what to do, and the exit code it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.plan.fit import Misfit


class RunError(Exception):
    """A run cannot start, go on, or be found. `remedy` says what to do ('' when nothing helps)."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class MachineError(RunError):
    """The machine refuses something a run needs (user namespaces, devices, a missing program)."""

    exit_code = 3


class UnfitError(RunError):
    """The datapath that was chosen cannot do what the plan asks of it."""

    def __init__(self, misfit: Misfit, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.misfit = misfit
