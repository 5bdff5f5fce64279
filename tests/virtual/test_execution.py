"""The guest's side of a command of `tstorm exec`: its streams, its end, and who gives it up. What
enters the instance is a script here, which starts the command where it is.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import MachineError
from runtime.json_schema import decoded, encoded
from runtime.system.process_scope import namespace
from runtime.virtual.execution import ExecRequest, Execution
from runtime.virtual.line import PARTS, CallMessage, is_part

Record = dict[str, Any]
KEEPER = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


class Caller:
    """Who asked for the command. Confirms output at once unless told not to."""

    def __init__(self, keeper: Path, *, confirms: bool = True) -> None:
        self._confirms = confirms
        self.heard: list[dict[str, Any]] = []
        self.taken = 0
        self._news = asyncio.Event()
        self.execution = Execution(str(keeper), self._hear, self._took)

    def _hear(self, said: Any) -> None:
        self.heard.append(dict(said))
        self._news.set()
        if self._confirms and is_part(said):
            self.execution.hear(CallMessage(1, took=True))

    def _took(self) -> None:
        self.taken += 1

    def say(self, **said: object) -> None:
        self.execution.hear(CallMessage(1, say=said))

    def type(self, data: bytes) -> None:
        self.say(**{"in": base64.b64encode(data).decode()})

    def output(self, name: str = "out") -> bytes:
        return b"".join(base64.b64decode(said[name]) for said in self.heard if name in said)

    async def sees(self, text: bytes) -> None:
        while text not in self.output():
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 60)

    async def run(
        self, *argv: str, terminal: tuple[int, int] | None = None
    ) -> list[dict[str, Any]]:
        """Until the command has ended: what was said that is no output."""
        request = ExecRequest("a.0", argv, {"WORD": "given"}, terminal)
        place = {
            "user_namespace": namespace("user"),
            "user": "",
            "directory": "/",
            "environment": {"PATH": os.environ["PATH"], "WORD": "of the instance"},
        }
        request = decoded(ExecRequest, encoded(request), "over the line")
        entry = (place, os.open(os.devnull, os.O_RDONLY))
        await asyncio.wait_for(self.execution.run(request, entry), 60)
        return [said for said in self.heard if not is_part(said)]


@pytest.fixture
def keeper(tmp_path: Path) -> Path:
    script = tmp_path / "keeper"
    script.write_text(KEEPER)
    script.chmod(0o755)
    return script


def descriptors() -> list[str]:
    gc.collect()  # what other tests have left
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def played(scene: Callable[[], Awaitable[None]]) -> None:
    before = descriptors()

    async def play() -> None:
        async with asyncio.timeout(60):  # a scene may wait for what a failed command never says
            await scene()

    asyncio.run(play())
    assert descriptors() == before


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)]
)
def test_a_command_says_what_it_says_and_how_it_ended(
    keeper: Path, script: str, status: int
) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        said = await caller.run("sh", "-c", f"echo $WORD; echo no >&2; {script}")
        assert (caller.output(), caller.output("err")) == (b"given\n", b"no\n")
        assert said == [{"started": True}, {"status": status}]

    played(scene)


def test_input_of_any_length_is_confirmed_part_by_part(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        running = asyncio.create_task(caller.run("cat"))
        data = os.urandom(30_000)
        for _ in range(20):
            caller.type(data)
        caller.say(eof=True)
        assert (await running)[-1] == {"status": 0}
        assert caller.output() == data * 20
        assert caller.taken == 20

    played(scene)


def test_no_more_output_is_under_way_than_was_taken(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper, confirms=False)
        running = asyncio.create_task(caller.run("yes"))
        most = PARTS - 1  # one is kept for stderr
        while sum(map(is_part, caller.heard)) < most:
            await asyncio.sleep(0.01)
        for _ in range(10):
            await asyncio.sleep(0.01)
            assert sum(map(is_part, caller.heard)) == most
        caller.execution.hear(CallMessage(1, over=True))
        await running

    played(scene)


def test_who_hangs_up_takes_the_command_along(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        running = asyncio.create_task(caller.run("sleep", "1000"))
        while {"started": True} not in caller.heard:
            await asyncio.sleep(0.01)
        caller.execution.hear(CallMessage(1, over=True))
        assert (await running)[-1] == {"status": 128 + signal.SIGKILL}

    played(scene)


def test_what_a_command_leaves_running_does_not_hold_up_its_end(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        said = await caller.run("sh", "-c", "sleep 30 & echo last; exit 4")
        assert (caller.output(), said[-1]) == (b"last\n", {"status": 4})

    played(scene)


def test_a_signal_reaches_the_command(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"
        running = asyncio.create_task(caller.run("sh", "-c", script))
        await caller.sees(b"ready")
        caller.say(signal=int(signal.SIGINT))
        assert (await running)[-1] == {"status": 5}
        assert caller.output().endswith(b"caught\n")

    played(scene)


def test_a_terminal_has_a_size_that_changes(keeper: Path) -> None:
    async def scene() -> None:
        caller = Caller(keeper)
        running = asyncio.create_task(caller.run("sh", terminal=(24, 80)))
        caller.type(b"stty size\n")
        await caller.sees(b"24 80")
        caller.say(size=[50, 132])
        caller.type(b"stty size; exit 6\n")
        await caller.sees(b"50 132")
        assert (await running)[-1] == {"status": 6}

    played(scene)


def test_a_program_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(MachineError, match="cannot start tstorm-ns"):
            await Caller(tmp_path / "nothing").run("true")

    played(scene)
