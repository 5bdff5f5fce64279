"""What foreign data raises where it is used, as a note on the page instead of an error."""

from __future__ import annotations

from types import TracebackType

from compiler.plan.format import PlanError
from runtime.errors import RunError

_UNUSABLE = (
    *(RunError, PlanError, OSError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)


class Unless:
    """`with Unless("logs are not shown", notes):` What is inside may fail for what files hold."""

    def __init__(self, what: str, notes: list[str]) -> None:
        self._what, self._notes = what, notes

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, _UNUSABLE):
            return False
        words = error.message if isinstance(error, RunError) else str(error)
        self._notes.append(f"{self._what}: {words or type(error).__name__}")
        return True
