"""Open files: how many a run needs, and what to do when there are too few."""

from __future__ import annotations

import resource

from runtime.errors import MachineError

FILES_AN_INSTANCE = 8  # at most, in the driver or in pktd; twice as many while it is replaced
FILES_BESIDES = 100
REMEDY = "raise the hard limit: ulimit -Hn 65536"


def enough_for(limit: int) -> int:
    """How many instances a run can have with this many open files."""
    return max(limit - FILES_BESIDES, 0) // FILES_AN_INSTANCE


def raise_limit(instances: int) -> None:
    """As many open files as allowed. MachineError if that is too few for so many instances."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and enough_for(hard) < instances:
        raise MachineError(
            f"{instances} instances need more than the {hard} open files that are allowed", REMEDY
        )
