"""What a run came to, and the exit code of the command that ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.options import COMPLETED, DEFAULTS, FAILED, INTERRUPTED, REQUIRED, RunOptions

EXIT_CODES: Mapping[str, int] = {COMPLETED: 0, FAILED: 1, INTERRUPTED: 130}
TOO_LATE, PROGRAMS_FAILED = 4, 5  # of a run that is completed nevertheless


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `summary` is what summary.json holds."""

    outcome: str  # COMPLETED | INTERRUPTED | FAILED
    run_id: str
    directory: Path
    message: str = ""  # why it failed
    summary: Mapping[str, Any] = field(default_factory=dict)
    programs_failed: bool = False  # they, or the run, did not do what was expected or asked for
    options: RunOptions = DEFAULTS

    @property
    def not_as_required(self) -> bool:
        """Whether the verdict is another than --require accepts."""
        state = self.summary.get("verdict", {}).get("state", "unknown")
        return state not in REQUIRED[self.options.require]

    @property
    def exit_code(self) -> int:
        """A result that is not to be trusted says nothing of programs either. A run that programs
        have ended (fail_fast) has failed because of them."""
        if self.outcome != COMPLETED:
            because = self.outcome == FAILED and self.programs_failed
            return PROGRAMS_FAILED if because else EXIT_CODES[self.outcome]
        if self.summary.get("verdict", {}).get("too_late") or self.not_as_required:
            return TOO_LATE
        return PROGRAMS_FAILED if self.programs_failed else EXIT_CODES[COMPLETED]
