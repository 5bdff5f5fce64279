"""Packets of real programs have delays that are distributed as a file has them, in order, and the
same in each run."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

TDL = """\
service a exec="ping -n -i 0.7 -c 500 b.0"
service b exec="sleep 5000"
bridge s
link a->s dist=delays.txt
link s->a latency=1ms
link b--s latency=1ms
at 355s quit
"""
OTHER_MS = 3.0  # of a round trip, beside what is drawn


@pytest.fixture(scope="module")
def delays() -> list[float]:
    """ms: two humps of unlike size, and a tail."""
    draws = random.Random(6)
    humps = [draws.choice([10, 10, 12]) + draws.random() for _ in range(3000)]
    return sorted([*humps, *(14 + draws.expovariate(1) for _ in range(200))])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, delays: list[float]) -> list[Path]:
    place = tmp_path_factory.mktemp("delays")
    (place / "exp.tdl").write_text(TDL)
    (place / "delays.txt").write_text("".join(f"{ms:.4f}\n" for ms in delays))
    for name in ("one", "two"):
        tstorm(place, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", name)
    return [place / "one", place / "two"]


def round_trips(done: Path) -> list[float]:
    text = (done / "logs/a.0.log").read_text()
    return [
        float(line.split("time=")[1].split()[0]) for line in text.splitlines() if "time=" in line
    ]


def test_programs_see_what_was_measured(runs: list[Path], delays: list[float]) -> None:
    seen = sorted(ms - OTHER_MS for ms in round_trips(runs[0]))
    assert len(seen) == 500
    mean = sum(delays) / len(delays)
    deviation = math.sqrt(sum((ms - mean) ** 2 for ms in delays) / len(delays))
    # Packets 0.7 s apart met other jitters; 4 standard errors, and what ping rounds and hops take.
    assert abs(sum(seen) / len(seen) - mean) < 4 * deviation / math.sqrt(len(seen)) + 0.1
    spread = math.sqrt(sum((ms - mean) ** 2 for ms in seen) / len(seen))
    assert 0.85 < spread / deviation < 1.15
    at = [9.9, 10.5, 11.3, 12.5, 13.5, 15.0]
    for ms in at:
        wanted, found = (bisect_right(all_of, ms) / len(all_of) for all_of in (delays, seen))
        assert abs(found - wanted) < 4 * math.sqrt(0.25 / len(seen)) + 1 / 128


def test_the_verdict_knows_the_distribution(runs: list[Path]) -> None:
    summary = json.loads((runs[0] / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]


def test_a_run_repeats(runs: list[Path]) -> None:
    assert round_trips(runs[0]) == round_trips(runs[1])


def test_no_packet_overtakes_another(tmp_path: Path, delays: list[float]) -> None:
    """A ping each 2 ms: what answers comes in the order in which it was asked."""
    text = TDL.replace("-i 0.7 -c 500", "-i 0.002 -c 4000").replace("355s", "10s")
    (tmp_path / "exp.tdl").write_text(text)
    (tmp_path / "delays.txt").write_text("".join(f"{ms:.4f}\n" for ms in delays))
    tstorm(
        tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run", "--no-probes"
    )
    lines = (tmp_path / "run/logs/a.0.log").read_text().splitlines()
    numbers = [int(line.split("icmp_seq=")[1].split()[0]) for line in lines if "icmp_seq=" in line]
    assert len(numbers) > 1000
    assert all(b == a + 1 for a, b in pairwise(numbers))
