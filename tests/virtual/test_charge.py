"""Computing that takes virtual time (`--cpu model=FACTOR`), told by programs that compute.

Their own account (getrusage) is what was charged before the instance's share, so the share is exact
whatever the machine does meanwhile. How much that is differs from run to run: only its order is
compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.virtual.guests import compiled

pytestmark = pytest.mark.virtual

CHECKOUT = Path(__file__).parents[2]
SERVICES = """
service whole exec="./compute whole 1 40 1"
service stated cpu=1000m exec="./compute stated 1 40 1"
service quarter cpu=250m exec="./compute quarter 1 40 1"
service calls exec="./compute calls 1 40 400"
service shared exec="./compute shared 2 40 1"
service double cpu=2 exec="./compute double 2 40 1"
service odd cpu=1500m exec="./compute odd 2 40 40"
"""
NAMES = ("whole", "stated", "quarter", "calls", "shared", "double", "odd")
# Clock over processor time: two processes at once on one processor take as long as their sum.
EXPECTED = {
    **dict.fromkeys(("whole", "stated", "calls", "shared"), 1.0),
    "quarter": 4.0,
    "double": 0.5,
    "odd": 1 / 1.5,
}


def experiment(folder: Path, services: str, names: tuple[str, ...], until: str = "20s") -> Path:
    """A file with a link for each service; the program is beside it."""
    compiled("compute", folder)
    links = "".join(f"link {name}--s1 latency=1ms\n" for name in names)
    source = folder / "compute.tdl"
    source.write_text(f"{services}bridge s1\n{links}at {until} quit\n")
    return source


def tstorm(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tstorm", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


def ran(source: Path, out: str, *options: str) -> tuple[dict[str, Any], Path]:
    """Its summary, and where it is."""
    place = source.parent / out
    done = tstorm("run", source, "--time", "virtual", "--quiet", "--out", place, *options)
    assert done.returncode == 0, done.stderr
    return json.loads((place / "summary.json").read_bytes()), place


def times_ms(run: Path) -> dict[str, tuple[float, float]]:
    """By name: how long it took by the clock, and of its processor."""
    found = {}
    for log in (run / "logs").iterdir():
        name, clock, cpu = log.read_text().split()
        found[name] = float(clock), float(cpu)
    return found


def test_each_instance_computes_on_its_share_of_a_processor(tmp_path: Path) -> None:
    summary, run = ran(experiment(tmp_path, SERVICES, NAMES), "run", "--cpu", "model=1")
    found = times_ms(run)
    assert found.keys() == EXPECTED.keys()
    shares = {name: clock / cpu for name, (clock, cpu) in found.items()}
    assert shares == pytest.approx(EXPECTED, rel=0.1)
    work = {
        name: cpu / (2 if name in ("shared", "double", "odd") else 1)
        for name, (_, cpu) in found.items()
    }
    assert all(work["whole"] / 3 < one < work["whole"] * 3 for one in work.values()), work
    cpu = summary["verdict"]["cpu"]
    assert cpu["ppb"] == 10**9
    assert cpu["used_ns"] == pytest.approx(cpu["charged_ns"], rel=1e-6)
    assert cpu["charged_ns"] >= sum(one for _, one in found.values()) * 1e6
    assert 0 < cpu["turn_ns"] < 1_000_000


def test_computing_takes_no_time_unless_it_is_asked_for(tmp_path: Path) -> None:
    source = experiment(tmp_path, SERVICES, NAMES)
    summary, run = ran(source, "run")
    assert "cpu" not in summary["verdict"]
    assert all(clock < 0.1 and cpu == 0 for clock, cpu in times_ms(run).values())


def test_a_processor_may_be_slower_than_this_machines(tmp_path: Path) -> None:
    source = experiment(tmp_path, 'service whole exec="./compute whole 1 40 1"\n', ("whole",))
    summary, run = ran(source, "slow", "--cpu", "model=50")
    cpu = summary["verdict"]["cpu"]
    assert cpu["charged_ns"] == pytest.approx(50 * cpu["used_ns"], rel=1e-6)
    _, fast = ran(source, "fast", "--cpu", "model=1")
    assert times_ms(run)["whole"][0] > 5 * times_ms(fast)["whole"][0]


def test_a_program_that_spins_lets_time_go_on(tmp_path: Path) -> None:
    spins = f"timeout 2 {tmp_path}/compute spin 2 1 1"
    services = f'service spins exec="{spins}"\nservice sleeps exec="sleep 1"\n'
    source = experiment(tmp_path, services, ("spins", "sleeps"), until="3s")
    summary, run = ran(source, "run", "--cpu", "model=1", "--spin-limit", "1s")
    assert summary["verdict"]["reasons"] == []
    events = map(json.loads, (run / "events.jsonl").read_text().splitlines())
    ends = {one["target"]: one for one in events if one["kind"] == "exit"}
    assert (ends["spins.0"]["status"], ends["sleeps.0"]["status"]) == (124, 0)
    assert 2e9 <= ends["spins.0"]["applied_ns"] < 2.5e9
    assert 1e9 <= ends["sleeps.0"]["applied_ns"] < 1.5e9


def test_a_replay_compares_events_and_says_why(tmp_path: Path) -> None:
    source = experiment(
        tmp_path, 'service whole exec="./compute whole 1 5 1"\n', ("whole",), until="1s"
    )
    _, run = ran(source, "run", "--cpu", "model=1")
    again = tstorm("replay", run, "--check", "--quiet", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert "check: computing took virtual time (--cpu)" in again.stderr
    options = json.loads((tmp_path / "again" / "manifest.json").read_bytes())["options"]
    assert options["cpu_ppb"] == 10**9
