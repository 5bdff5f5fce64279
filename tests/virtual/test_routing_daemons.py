"""OSPF and BGP of FRR as it is installed, between routers of an experiment: the examples."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.process import ROOT, tstorm

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.e2e,
    pytest.mark.skipif(
        not Path("/usr/lib/frr/zebra").exists(), reason="FRR (Debian: frr) is not installed here"
    ),
]

_ANSWER = re.compile(r"^\[([0-9.]+)\] .*ttl=([0-9]+) time=([0-9.]+) ms$", re.MULTILINE)


def _run(folder: Path, name: str, *runs: str) -> Path:
    shutil.copytree(ROOT / "examples/routers", folder, dirs_exist_ok=True)
    for run in runs:
        tstorm(folder, "run", f"{name}.tdl", "--time", "virtual", "--quiet", "--out", run)
    return folder / runs[0]


def _answers(run: Path) -> list[tuple[float, int, int]]:
    """When answers came (s of the run), what is left of their TTL, and round trips in ms."""
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
    begin = json.loads((run / "manifest.json").read_text())["start_unix_ns"] / 10**9
    found = _ANSWER.findall((run / "logs/client.0.log").read_text())
    return [(float(at) - begin, int(ttl), round(float(rtt))) for at, ttl, rtt in found]


def _longest_gap(answers: list[tuple[float, int, int]]) -> float:
    return max(later[0] - before[0] for before, later in pairwise(answers))


def test_ospf_finds_the_way_round_a_ring(tmp_path: Path) -> None:
    answers = _answers(_run(tmp_path, "ring", "run"))
    assert {found[1:] for found in answers if 15 < found[0] < 20} == {(61, 24)}
    assert {found[1:] for found in answers if 25 < found[0] < 32} == {(60, 34)}
    assert {found[1:] for found in answers if found[0] > 35} == {(61, 24)}
    after = [found for found in answers if found[0] > 15]
    assert 2 < _longest_gap(after) < 5  # four hellos of a second


def test_bgp_goes_by_the_third_and_two_runs_are_the_same(tmp_path: Path) -> None:
    run = _run(tmp_path, "triangle", "run", "again")
    answers = _answers(run)
    assert {found[1:] for found in answers if 5 < found[0] < 10} == {(62, 24)}
    assert {found[1:] for found in answers if 14 < found[0] < 20} == {(61, 44)}
    assert {found[1:] for found in answers if found[0] > 28} == {(62, 24)}
    for name in ("samples.jsonl", "probes.jsonl", "logs/client.0.log"):
        assert (run / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
