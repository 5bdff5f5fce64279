"""What the driver is told of its run, wherever that takes place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.options import RunOptions, decode


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """Paths are absolute."""

    run_id: str
    directory: str
    socket: str  # where the control socket is to be
    options: RunOptions

    @property
    def plan(self) -> Path:
        return Path(self.directory) / "plan"


def from_record(record: Mapping[str, Any]) -> DriverConfig:
    return DriverConfig(**{**record, "options": decode(record["options"], "options")})
