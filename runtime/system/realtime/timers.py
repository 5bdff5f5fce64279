"""Calls at a moment of CLOCK_MONOTONIC, and never before it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def call_at(at_ns: int, action: Callable[[], None]) -> None:
    """At or after the moment. The loop's own timers are early by its clock's resolution at most,
    which is several ms in virtual time."""
    if time.monotonic_ns() >= at_ns:
        action()
    else:
        asyncio.get_running_loop().call_at(at_ns / 1e9, call_at, at_ns, action)
