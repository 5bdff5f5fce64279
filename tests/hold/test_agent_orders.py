"""An agent's orders to `tstorm-hold run`: programs start, end and come back with the steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from runtime.agent.process.heldprograms import HeldPrograms, Say
from runtime.agent.process.orders import OrderError
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.hold.conftest import StartHeld
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

TEXT = (
    "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    "at 1s a crash\nat 1s b crash\nat 2s a join\nat 3s a leave\nat 4s quit\n"
)


def schedule(**options: Any) -> Schedule:
    return Schedule(
        compile_source("at 0s a join\nat 0s b join\n" + TEXT).plan, RunOptions(**options)
    )


def lives_to(said: list[Any]) -> Say:
    return lambda message: said.append(message) if message["say"] == "life" else None


def test_a_program_lives_as_its_steps_say(held: StartHeld, tmp_path: Path) -> None:
    made = held("trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done")
    said: list[Any] = []  # and not what cannot be read: these containers have no /tstorm
    programs = HeldPrograms({"a.0": 0}, time.monotonic_ns, lambda _at: 7, lives_to(said))
    timeline = schedule()
    programs.carry_out(timeline, 0)
    assert said == []  # nobody has told of a process
    with pytest.raises(OrderError, match="of node 1 is no tstorm-hold that takes orders"):
        programs.know({0: made.pid, 1: made.process.pid})
    programs.carry_out(timeline, 0)
    assert said == []
    programs.know({0: made.pid})
    for step, names in enumerate(
        (["started"], ["ended", "crashed"], ["started"], ["ended", "left"])
    ):
        programs.carry_out(timeline, step)
        wait_until(lambda: made.names()[-len(names) :] == names, f"{names}")  # noqa: B023
        wait_until(lambda: len(made.said().split()) == 1 + (step > 1), "the program")  # noqa: B023
    assert [(life["step"], life["what"], life["status"]) for life in said] == [
        (0, "join", ""),
        (1, "crash", ""),
        (2, "join", ""),
        (3, "leave", ""),
    ]
    assert {(life["node"], life["elapsed_ns"]) for life in said} == {(0, 7)}
    programs.close()


def test_who_is_there_already_joins_at_the_start(held: StartHeld) -> None:
    made = held("echo up; exec sleep 1000")
    said: list[Any] = []  # and not what cannot be read: these containers have no /tstorm
    programs = HeldPrograms({"b.0": 1}, time.monotonic_ns, lambda _at: 0, lives_to(said))
    programs.know({1: made.pid})
    programs.carry_out(schedule(start_at_ns=500_000_000), 0)
    made.wait_for("held", "started")
    assert [(life["node"], life["what"]) for life in said] == [(1, "join")]
    made.close()
    programs.carry_out(schedule(), 1)
    assert said[-1]["status"] == "its tstorm-hold takes no orders any more"
    programs.close()
