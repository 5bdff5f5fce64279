"""What `runtime.run` tells the driver when it starts it: the channel's first message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runtime.options import RunOptions


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """Paths are absolute. Times as in RunOptions."""

    run_id: str
    directory: str
    socket: str  # where the control socket is to be
    pktd: tuple[str, ...]  # argv of the packet engine
    nursery: str  # path of tstorm-ns
    start_directory: str  # where `tstorm run` was called
    environment: dict[str, str]  # what programs inherit from the caller
    userns: bool  # the run is in a user namespace of its own
    until_ns: int | None
    start_at_ns: int
    pace: int
    ports: str

    @property
    def plan(self) -> Path:
        return Path(self.directory) / "plan"

    def options(self) -> RunOptions:
        return RunOptions(
            out=Path(self.directory),
            until_ns=self.until_ns,
            start_at_ns=self.start_at_ns,
            pace=self.pace,
            ports=self.ports,
        )

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def from_record(record: Mapping[str, Any]) -> DriverConfig:
    return DriverConfig(**{**record, "pktd": tuple(record["pktd"])})
