"""Files of other tools are run: those of Mininet and Compose in the documentation, and Kollaps'."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from tests.cli.process import ROOT, tstorm
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


def test_the_stack_of_compose_is_cut_and_healed(tmp_path: Path) -> None:
    page = (ROOT / "docs/from-compose.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = ("docker-compose.yml", "app.py", "storm.tdl")
    for name, text in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "app.py").chmod(0o755)
    [words] = re.findall(r"^    tstorm (run .* --time virtual)$", page, re.MULTILINE)
    done = tstorm(tmp_path, *words.split(), "--out", "run", "--require", "valid")
    assert "expectations: 3 passed" in done.stderr
    lines = (tmp_path / "run/logs/load.0.log").read_text().splitlines()
    said = [words for words, _ in itertools.groupby(line.partition(" :")[0] for line in lines)]
    assert said == ["order", "no database", "order"]
