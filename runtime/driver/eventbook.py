"""Writes down what happens, with its time since time 0, also what happens before that is known.

Times are given as ns of CLOCK_MONOTONIC. What is before time 0 waits for it and then has a negative
time; of a run that never comes to it, times count from when the book is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from runtime.backend.base import Log


async def sleep_until(at_ns: int) -> None:
    """Returns at or after the moment, not before."""
    while (left := at_ns - time.monotonic_ns()) > 0:
        await asyncio.sleep(left / 1e9)


class EventBook:
    """`t0_ns` is 0 before it is known."""

    def __init__(self, log: Log) -> None:
        self.t0_ns = 0
        self._log = log
        self._early: list[tuple[dict[str, Any], dict[str, int]]] = []

    def elapsed(self) -> int:
        """Since time 0; 0 before it."""
        return time.monotonic_ns() - self.t0_ns if self.t0_ns else 0

    def since_start(self, at_ns: int) -> int | None:
        """A moment since time 0; None before that is known."""
        return at_ns - self.t0_ns if self.t0_ns else None

    def note(self, record: Mapping[str, Any], **times_ns: int) -> None:
        """With `applied_ns` (now, unless it is one of the times) and these other times."""
        moments = {"applied_ns": time.monotonic_ns(), **times_ns}
        if self.t0_ns:
            self._write(record, moments)
        else:
            self._early.append((dict(record), moments))

    def begin(self, t0_ns: int) -> None:
        self.t0_ns = t0_ns
        early, self._early = self._early, []
        for record, moments in early:
            self._write(record, moments)

    def close(self) -> None:
        if not self.t0_ns and self._early:
            self.begin(time.monotonic_ns())

    def _write(self, record: Mapping[str, Any], moments: Mapping[str, int]) -> None:
        relative = {name: at_ns - self.t0_ns for name, at_ns in moments.items()}
        self._log({**record, **relative})
