"""A path of known properties, measured by the command itself with the real ping and iperf3."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tests.cli.process import ROOT, tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

PROGRAMS = Path(__file__).parent / "programs"
HOSTS = """\
[hosts.a]
here = true
address = "a"
[hosts.b]
command = ["./there.py", "b"]
address = "b"
"""
EXPERIMENT = """\
network ipv4
quit when a exits
service a files=there.py;once.py;hosts.toml env=PYTHONPATH:{root} exec="{python} once.py measure hosts.toml --rtt 2s --flows 1 --seconds 12"
service b files=there.py exec="./there.py"
at 0s b join
at 1s a join
at 900s quit
"""  # noqa: E501
# With windows as small as the rates: else queues, and what flows get beside, are of some megabytes.
KNOWN = "path a--b abw-up=600Kb abw-down=400Kb rtt=30ms wmax=16KB capacity=2Mb\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the measurement left, and what it said."""
    folder = tmp_path_factory.mktemp("measured")
    text = EXPERIMENT.format(root=ROOT, python=sys.executable) + KNOWN
    for name, data in (("exp.tdl", text), ("hosts.toml", HOSTS)):
        (folder / name).write_text(data)
    executables(folder, {name: (PROGRAMS / name).read_text() for name in ("there.py", "once.py")})
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run/instances/a.0"


def test_a_known_path_is_found_again(folder: Path) -> None:
    print((folder / "paths.tdl").read_text())  # where a figure is wrong
    (path,) = json.loads((folder / "paths.json").read_text())["paths"]
    # And 84 bytes at the capacity, each way.
    assert path["rtt_ns"] == pytest.approx(30_672_000, abs=200_000)
    assert path["pings"][0] == path["pings"][1] > 5
    for way, known in (("up", 600_000), ("down", 400_000)):
        assert [row[0] for row in path[way]["abw"]] == [1]
        assert path[way]["abw"][0][1] == pytest.approx(known, rel=0.1)


def test_what_was_found_is_a_network(folder: Path) -> None:
    topology = compile_source((folder / "paths.tdl").read_bytes()).topology
    assert [service.name for service in topology.services] == ["a", "b"]
