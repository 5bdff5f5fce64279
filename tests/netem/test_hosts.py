"""Whole runs over hosts whose datapath is the kernel's, under a kernel that has netem."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from runtime.launch.launch import run
from runtime.options import COMPLETED, RunOptions, RunPlaces
from tests.runtime.support import ROOT, records

pytestmark = pytest.mark.netem


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def carried_out(text: str, place: Path, **options: Any) -> Path:
    """The run directory of an experiment over hosts with tcald."""
    plan = compile_source(text, filename="experiment.tdl", seed=None).plan
    # The machine has one processor, and timers that are late: clocks are known less well there.
    wanted = RunOptions(datapath="kernel", clock_budget_ns=100_000_000, **options)
    result = run(plan, wanted, RunPlaces(place / "out", source_directory=str(place)))
    said = (place / "out/driver.log").read_text()
    assert result.outcome == COMPLETED, f"{result.message}\n{said}"
    assert said == ""
    return place / "out"


def test_packets_between_hosts_take_the_planned_time(tmp_path: Path) -> None:
    """Also after a change, and with a peer that crashes and comes back. Pings end long before
    devices do, with which what was counted last would go."""
    out = carried_out(
        'service server replicas=2\nservice client expect=any exec="ping -i 0.1 -c 50 server.0"\n'
        "bridge s1\nlink server--s1 latency=20 up=10Mb down=10Mb\nlink client--s1 latency=20\n"
        "at 2s server.0 crash\nat 3s server.0 join\nat 4s client--s1 set latency=60\nat 9s quit\n",
        tmp_path,
        hosts=2,
    )
    manifest = json.loads((out / "manifest.json").read_text())
    assert [host["datapath"] for host in manifest["hosts"]] == ["tcald", "tcald"]
    assert manifest["datapath"] == "kernel"
    text = (out / "logs/client.0.log").read_text()
    times = [float(word.split("=")[1]) for word in text.split() if word.startswith("time=")]
    assert len(times) >= 20
    assert min(times) >= 79.0
    assert min(times[-5:]) >= 159.0
    planned = [r for r in records(out / "events.jsonl") if "seq" in r]
    assert all(record["network_ns"] >= record["due_ns"] for record in planned)
    pairs = json.loads((out / "summary.json").read_text())["pairs"]
    there = next(p for p in pairs if (p["src"], p["dst"]) == ("client.0", "server.0"))
    back = next(p for p in pairs if (p["src"], p["dst"]) == ("server.0", "client.0"))
    # Of the pings, and of probes, which are not as many in both directions.
    assert there["offered_pkts"] >= 50
    assert back["offered_pkts"] >= len(times)
    verdict = json.loads((out / "certificate.json").read_text())["verdict"]
    assert verdict["measured"]["pairs"] >= 2
    assert [one for one in verdict["reasons"] if one["state"] == "invalid"] == []


def test_an_example_runs_over_four_hosts(tmp_path: Path) -> None:
    text = (ROOT / "examples/quickstart.tdl").read_text()
    out = carried_out(text, tmp_path, hosts=4, until_ns=3_000_000_000)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["events"]["applied"] == summary["events"]["planned"]
    assert [host["name"] for host in summary["hosts"]] == ["host0", "host1", "host2", "host3"]


def test_frames_made_by_hand_take_the_planned_time(tmp_path: Path) -> None:
    """Round the queueing disciplines of eth0, in frames to all: tcald is not attached there."""
    script = f"{sys.executable} {ROOT / 'tests/runtime/hosts/evade.py'}"
    out = carried_out(
        "start when ready\nquit when client exits\n"
        f'service server img=x replicas=2 ready=tcp:9 exec="{script} listen"\n'
        f'service client img=x exec="{script} bypass,to-all,plain,end 1 10.77.0.1 10.77.0.2"\n'
        "bridge s1\nlink server--s1 latency=30\nlink client--s1 latency=30\nat 60s quit\n",
        tmp_path,
        hosts=2,
    )
    assert (out / "logs/client.0.log").read_text().endswith("done to-all\ndone plain\n")
    for name in ("server.0", "server.1"):
        got = [line.split() for line in (out / f"logs/{name}.log").read_text().splitlines()]
        times: dict[str, list[int]] = {}
        for words in got:
            if words[0] == "got" and len(words) == 3:
                times.setdefault(words[1], []).append(int(words[2]))
        assert times.keys() == {"bypass", "plain"}, name
        assert min(times["bypass"]) >= 59_000_000, name
        assert min(times["plain"]) >= 59_000_000, name
    refused = json.loads((out / "summary.json").read_text())["refused"]
    assert next(row for row in refused if row["instance"] == "client.0")["frame"] > 0
