"""`/usr/bin/tstorm-coordinator`, the program of the coordinator's container."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from runtime.job.container_paths import ContainerPaths

if TYPE_CHECKING:
    from runtime.backend.base import MakeBackend
    from runtime.job.assignment import JobAssignment

PROBE = "probe"


def main() -> int:
    if sys.argv[1:] == [PROBE]:
        return probe(ContainerPaths())
    # Not above: a probe every few seconds shall cost next to nothing.
    from runtime.job.coordinator_commands import call

    return call(sys.argv[1:], ContainerPaths(), _cluster)


def _cluster(given: JobAssignment) -> MakeBackend:
    """The Job alone needs it."""
    from runtime.backend.k8s import api, cluster_backend

    return cluster_backend.make(given.key, api.in_cluster())


def probe(places: ContainerPaths) -> int:
    """0 if the Job is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(places.socket))
        except OSError as error:
            print(f"no Job on {places.socket}: {error}", file=sys.stderr)  # noqa: T201
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
