"""Whole runs whose queueing disciplines somebody removes or changes behind tcald: the certificate
says so."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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

Found = list[tuple[Path, dict[str, Any]]]  # a network namespace, and what tc(8) says


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def tc(space: Path, *words: str) -> str:
    """tc(8) in a network namespace."""
    argv = ["nsenter", f"--net={space}", "tc", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stderr)
    return done.stdout


@contextmanager
def namespaces() -> Iterator[list[Path]]:
    """All network namespaces, held open: the process that each was found by may end meanwhile."""
    held: dict[str, int] = {}
    try:
        for place in Path("/proc").iterdir():
            if place.name.isdecimal():
                try:
                    name = str((place / "ns/net").readlink())
                    if name not in held:
                        held[name] = os.open(place / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
                except OSError:
                    continue  # it has ended
        yield [Path(f"/proc/{os.getpid()}/fd/{held[name]}") for name in sorted(held)]
    finally:
        for fd in held.values():
            os.close(fd)


def disciplines(spaces: list[Path], *kinds: str) -> Found:
    found: Found = []
    for space in spaces:
        shown = json.loads(tc(space, "-j", "qdisc", "show") or "[]")
        found += [(space, one) for one in shown if one["kind"] in kinds]
    return found


def spoil() -> int:
    """On one host tcald's tree goes, on the other one packets take 190 ms. How many of the latter:
    the machine is slow, so nothing is looked at twice."""
    with namespaces() as spaces:
        there = disciplines(spaces, "htb", "netem")
        gone, tree = next(one for one in there if one[1]["kind"] == "htb")
        tc(gone, "qdisc", "del", "dev", tree["dev"], "root")
        others = [(where, one) for where, one in there if one["kind"] == "netem" and where != gone]
        for where, one in others:
            place = ("dev", one["dev"], "parent", one["parent"], "handle", one["handle"])
            tc(where, "qdisc", "change", *place, "netem", "delay", "190ms")
        return len(others)


def judged(place: Path) -> dict[str, Any]:
    """The verdict of a run that is spoiled in its midst."""
    planted: list[int] = []

    def meanwhile() -> None:
        probes = place / "out/probes.jsonl"
        wait_until(lambda: probes.exists() and len(records(probes)) > REPORTS, "the run to go on")
        planted.append(spoil())

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
    """Nothing of the kind is said of a run to which nobody does it: test_hosts.py."""
    spoiled = judged(tmp_path / "spoiled")
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
