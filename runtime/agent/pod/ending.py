"""How long the programs of services may take to end, and by which signal they are told."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from compiler.plan.types import DEFAULT_GRACE_NS, Service, Topology

SPARE_SECONDS = 1.0  # what outlives a program has it to end, and tstorm-hold to say so


@dataclass(frozen=True, slots=True)
class PodEnding:
    stop: signal.Signals = signal.SIGTERM
    grace_seconds: float = DEFAULT_GRACE_NS / 1e9

    @property
    def whole_seconds(self) -> float:
        """Until nothing is left."""
        return self.grace_seconds + SPARE_SECONDS


def of(service: Service) -> PodEnding:
    stop = signal.Signals[service.stop] if service.stop else signal.SIGTERM
    return PodEnding(stop, (service.grace_ns or DEFAULT_GRACE_NS) / 1e9)


def longest_seconds(topology: Topology) -> float:
    """Of all services."""
    return max((of(service).whole_seconds for service in topology.services), default=0.0)
