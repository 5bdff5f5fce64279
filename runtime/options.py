"""What a run is asked to do, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runtime.errors import RunError

COMPLETED = "completed"
INTERRUPTED = "interrupted"
FAILED = "failed"

EXIT_CODES: Mapping[str, int] = {COMPLETED: 0, FAILED: 1, INTERRUPTED: 130}

DATAPATHS = ("auto", "user")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a plan. Times are plan time in ns; `pace` divides them (60: sixty-fold speed)."""

    out: Path | None = None  # the run directory itself; None = runs/NAME-UTCSTAMP
    name: str = ""  # NAME; '' = after the plan's directory
    until_ns: int | None = None  # stop here; events at this time still happen
    start_at_ns: int = 0  # begin with the state of this time, then go on from there
    pace: int = 1
    datapath: str = "auto"
    seed: int | None = None  # only recorded: the plan's own seed is what counts
    ports: str = "auto"  # how instances are attached: auto | tap | packet (docs/pktd.md, `open`)

    def __post_init__(self) -> None:
        if self.pace < 1:
            raise RunError(f"the pace is {self.pace}", "give a whole number of 1 or more")
        if self.datapath not in DATAPATHS:
            known = " or ".join(DATAPATHS)
            raise RunError(f"there is no datapath {self.datapath!r}", f"use {known}")
        if self.start_at_ns < 0:
            raise RunError("the start is before the beginning of the timeline")
        if self.until_ns is not None and self.until_ns < self.start_at_ns:
            raise RunError("the end (--until) is before the start (--start-at)")


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `summary` is what summary.json holds."""

    outcome: str  # COMPLETED | INTERRUPTED | FAILED
    run_id: str
    directory: Path
    message: str = ""  # why it failed
    summary: Mapping[str, object] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]
