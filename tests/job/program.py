"""`python -m tests.job.program ROOT LOG_BYTES [COMMAND…]`: tstorm-coordinator below another root,
with a backend that needs no cluster."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from runtime.backend.base import MakeBackend
from runtime.job import job
from runtime.job.assignment import JobAssignment
from runtime.job.container_paths import ContainerPaths
from runtime.job.coordinator_commands import call
from tests.doubles.backend import FakeBackend


def _backend_of(_given: JobAssignment) -> MakeBackend:
    return partial(FakeBackend, log_bytes=int(sys.argv[2]), hangs="HANGS" in os.environ)


if __name__ == "__main__":
    job.WIND_DOWN_SECONDS = float(os.environ.get("WIND_DOWN", job.WIND_DOWN_SECONDS))
    sys.exit(call(sys.argv[3:], ContainerPaths(Path(sys.argv[1])), _backend_of))
