"""What `runtime.launch.launch` tells the driver when it starts it: the channel's first message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runtime.options import RunOptions

ASKED = (
    *("until_ns", "start_at_ns", "pace", "datapath", "ports"),
    *("hosts", "period_ns", "clock_budget_ns", "on_agent_loss", "allow_spoofing", "faults"),
    *("max_lateness_ns", "fail_on_exit"),
)


def asked(options: RunOptions) -> dict[str, Any]:
    """What is asked of the run itself, for the driver and for the manifest."""
    return {name: getattr(options, name) for name in ASKED}


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """Paths are absolute."""

    run_id: str
    directory: str
    socket: str  # where the control socket is to be
    engine: tuple[str, ...]  # argv of what carries packets: pktd or tcald
    nursery: str  # path of tstorm-ns
    start_directory: str  # where `tstorm run` was called
    source_directory: str  # where programs named with a relative path are
    environment: dict[str, str]  # what programs inherit from the caller
    userns: bool  # the run is in a user namespace of its own
    asked: Mapping[str, Any]  # of RunOptions, what a driver needs (ASKED)

    @property
    def plan(self) -> Path:
        return Path(self.directory) / "plan"

    def options(self) -> RunOptions:
        return RunOptions(out=Path(self.directory), **self.asked)

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def from_record(record: Mapping[str, Any]) -> DriverConfig:
    return DriverConfig(**{**record, "engine": tuple(record["engine"])})
