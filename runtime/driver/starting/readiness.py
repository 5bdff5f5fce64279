"""Follows programs until they are ready, as `ready=` of their services says.

A check is tried at once, then after pauses that grow from PAUSE_SECONDS to LONGEST_PAUSE_SECONDS. A
program that has failed meanwhile will not be ready; one that has ended well may have left others
behind that will.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from compiler.plan.types import NO_CHECK, TCP_CHECK
from runtime.backend.instance import Incarnation, Instance
from runtime.driver.eventbook import EventBook
from runtime.errors import RunError

PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
GROWTH = 1.5
ATTEMPT_SECONDS = 10.0  # a check that takes longer is given up and tried again


def check_of(instance: Instance) -> tuple[str, ...]:
    """What is to be checked; empty if the instance is ready when its program runs."""
    commands = instance.commands
    return () if commands is None or commands.ready == (NO_CHECK,) else commands.ready


class Readiness:
    def __init__(self, book: EventBook) -> None:
        self._book = book

    async def wait(self, instance: Instance, incarnation: Incarnation) -> str:
        """Until the program of this life is ready, or will not be, which is noted. Returns why it
        is not; '' also if the timeline has ended the life meanwhile."""
        began_ns, commands = time.monotonic_ns(), instance.commands
        assert commands is not None
        why = await self._until_ready(instance, incarnation, began_ns, commands.ready_timeout_ns)
        if instance.present is not incarnation or instance.dead:
            return ""
        now_ns = time.monotonic_ns()
        record = {"target": instance.node.name, "took_ns": now_ns - began_ns}
        if why:
            self._book.note({**record, "kind": "not_ready", "reason": why}, applied_ns=now_ns)
        else:
            moments = {"applied_ns": now_ns, "ready_ns": now_ns}
            self._book.note({**record, "kind": "ready"}, **moments)
        return why

    async def _until_ready(
        self, instance: Instance, incarnation: Incarnation, began_ns: int, timeout_ns: int
    ) -> str:
        check, pause_s, why = check_of(instance), PAUSE_SECONDS, ""
        while instance.present is incarnation and not instance.dead:
            left_s = (began_ns + timeout_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return f"not within {timeout_ns / 1e9:.3g} s (ready-timeout=): {why}"
            tried = await _try(instance, incarnation, check, min(left_s, ATTEMPT_SECONDS))
            if not tried.why:
                return ""
            if instance.failure:
                return instance.failure
            if tried.ended or left_s >= ATTEMPT_SECONDS or not why:  # one cut short says less
                why = tried.why
            await asyncio.sleep(min(pause_s, max(left_s, 0)))
            pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_SECONDS)
        return ""


class _Tried(NamedTuple):
    """Why an attempt did not succeed, '' if it did; whether it came to an end by itself."""

    why: str
    ended: bool = True


async def _try(
    instance: Instance, incarnation: Incarnation, check: tuple[str, ...], seconds: float
) -> _Tried:
    commands = instance.commands
    assert commands is not None
    try:
        if len(check) == 1 and check[0].startswith(TCP_CHECK):
            return _Tried(
                await commands.connect(incarnation, int(check[0].removeprefix(TCP_CHECK)))
            )
        ran = await commands.run(incarnation, check, logged=False, seconds=seconds)
    except RunError as error:
        return _Tried(error.message)
    if ran.status == 0:
        return _Tried("")
    said = f": {ran.said}" if ran.said else ""
    if ran.status is None:
        return _Tried(f"the check {check[0]} did not end in {seconds:.3g} s{said}", ended=False)
    return _Tried(f"the check {check[0]} ended with {ran.status}{said}")
