"""Programs that an experiment starts and waits for, so that an interrupt leaves nothing of them,
and what they take of processors.

A run that is asked to end takes its instances with it; killed at once, as subprocess.run does, it
would leave that to its supervisor.
"""

from __future__ import annotations

import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

_GRACE_S = 30


def computed_s() -> float:
    """Seconds of processors, by processes that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finished(
    argv: Sequence[str],
    cwd: Path | str,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Like subprocess.run with captured text. A program that takes too long, or for which nobody
    waits any longer, is asked to end (SIGTERM) and killed if it does not."""
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GRACE_S)
    finally:
        process.kill()


def end_in_order() -> None:
    """SIGTERM is what Ctrl-C is, from now on: what is open is closed."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
