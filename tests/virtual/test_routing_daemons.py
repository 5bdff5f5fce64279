"""OSPF and BGP of FRR and of BIRD, and Babel, as they are installed, between routers of an
experiment: the examples."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.process import ROOT, tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

_PLACES = "/usr/lib/frr:/usr/sbin:/usr/bin"
_ANSWER = re.compile(r"^\[([0-9.]+)\] .*ttl=([0-9]+) time=([0-9.]+) ms$", re.MULTILINE)


def _if_there(program: str, package: str) -> pytest.MarkDecorator:
    why = f"{program} (Debian: {package}) is not installed here"
    return pytest.mark.skipif(shutil.which(program, path=_PLACES) is None, reason=why)


DAEMONS = [
    pytest.param("frr", marks=_if_there("zebra", "frr")),
    pytest.param("bird", marks=_if_there("bird", "bird2")),
]


def _run(folder: Path, name: str, *words: str, runs: tuple[str, ...] = ("run",)) -> Path:
    shutil.copytree((ROOT / "examples" / name).parent, folder, dirs_exist_ok=True)
    for run in runs:
        file = f"{Path(name).name}.tdl"
        tstorm(folder, "run", file, "--time", "virtual", "--quiet", "--out", run, *words)
    return folder / runs[0]


def _answers(run: Path, program: str = "client.0") -> list[tuple[float, int, int]]:
    """When answers came (s of the run), what is left of their TTL, and round trips in ms."""
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
    begin = json.loads((run / "manifest.json").read_text())["start_unix_ns"] / 10**9
    found = _ANSWER.findall((run / f"logs/{program}.log").read_text())
    return [(float(at) - begin, int(ttl), round(float(rtt))) for at, ttl, rtt in found]


def _longest_gap(answers: list[tuple[float, int, int]]) -> float:
    return max(later[0] - before[0] for before, later in pairwise(answers))


@pytest.mark.parametrize("daemon", DAEMONS)
def test_ospf_finds_the_way_round_a_ring(daemon: str, tmp_path: Path) -> None:
    answers = _answers(_run(tmp_path, "routers/ring", "--param", f"daemon={daemon}"))
    assert {found[1:] for found in answers if 15 < found[0] < 20} == {(61, 24)}
    assert {found[1:] for found in answers if 25 < found[0] < 32} == {(60, 34)}
    assert {found[1:] for found in answers if found[0] > 35} == {(61, 24)}
    after = [found for found in answers if found[0] > 15]
    assert 2 < _longest_gap(after) < 5  # four hellos of a second


@pytest.mark.parametrize("daemon", DAEMONS)
def test_bgp_goes_by_the_third_and_two_runs_are_the_same(daemon: str, tmp_path: Path) -> None:
    words = ("--param", f"daemon={daemon}")
    run = _run(tmp_path, "routers/triangle", *words, runs=("run", "again"))
    answers = _answers(run)
    assert {found[1:] for found in answers if 5 < found[0] < 10} == {(62, 24)}
    assert {found[1:] for found in answers if 14 < found[0] < 20} == {(61, 44)}
    assert {found[1:] for found in answers if found[0] > 28} == {(62, 24)}
    for name in ("samples.jsonl", "probes.jsonl", "logs/client.0.log"):
        assert (run / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


@_if_there("babeld", "babeld")
def test_babel_passes_on_what_a_radio_does_not_reach(tmp_path: Path) -> None:
    """Car 3 is out of reach of car 0 until 6 s, and from 32 s on."""
    answers = _answers(_run(tmp_path, "vehicles/air"), "car.0")
    assert {ttl for at, ttl, _ in answers if at < 6} == {63}  # one car between them
    there = [found for found in answers if 2 < found[0] < 30]
    assert there[0][0] < 3 and there[-1][0] > 29
    assert _longest_gap(there) < 1.1  # a ping each 0.5 s
