"""Topologies of other tools are run: that of Mininet in the documentation, and those of Kollaps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.formats.test_mininet import documented

pytestmark = pytest.mark.virtual


def test_the_network_of_a_topology_is_the_one_that_programs_meet(tmp_path: Path) -> None:
    """60 ms of round trip over both switches, 140 ms from 1 s on."""
    (tmp_path / "topo.py").write_text(documented()[0])
    (tmp_path / "storm.tdl").write_text(documented()[1])
    words = ["run", "topo.py", "--tdl", "storm.tdl", "--time", "virtual", "--out", "run"]
    tstorm(tmp_path, *words, "--require", "valid")
    said = json.loads((tmp_path / "run/logs/h2.0.log").read_text().splitlines()[-1])
    assert said["received"] == 20
    assert 60_000 <= said["min_us"] < 61_000
    assert 140_000 <= said["max_us"] < 141_000


@pytest.mark.parametrize("name", ["kollaps/kollaps.xml", "kollaps-paper/kollaps-paper.yaml"])
def test_experiments_of_kollaps_run_as_they_are(tmp_path: Path, name: str) -> None:
    """Without their images: what is shown is the network."""
    file = Path(__file__).parent / "topologies" / name
    words = ["--programs", "--time", "virtual", "--until", "2s", "--out", str(tmp_path / "run")]
    tstorm(tmp_path, "run", str(file), *words, "--require", "valid")
