"""Writes down when the logs of instances grew, in logs.jsonl: programs write there by themselves,
mostly without a time.

Each line is an interval and how long the logs were at its end that grew in it:

    {"from_ns": …, "elapsed_ns": …, "bytes": {"server.0": 120}}

An interval begins when its first write is noticed and lasts some INTERVAL_SECONDS, or longer where
many logs grow at once. It ends apart from round times: in virtual time nothing else is due then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.system.inotify import WriteWatch

INTERVAL_SECONDS = 0.1
EACH_LOG_SECONDS = 0.002  # more, so that a row for every log takes no more than some kB a second
ROUND_NS, APART_NS = 1_000_000, 37_123  # programs wake at round times
SUFFIX = ".log"


class LogWatch:
    """`elapsed`: ns since time 0."""

    def __init__(self, logs: HeldDirectory, file: LineFile, elapsed: Callable[[], int]) -> None:
        self._logs = logs
        self._file = file
        self._elapsed = elapsed
        self._watch: WriteWatch | None = None
        self._sizes: dict[str, int] = {}
        self._began_ns = 0
        self._grew = 0  # logs, in the last interval
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """At time 0 or shortly before. A machine that has no watch left leaves times unknown."""
        try:
            self._watch = WriteWatch(self._logs.descriptor)
        except OSError:
            return
        self._write_row(None)  # what was written before
        asyncio.get_running_loop().add_reader(self._watch, self._wake)

    def _wake(self) -> None:
        """The first write after a rest; of others is read at the interval's end."""
        assert self._watch is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._watch)
        self._began_ns = self._elapsed()
        seconds = max(INTERVAL_SECONDS, EACH_LOG_SECONDS * self._grew)
        end_ns = time.monotonic_ns() + int(seconds * 1e9)
        end_ns += APART_NS - end_ns % ROUND_NS
        self._timer = loop.call_at(end_ns / 1e9, self._end_interval)

    def _end_interval(self) -> None:
        if self._watch is not None:
            self._write_row(self._watch.names())
            asyncio.get_running_loop().add_reader(self._watch, self._wake)

    def _write_row(self, names: set[str] | None) -> None:
        """Of the logs that grew, of all there are if it is not known which did."""
        grown: dict[str, int] = {}
        for name in sorted(self._logs.names() if names is None else names):
            status = self._logs.status(name) if name.endswith(SUFFIX) else None
            if status is not None and status.st_size != self._sizes.get(name, 0):
                self._sizes[name] = status.st_size
                grown[name.removesuffix(SUFFIX)] = status.st_size
        self._grew = len(grown)
        if grown:
            moments = {"from_ns": self._began_ns, "elapsed_ns": self._elapsed()}
            self._file.append({**moments, "bytes": grown})

    def close(self) -> None:
        """Writes the last row, and closes the file."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            asyncio.get_running_loop().remove_reader(self._watch)
            with suppress(OSError, RunError):
                self._write_row(self._watch.names())
            self._watch.close()
            self._watch = None
        self._file.close()
