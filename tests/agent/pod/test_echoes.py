"""Echoes while a run goes on: what the agent tells of them, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from runtime.agent.pod import pod_echoes
from runtime.agent.pod.pod_echoes import Echoes
from runtime.agent.process.orders import EchoesOrder, EchoOrder, EchoProbe
from runtime.coordinator import says
from runtime.coordinator.says import AgentNotice
from runtime.errors import RunError
from runtime.json_schema import decoded
from tests.waiting import until

LINES = """{"t_ns":1000,"seq":0,"rtt_us":20.5}
{"t_ns":2000,"seq":1,"lost":true}
{"summary":true,"sent":2}
nonsense
"""
GOOD = [3, 1, "10.0.0.2", 100, 10**8, 5 * 10**9, 0]


def order(pair: int) -> EchoOrder:
    return EchoOrder(pair, 1, "10.0.0.2", 2, 10**8, 10**9, 0)


async def said(script: str, enough: Callable[[list[says.Message]], bool]) -> list[Any]:
    """What is told where each tprobe is this script of a shell."""
    found: list[says.Message] = []
    started = []

    async def start(_network: int, _probe: EchoProbe) -> asyncio.subprocess.Process:
        if not script:
            raise RunError("the network of process 7 is gone")
        pipe = subprocess.PIPE
        started.append(
            await asyncio.create_subprocess_exec("sh", "-c", script, stdout=pipe, stderr=pipe)
        )
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_echoes, "start", start)
        patch.setattr(pod_echoes, "SAY_SECONDS", 0.01)
        running = Echoes(found.append, lambda at_ns: at_ns - 500).run([(7, order(3))])
        task = asyncio.ensure_future(running)
        await until(lambda: enough(found), "what is told")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert all(process.returncode is not None for process in started)
    return list(found)


def test_what_becomes_of_them_is_told_and_nobody_is_left() -> None:
    found = asyncio.run(said(f"printf '%s' '{LINES}'; exec sleep 600", bool))
    assert [row for message in found for row in message.rows] == [
        (3, 500, 20500),
        (3, 1500, None),
    ]
    sent = [json.loads(json.dumps(says.write(message))) for message in found]
    assert [says.read(message) for message in sent] == found


@pytest.mark.parametrize(
    ("script", "words"), [("echo no route >&2", "no route"), ("", "process 7 is gone")]
)
def test_what_cannot_be_sent_is_a_notice(script: str, words: str) -> None:
    [notice] = asyncio.run(said(script, bool))
    assert isinstance(notice, AgentNotice)
    assert words in notice.text


def test_a_tprobe_that_is_killed_is_a_notice_although_it_has_told() -> None:
    told = asyncio.run(said(f"printf '%s' '{LINES}'; kill -9 $$", _has_notice))
    [notice] = [message for message in told if isinstance(message, AgentNotice)]
    assert notice.text.endswith("tprobe has ended with status -9, without a word")


def _has_notice(found: list[says.Message]) -> bool:
    return any(isinstance(message, AgentNotice) for message in found)


def test_an_order_that_makes_no_sense_is_refused() -> None:
    (found,) = decoded(EchoesOrder, {"echoes": [GOOD]}, "echo").echoes
    assert (found.pair, found.probe) == (3, EchoProbe(1, "10.0.0.2", 100, 10**8, 5 * 10**9))
    for at, value in enumerate([-1, -2, "x", 0, 0, 10**13, -1]):
        with pytest.raises(RunError, match=rf"echoes\[0\]\[{at}\] must be"):
            decoded(EchoesOrder, {"echoes": [[*GOOD[:at], value, *GOOD[at + 1 :]]]}, "echo")
    with pytest.raises(RunError, match="a list of 7"):
        decoded(EchoesOrder, {"echoes": [GOOD[:6]]}, "echo")


@pytest.mark.parametrize("rows", [None, [[1, 2]], [[-1, 2, 3]], [[1, 2, -3]], [["1", 2, None]]])
def test_an_agent_that_tells_nonsense_is_not_believed(rows: object) -> None:
    with pytest.raises(RunError, match="wrong 'rows'"):
        says.read({"say": "echoes", "rows": rows})
