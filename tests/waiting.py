"""Tests wait for a condition, with a deadline that only a test that fails reaches."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

DEADLINE_SECONDS = 180.0
PAUSE_SECONDS = 0.01

Found = TypeVar("Found")
Given = ParamSpec("Given")
What = str | Callable[[], str]  # it is asked for when it has failed


def wait_until(
    condition: Callable[[], Found],
    what: What,
    seconds: float = DEADLINE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> Found:
    """The condition's first true value; fails when the time is over."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, _late(what, seconds)
        time.sleep(pause)
    return value


async def until(
    condition: Callable[[], Found], what: What, seconds: float = DEADLINE_SECONDS / 2
) -> Found:
    """The same in a loop, before the deadline of the whole conversation."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, _late(what, seconds)
        await asyncio.sleep(PAUSE_SECONDS)
    return value


def in_a_loop(test: Callable[Given, Coroutine[Any, Any, None]]) -> Callable[Given, None]:
    """The test that runs this one in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Given.args, **named: Given.kwargs) -> None:
        asyncio.run(test(*args, **named))

    return run


def _late(what: What, seconds: float) -> str:
    return f"not within {seconds:g} s: {what() if callable(what) else what}"
