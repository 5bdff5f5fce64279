#!/usr/bin/env python3
"""with_cluster.py COMMAND…: runs a command while a cluster is up, and takes the cluster down.

Exit status: the command's own; 1 if the cluster does not come up or cannot be taken down. It is
taken down whatever happens: also after a failure, Ctrl-C and SIGTERM. A cluster that is up already
is used and left alone. The logs stay (`cluster` says where).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

CLUSTER = Path(__file__).resolve().parent / "cluster"
NODES = "3"


class StopRequestError(Exception):
    """A signal asked for the end."""


def stop(number: int, frame: FrameType | None) -> None:
    raise StopRequestError(signal.Signals(number).name)


def run(command: list[str]) -> int:
    """The command's exit status. It gets the signals that we get, and time to end."""
    environment = {**os.environ, "TSTORM_TEST_CLUSTER": "up"}
    with subprocess.Popen(command, env=environment) as process:
        try:
            return process.wait()
        except (StopRequestError, KeyboardInterrupt) as reason:
            # The terminal has sent Ctrl-C to the command as well; everything else is ours to send.
            if isinstance(reason, StopRequestError):
                process.terminate()
            process.wait()
            return 130


def main() -> int:
    if subprocess.run([CLUSTER, "status"], capture_output=True, check=False).returncode == 0:
        return run(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    start = time.monotonic()
    status = 1
    try:
        if subprocess.run([CLUSTER, "up", NODES], check=False).returncode == 0:
            status = run(sys.argv[1:])
    except (StopRequestError, KeyboardInterrupt):
        status = 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        down = subprocess.run([CLUSTER, "down"], check=False).returncode
        print(f"cluster: {time.monotonic() - start:.0f} s from up to down", flush=True)
    return status or down


if __name__ == "__main__":
    sys.exit(main())
