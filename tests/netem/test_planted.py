"""Whole runs whose queueing disciplines somebody removes or changes behind tcald: the certificate
says so."""

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
at 30s quit
"""
# The quit is so late because half of 64 probes in a row must be late without a doubt, which takes
# 6 s, and a machine with one slow processor may take many seconds until it has done something.

REPORTS = 2  # of probes, one about each second, before anything is done

Found = list[tuple[int, dict[str, Any]]]  # a process of the namespace, and what tc(8) says


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def tc(pid: int, *words: str, check: bool = False) -> str:
    """tc(8) in the network namespace of a process; '' if there is none any more."""
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=check).stdout


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


def disciplines(*kinds: str) -> Found:
    found: Found = []
    for pid in processes():
        shown = json.loads(tc(pid, "-j", "qdisc", "show") or "[]")
        found += [(pid, one) for one in shown if one["kind"] in kinds]
    return found


def spoil() -> int:
    """On one host tcald's tree goes, on the other one packets take 190 ms. How many of the latter:
    the machine is slow, so nothing is looked at twice."""
    there = disciplines("htb", "netem")
    gone, tree = next(one for one in there if one[1]["kind"] == "htb")
    tc(gone, "qdisc", "del", "dev", tree["dev"], "root", check=True)
    others = [(pid, one) for pid, one in there if one["kind"] == "netem" and pid != gone]
    for pid, one in others:
        place = ("dev", one["dev"], "parent", one["parent"], "handle", one["handle"])
        tc(pid, "qdisc", "change", *place, "netem", "delay", "190ms", check=True)
    return len(others)


def judged(place: Path, plant: Callable[[], int]) -> dict[str, Any]:
    """The verdict of a run in which this is done in its midst."""
    planted: list[int] = []

    def meanwhile() -> None:
        probes = place / "out/probes.jsonl"
        wait_until(lambda: probes.exists() and len(records(probes)) > REPORTS, "the run to go on")
        planted.append(plant())

    thread = threading.Thread(target=meanwhile)
    place.mkdir()
    thread.start()
    try:
        out = carried_out(TDL, place, hosts=2)
    finally:
        thread.join()
    assert planted and planted != [0], "there was nothing to spoil"
    verdict: dict[str, Any] = json.loads((out / "certificate.json").read_text())["verdict"]
    return verdict


def invalid(verdict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["what"]: one for one in verdict["reasons"] if one["state"] == "invalid"}


def test_disciplines_that_are_removed_or_changed_are_found(tmp_path: Path) -> None:
    """And nothing of the kind is said of the same run when nobody does it."""
    fine = judged(tmp_path / "fine", lambda: len(disciplines("netem")))
    assert invalid(fine) == {}
    assert fine["measured"]["pairs"] == 2
    spoiled = judged(tmp_path / "spoiled", spoil)
    assert spoiled["state"] == "invalid"
    found = invalid(spoiled)
    assert {found["path_early"]["subject"], found["path_late"]["subject"]} == {
        "a.0 to b.0",
        "b.0 to a.0",
    }
    late = found["path_late"]
    # 150 ms, less what the run's own large probes may wait for each other.
    assert 152_000_000 > late["figure_ns"] > 146_000_000 > late["threshold_ns"]
    assert late["at_ns"] > (REPORTS - 1) * 1_000_000_000
    assert "later than planned (40 ms) at the median" in late["text"]
