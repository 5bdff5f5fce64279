"""Runs the commands of `expect run` while the run goes on, and records what became of each.

A command is begun at the beginning of its interval, once; with `within` again and again, PAUSE
after the last one, until it ends with 0 or the interval is over. One record in events.jsonl
(`expect_run`) says how the last one ended; runtime.expectations.expect_exit judges it. One of which
nobody can say that (the API server of a cluster is away) proves nothing, and is recorded as such.
Commands of test templates (`expect drivers`) are scheduled by runtime.driver.templateruns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.plan.parts.expectations import RUN, PlannedExpectation
from compiler.plan.reader import Plan
from runtime import say
from runtime.backend.instance import Instance, UnreachableError
from runtime.driver.eventbook import EventBook, sleep_until
from runtime.driver.templateruns import templates_of
from runtime.errors import RunError
from runtime.rundir.runfiles import EXPECT_RUN
from runtime.schedule import Schedule

PAUSE_NS = 500_000_000
LONGEST_NS = 10_000_000_000  # an attempt, where its interval does not say
LEAST_NS = 100_000_000  # at the end of an interval, one may take so long at least
ELSEWHERE = "nobody runs commands in instances of this run"


@dataclass(slots=True)
class _Attempt:
    """How one ended: with `status`, or with `error` for none."""

    status: int | None = None
    error: str = ""
    output: tuple[str, ...] = ()
    reason: str = ""
    unavailable: bool = False

    def to_record(self) -> dict[str, Any]:
        how = {"error": self.error} if self.status is None else {"status": self.status}
        more: dict[str, Any] = {"unavailable": True} if self.unavailable else {}
        more |= {"reason": self.reason} if self.reason else {}
        return {**how, **more, "output": list(self.output)}


class ExpectedRuns:
    """`begin` after time 0 is known; `end` ends and records what still goes on."""

    def __init__(
        self, plan: Plan, schedule: Schedule, instances: Mapping[str, Instance], book: EventBook
    ) -> None:
        self._nodes = plan.topology.nodes
        self._schedule = schedule
        self._instances = instances
        self._book = book
        self._wanted = [
            (number, one)
            for number, one in enumerate(plan.expectations)
            if one.kind == RUN and schedule.clock.start_at_ns <= one.from_ns <= schedule.end_ns
        ]
        self._templates = templates_of(plan, schedule, instances, book)
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._carry_out(*one)) for one in self._wanted]
        self._tasks += [loop.create_task(one.carry_out()) for one in self._templates]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, number: int, expectation: PlannedExpectation) -> None:
        """`number`: its position in the plan."""
        last, tries = _Attempt(error="the run ended before it did", unavailable=True), 0
        name = self._nodes[expectation.nodes[0]].name
        await sleep_until(self._at_ns(expectation.from_ns))
        last_ns = self._at_ns(expectation.to_ns)
        ended_ns = time.monotonic_ns()
        try:
            while True:
                tries += 1
                last = await self._try(expectation, name, last_ns)
                ended_ns = time.monotonic_ns()
                again_ns = ended_ns + PAUSE_NS
                over = last.status == 0 or not expectation.eventually
                if over or again_ns > last_ns:
                    return
                await sleep_until(again_ns)
        finally:
            record = {"kind": EXPECT_RUN, "target": name, "expectation": number, "tries": tries}
            self._book.note({**record, **last.to_record()}, applied_ns=ended_ns)

    def _at_ns(self, plan_ns: int) -> int:
        """On CLOCK_MONOTONIC."""
        return self._book.t0_ns + self._schedule.clock.due(plan_ns)

    async def _try(self, expectation: PlannedExpectation, name: str, last_ns: int) -> _Attempt:
        instance = self._instances[name]
        runner, incarnation = instance.runner, instance.present
        if runner is None:
            return _Attempt(error=ELSEWHERE, unavailable=True)
        if incarnation is None:
            return _Attempt(error="could not be run, since the instance was not there")
        seconds = self._seconds(expectation, last_ns)
        argv = runner.resolved(expectation.argv)
        try:
            ran = await runner.run(incarnation, argv, seconds=seconds)
        except UnreachableError as error:
            return _Attempt(error=error.message, unavailable=True)
        except RunError as error:
            return _Attempt(error=f"could not be run: {error.message}")
        stopped = ", in which the instance was paused" if instance.paused else ""
        late = f"took longer than {say.digits(seconds)} s{stopped}" if ran.status is None else ""
        return _Attempt(ran.status, late, ran.lines, ran.reason)

    @staticmethod
    def _seconds(expectation: PlannedExpectation, last_ns: int) -> float:
        """How long an attempt may take."""
        left_ns = last_ns - time.monotonic_ns()
        if expectation.eventually:
            return max(left_ns, LEAST_NS) / 1e9
        return (left_ns if left_ns > LEAST_NS else LONGEST_NS) / 1e9
