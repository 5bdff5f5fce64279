"""Whole runs whose queueing disciplines somebody removes behind tcald: the certificate says so."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.netem.test_hosts import carried_out
from tests.runtime.support import records
from tests.waiting import wait_until

pytestmark = pytest.mark.netem

TDL = """service a
service b
bridge s1
link a--s1 latency=20ms up=10Mb symmetric
link b--s1 latency=20ms up=10Mb symmetric
at 10s quit
"""

Found = list[tuple[int, dict[str, Any]]]  # a process of the namespace, and what tc(8) says


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def tc(pid: int, *words: str) -> str:
    """tc(8) in the network namespace of a process; '' if there is none any more."""
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def processes() -> Iterator[int]:
    """One of each network namespace."""
    seen: set[str] = set()
    for place in sorted(Path("/proc").iterdir()):
        if place.name.isdecimal():
            try:
                space = str((place / "ns/net").readlink())
            except OSError:
                continue  # it has ended
            if space not in seen:
                seen.add(space)
                yield int(place.name)


def disciplines(kind: str) -> Found:
    found: Found = []
    for pid in processes():
        shown = json.loads(tc(pid, "-j", "qdisc", "show") or "[]")
        found += [(pid, one) for one in shown if one["kind"] == kind]
    return found


def remove() -> int:
    """All of tcald's trees. How many."""
    trees = disciplines("htb")
    for pid, one in trees:
        tc(pid, "qdisc", "del", "dev", one["dev"], "root")
    return len(trees) if not disciplines("netem") else 0


def judged(place: Path, plant: Callable[[], int]) -> dict[str, Any]:
    """The verdict of a run in which this is done once it goes on."""
    planted: list[int] = []

    def meanwhile() -> None:
        events = place / "out/events.jsonl"
        wait_until(lambda: events.exists() and len(records(events)) > 1, "the run to begin")
        planted.append(plant())

    thread = threading.Thread(target=meanwhile)
    place.mkdir()
    thread.start()
    try:
        out = carried_out(TDL, place, hosts=2)
    finally:
        thread.join()
    assert planted != [0], "there was nothing to remove"
    verdict: dict[str, Any] = json.loads((out / "certificate.json").read_text())["verdict"]
    return verdict


def invalid(verdict: dict[str, Any]) -> set[str]:
    return {one["what"] for one in verdict["reasons"] if one["state"] == "invalid"}


def test_disciplines_that_are_removed_are_found(tmp_path: Path) -> None:
    """And nothing of the kind is said of the same run when nobody does it."""
    fine = judged(tmp_path / "fine", lambda: len(disciplines("netem")))
    assert invalid(fine) == set()
    assert fine["measured"]["pairs"] == 2
    gone = judged(tmp_path / "gone", remove)
    assert gone["state"] == "invalid"
    assert "path_early" in invalid(gone)
