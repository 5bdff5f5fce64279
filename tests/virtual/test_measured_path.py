"""Measured paths: TCP gets what is available in both directions at once, several flows get what the
table has for them, and full queues delay as long as the capacity makes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs.delivered import Delivered

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

STREAM = Path(__file__).resolve().parents[2] / "bench/papers/scenes/stream.py"
# A row of the paper's Table 2, and 1 to 3 flows at once on another path.
EXPERIMENT = """\
network ipv4
quit when a;b;c exit
service a files=stream.py exec="./stream.py b.0 1 20 96000"
service b files=stream.py exec="./stream.py a.0 1 20 96000"
service c files=stream.py exec="sh -c './stream.py d.0 3 30 & sleep 8; ping -i .25 -c 20 d.0; wait'"
service d files=stream.py exec="./stream.py - 0 60"
path a--b abw-up=6436Kb abw-down=2579Kb rtt=24ms wmax=128KB
path c--d abw-flows=1:4Mb;5:12Mb rtt=30ms
at 14s c--d set abw-flows=1:6Mb;3:12Mb
at 60s quit
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    (folder / "exp.tdl").write_text(EXPERIMENT)
    (folder / "stream.py").write_bytes(STREAM.read_bytes())
    (folder / "stream.py").chmod(0o755)
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def test_a_flow_each_way_gets_what_is_available(run: Path) -> None:
    """As the link of these rates does not: 3.9 instead of 6.4 Mb/s."""
    delivered = Delivered(run)
    for ends, bps in ((("a.0", "b.0"), 6_436_000), (("b.0", "a.0"), 2_579_000)):
        assert abs(delivered.slope_bps(ends, 8, 20) / bps - 1) < 0.02


def test_flows_get_what_the_table_has_for_them(run: Path) -> None:
    """Three of them: between the rows of one and five, then what was set."""
    delivered = Delivered(run)
    assert abs(delivered.slope_bps(("c.0", "d.0"), 5, 14) / 8e6 - 1) < 0.02
    assert abs(delivered.slope_bps(("c.0", "d.0"), 20, 30) / 12e6 - 1) < 0.02


def test_pings_wait_as_long_as_the_capacity_makes_them(run: Path) -> None:
    """Behind the queue of the flows at 100 Mb/s, not at what is available of it."""
    said = (run / "logs/c.0.log").read_text()
    trips = [float(found) for found in re.findall(r"time=([\d.]+) ms", said)]
    plan = json.loads((run / "plan/topology.json").read_text())
    [up] = [link for link in plan["links"] if link["name"] == "c.0->d.0"]
    rows = [int(row.split(":")[2]) for row in up["flow_rates"].split(";")]
    longest = 30 + max(up["queue_bytes"], *rows) * 8 / 1e5
    assert len(trips) == 20
    assert 30 < min(trips) <= max(trips) < longest + 1


def test_the_verdict_knows_them(run: Path) -> None:
    assert json.loads((run / "summary.json").read_text())["verdict"]["state"] == "valid"


def test_it_repeats(run: Path) -> None:
    tstorm(run.parent, "replay", "run", "--check", "--quiet", "--out", "again")
