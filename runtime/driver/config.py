"""What `runtime.launch.launch` tells the driver when it starts it: the channel's first message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.options import RunOptions, decode


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """Paths are absolute. It travels as its asdict()."""

    run_id: str
    directory: str
    socket: str  # where the control socket is to be
    engine: tuple[str, ...]  # argv of what carries packets: pktd or tcald
    nursery: str  # path of tstorm-ns
    start_directory: str  # where `tstorm run` was called
    source_directory: str  # where programs named with a relative path are
    environment: dict[str, str]  # what programs inherit from the caller
    options: RunOptions

    @property
    def plan(self) -> Path:
        return Path(self.directory) / "plan"


def from_record(record: Mapping[str, Any]) -> DriverConfig:
    options = decode(record["options"], "options")
    return DriverConfig(**{**record, "engine": tuple(record["engine"]), "options": options})
