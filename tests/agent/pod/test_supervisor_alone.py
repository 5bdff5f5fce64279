"""A supervisor without a coordinator, and a run whose agent ends by itself."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from runtime.agent.pod import supervisor
from runtime.agent.pod.supervisor import Supervisor
from runtime.agent.pod.supervisor_settings import Settings
from tests.waiting import until


class Run:
    """Its agent has ended when it was asked about so often. `ends`: whether it had at each end."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.ends: list[bool] = []

    @property
    def agent_ended(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    async def end(self) -> str:
        self.ends.append(self.looks < 0)
        return ""


def abandoned(place: Path, run: Run) -> None:
    (place / "key").write_bytes(bytes(32))
    settings = Settings("n0", "127.0.0.1", "", -1, key=place / "key", scratch=place)

    async def play() -> None:
        alone = Supervisor(settings, io.BytesIO(), 0.0)
        alone._run = run  # type: ignore[assignment]
        watching = asyncio.create_task(alone._watch())
        await until(lambda: run.ends, "the end of the run")
        watching.cancel()

    asyncio.run(play())


def test_an_agent_has_time_to_end_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(supervisor, "LEAVE_SECONDS", 1e6)
    run = Run(looks=20)
    abandoned(tmp_path, run)
    assert run.ends == [True]


def test_an_agent_that_does_not_end_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(supervisor, "LEAVE_SECONDS", 0.01)
    run = Run(looks=1_000_000)
    abandoned(tmp_path, run)
    assert run.ends == [False]
