"""Two hosts of Mininet as the ends of kernel.py's programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench.engine.netns import Namespace
from bench.engine.wiring import Ends, address
from bench.errors import BenchError

_PYTHON = "/usr/bin/python3"  # Debian's, which has its package mininet
MOST_BPS = 1_000_000_000  # its links have no more


class _Host(Namespace):
    """A namespace that another process keeps."""

    def __init__(self, pid: int) -> None:
        self.path = Path(f"/proc/{pid}/ns/net")

    def close(self) -> None:
        pass


class MininetEnds(Ends):
    """Theirs until `close`. BenchError if there is no Mininet."""

    def __init__(self, rate_bps: int) -> None:
        script = Path(__file__).with_name("in_mininet.py")
        self._process = subprocess.Popen(
            [_PYTHON, str(script), str(rate_bps / 1e6), address(0), address(1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            _, error = self._process.communicate()
            raise BenchError((error.strip().splitlines() or ["Mininet said nothing"])[-1])
        super().__init__([_Host(pid) for pid in json.loads(said)])

    def close(self) -> None:
        self._process.communicate("", timeout=30)
