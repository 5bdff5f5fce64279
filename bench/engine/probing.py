"""Runs tprobe in namespaces and reads what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.engine.netns import Namespace
from bench.engine.wiring import address
from bench.errors import BenchError
from bench.tables import Record
from runtime.system.compiled_programs import find


def program(name: str) -> Path:
    """A compiled program of the project."""
    return find(name)


@contextmanager
def serving(space: Namespace, *more: str) -> Iterator[None]:
    """`tprobe serve` inside, listening when the body starts. `more`: options of it."""
    argv = space.argv([str(program("tprobe")), "serve", "--seconds", "900", *more])
    server = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        if b"listening" not in server.stdout.readline():
            raise BenchError("tprobe serve did not start")
        yield
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def start(space: Namespace, words: Sequence[str]) -> subprocess.Popen[str]:
    """tprobe with `words`, running."""
    argv = space.argv([str(program("tprobe")), *words])
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(running: subprocess.Popen[str]) -> Record:
    """Waits for a tprobe and gives its summary. Raises BenchError when there is none."""
    out, err = running.communicate()
    for line in out.splitlines():
        record: Record = json.loads(line)
        if record.get("summary"):
            return record
    raise BenchError(f"tprobe failed with {running.returncode}: {err.strip()}")


def probe(space: Namespace, *words: str) -> Record:
    """Runs tprobe to its end and gives its summary."""
    return finish(start(space, words))


def stream_words(to: int, seconds: float, *, skip: float, cc: str = "cubic") -> list[str]:
    """Arguments of a TCP stream to end `to`, its first `skip` seconds left out of the rate."""
    length = f"{round(seconds * 1000)}ms"
    words = ["stream", address(to), "--seconds", length, "--interval", length, "--cc", cc]
    return [*words, "--skip", f"{round(skip * 1000)}ms"]


def goodput_bps(summary: Record) -> float:
    """What the receiver counted, after the skipped beginning."""
    receiver = summary.get("receiver")
    if not receiver:
        raise BenchError("the receiver's count is missing from tprobe's summary")
    return float(receiver["bps"])
