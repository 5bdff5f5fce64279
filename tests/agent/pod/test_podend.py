"""The end of an instance whose program is not known: real processes, said to be of a pod."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from runtime.agent.pod import podend, podprocesses
from runtime.agent.pod.podprocesses import Census, Member
from tests.waiting import wait_until

UID = "0a1b2c3d-0000-4000-8000-00000000000f"
SECONDS = 30.0


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the pod; a look at the pod takes longer than a crash has."""
    process = subprocess.Popen(["sleep", "1000"])

    def look(wanted: Collection[str]) -> dict[str, list[Member]]:
        time.sleep(0.01)
        return {
            uid: [] if process.poll() else [Member(process.pid, 1, "net:[7]")] for uid in wanted
        }

    monkeypatch.setattr(podprocesses, "members", look)
    monkeypatch.setattr(podend, "pod_of_process", lambda _pid, _pods: UID)
    monkeypatch.setattr(podend, "KILL_SECONDS", 0.0)
    yield process
    process.kill()
    process.wait()


def test_a_crash_kills_however_long_a_look_takes(child: subprocess.Popen[bytes]) -> None:
    asyncio.run(podend.crash(UID, Census(lambda: {UID})))
    assert child.wait(SECONDS) == -signal.SIGKILL


def test_a_pod_without_processes_is_said_to_have_none(
    child: subprocess.Popen[bytes],
) -> None:
    child.kill()
    child.wait(SECONDS)
    assert asyncio.run(podend.crash(UID, Census(lambda: {UID}))) == "nothing of it was running"


def state(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[0]


def test_a_pause_stops_and_a_resume_lets_go_on(child: subprocess.Popen[bytes]) -> None:
    pods = Census(lambda: {UID})
    assert asyncio.run(podend.signal_all(UID, pods, signal.SIGSTOP)) == ""
    wait_until(lambda: state(child) == "T", "its stop")
    assert asyncio.run(podend.signal_all(UID, Census(lambda: {UID}), signal.SIGCONT)) == ""
    wait_until(lambda: state(child) in "SR", "its going on")


def test_who_is_paused_can_leave(child: subprocess.Popen[bytes]) -> None:
    asyncio.run(podend.signal_all(UID, Census(lambda: {UID}), signal.SIGSTOP))
    wait_until(lambda: state(child) == "T", "its stop")
    asyncio.run(podend.leave(UID, Census(lambda: {UID})))
    assert child.wait(SECONDS) == -signal.SIGTERM


def test_nothing_is_paused_where_nothing_runs(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait(SECONDS)
    assert (
        asyncio.run(podend.signal_all(UID, Census(lambda: {UID}), signal.SIGSTOP))
        == "nothing of it was running"
    )
