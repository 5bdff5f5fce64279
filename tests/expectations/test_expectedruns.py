"""Commands of `expect run` while a run goes on: when they are run, how often, what is recorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from compiler.pipeline import compile_source
from compiler.plan.parts.expectations import RUN, PlannedExpectation
from runtime.backend.instance import Instance, Ran
from runtime.driver import expectedruns
from runtime.driver.eventbook import EventBook
from runtime.driver.expectedruns import ExpectedRuns
from runtime.errors import RunError
from runtime.options import DEFAULTS, RunOptions
from runtime.schedule import Schedule
from tests.waiting import until

MS = 1_000_000
TEXT = "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
PLAN = TEXT + "at 60s quit\n"
Answer = Callable[[Sequence[str]], Ran]


@dataclass
class Commands:
    answer: Answer
    ran: list[tuple[str, ...]] = field(default_factory=list)
    takes_s: float = 0.0

    def resolved(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple(argv)

    async def run(self, incarnation: object, argv: Sequence[str], *, seconds: float) -> Ran:
        self.ran.append(tuple(argv))
        await asyncio.sleep(min(self.takes_s, seconds))
        return Ran(None, ("half of it",)) if self.takes_s > seconds else self.answer(argv)


@dataclass
class FakeInstance:
    runner: Commands | None
    present: object | None = "a life"
    paused: bool = False


class Scene:
    """A run that has just begun."""

    def __init__(
        self, instance: FakeInstance, *wanted: PlannedExpectation, options: RunOptions = DEFAULTS
    ):
        plan = compile_source(PLAN).plan
        plan.__dict__["expectations"] = wanted
        self.records: list[Mapping[str, Any]] = []
        book = EventBook(self.records.append)
        book.begin(time.monotonic_ns())
        instances = cast("Mapping[str, Instance]", {"a.0": instance, "b.0": instance})
        self.runs = ExpectedRuns(plan, Schedule(plan, options), instances, book)

    def carry_out(self, enough: int) -> list[Mapping[str, Any]]:
        """Until there are so many records."""

        async def whole() -> None:
            self.runs.begin()
            await until(lambda: len(self.records) >= enough, "records of commands")
            await self.runs.end()

        asyncio.run(whole())
        return self.records


def command(from_ms: int, to_ms: int, *, eventually: bool = False) -> PlannedExpectation:
    times = {"from_ns": from_ms * MS, "to_ns": to_ms * MS}
    words = {"text": "expect run", "kind": RUN, "argv": ("probe", "x")}
    return PlannedExpectation(line=1, nodes=(1,), eventually=eventually, **times, **words)  # type: ignore[arg-type]


def test_once_at_the_beginning_of_its_interval() -> None:
    commands = Commands(lambda _argv: Ran(3, ("one", "two")))
    (record,) = Scene(FakeInstance(commands), command(50, 10_000)).carry_out(1)
    assert commands.ran == [("probe", "x")]
    assert record["applied_ns"] >= 50 * MS
    said = {"kind": "expect_run", "target": "b.0", "expectation": 0, "tries": 1}
    assert said.items() <= record.items()
    assert (record["status"], record["output"]) == (3, ["one", "two"])


def test_again_until_it_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectedruns, "PAUSE_NS", 20 * MS)
    answers = iter([Ran(1), Ran(1), Ran(0)])
    commands = Commands(lambda _argv: next(answers))
    (record,) = Scene(FakeInstance(commands), command(0, 30_000, eventually=True)).carry_out(1)
    assert (record["status"], record["tries"]) == (0, 3)
    assert record["applied_ns"] >= 40 * MS


def test_not_after_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectedruns, "PAUSE_NS", 20 * MS)
    commands = Commands(lambda _argv: Ran(1))
    (record,) = Scene(FakeInstance(commands), command(0, 100, eventually=True)).carry_out(1)
    assert record["status"] == 1
    assert record["tries"] == len(commands.ran) > 1


def test_what_cannot_be_run() -> None:
    def refused(_argv: Sequence[str]) -> Ran:
        raise RunError("the instance is dead")

    for instance, error in (
        (FakeInstance(None), expectedruns.ELSEWHERE),
        (FakeInstance(Commands(refused)), "could not be run: the instance is dead"),
        (
            FakeInstance(Commands(refused), None),
            "could not be run, since the instance was not there",
        ),
        (FakeInstance(Commands(lambda _: Ran(0), takes_s=60)), "took longer than "),
    ):
        (record,) = Scene(instance, command(0, 150)).carry_out(1)
        assert record["error"].startswith(error[:20])
        assert record.get("unavailable", False) == (instance.runner is None)


def test_what_the_end_of_the_run_meets() -> None:
    """One that goes on is recorded, one whose time has not come is not."""
    commands = Commands(lambda _argv: Ran(0), takes_s=60)
    scene = Scene(FakeInstance(commands), command(0, 50_000), command(40_000, 50_000))

    async def whole() -> None:
        scene.runs.begin()
        await until(lambda: bool(commands.ran), "the first command")
        await scene.runs.end()

    asyncio.run(whole())
    (record,) = scene.records
    assert (record["expectation"], record["unavailable"]) == (0, True)
    late = Scene(FakeInstance(commands), command(40_000, 50_000), options=RunOptions(until_ns=MS))
    assert late.carry_out(0) == []
