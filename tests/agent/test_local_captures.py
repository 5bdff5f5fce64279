"""A real agent that a program beside it asks for packets (runtime/agent/process/local_captures.py),
with a stand-in for its datapath."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from runtime.agent.process.local_captures import SOCKET
from runtime.errors import RunError
from runtime.rpc import control
from tests.agent.stage import Stage, act
from tests.waiting import until

TEXT = (
    "service a img=x\nservice b img=x\nservice c img=x\nbridge s\nbridge t\n"
    "link a--s latency=2 bw=100Mb\nlink b--s latency=3 bw=50Mb\nlink c--t latency=1\n"
    "link s--t latency=1\nat 0s s--t leave\nat 1000s quit\n"
)
PACKETS = b"what the datapath writes"


async def ask(folder: Path, path: str, **more: Any) -> tuple[dict[str, Any], bytes]:
    """The answer and all that comes through the pipe."""
    request = {"ask": "capture", "path": path, "probes": False, **more}
    answer, pipe = await asyncio.to_thread(control.ask, folder / SOCKET, request)
    if pipe is None:
        return answer, b""
    with os.fdopen(pipe, "rb") as file:
        return answer, await asyncio.to_thread(file.read)


def names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


async def refused(folder: Path, path: str, **more: Any) -> str:
    with pytest.raises(RunError) as caught:
        await ask(folder, path, **more)
    return caught.value.message


def test_a_program_beside_it_gets_the_packets_of_its_own_paths(tmp_path: Path) -> None:
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        folder.mkdir()

    async def play(stage: Stage) -> None:
        for datapath, folder in zip(stage.datapaths, folders, strict=True):
            datapath.pipes, datapath.captured = folder, PACKETS
        await stage.ready()
        here, there = folders[stage.placement[0]], folders[1 - stage.placement[0]]
        assert "has not begun yet" in await refused(here, "a.0--b.0")
        await stage.bind(0, {0: 0, 1: 1, 2: 2})
        await stage.coordinator.start()
        await until(lambda: stage.applied(0), "the first step")

        answer, packets = await ask(here, "a.0->b.0", probes=True)
        assert answer == {"interfaces": ["a.0->b.0/offered", "a.0->b.0"], "left_out": []}
        assert packets == PACKETS
        engine = stage.datapaths[stage.placement[0]]
        [line] = [one for one in engine.commands if one.startswith("capture ")]
        assert line.split(" ")[2:] == [
            "pipe=1",
            "probes=1",
            "offered:0>1=a.0->b.0/offered",
            "0>1=a.0->b.0",
        ]
        assert names(here) == [SOCKET], "the pipe has a name only until it is open"

        if here != there:
            assert await ask(there, "a.0->b.0") == ({"interfaces": [], "left_out": []}, b"")
        assert "there is no path at a.0--c.0 now" in await refused(here, "a.0--c.0")
        assert "one queue, and 'a.0--s' is none" in await refused(here, "a.0--s")
        assert "cannot answer 'stop'" in await refused(here, "a.0--b.0", ask="stop")
        engine.refuse = "capture"
        assert "cannot capture at a.0--b.0: pktd refused" in await refused(here, "a.0--b.0")
        assert names(here) == [SOCKET]

    other = {number: {"captures": folder} for number, folder in enumerate(folders)}
    act(tmp_path, TEXT, 2, play, other=other)


def test_the_agent_that_takes_its_place_is_asked_there(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()

    async def play(stage: Stage) -> None:
        [datapath] = stage.datapaths
        datapath.pipes, datapath.captured = folder, PACKETS
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2})
        await stage.coordinator.start()
        os.kill(stage.processes[0].pid, signal.SIGKILL)
        await stage.ended(0)
        assert "does not answer" in await refused(folder, "a.0--b.0")
        stage.again(0)
        assert await stage.coordinator.rejoin(0, lambda: {"ports": [], "applied": 1})
        _, packets = await ask(folder, "a.0--b.0")
        assert packets == PACKETS
        await stage.coordinator.stop()
        assert await stage.ended(0) == 0
        assert names(folder) == []

    act(tmp_path, TEXT, 1, play, other={0: {"captures": folder}})
