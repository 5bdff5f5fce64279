"""Measured paths that share a bottleneck: their flows get together what follows from the flows of
all, whichever path they are on, and probes of one path wait behind the traffic of the other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs.delivered import Delivered

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

SLACK_BYTES = 16_000  # a part of the longest queue there, for each path
STREAM = Path(__file__).resolve().parents[2] / "bench/papers/scenes/stream.py"
# Two flows to b all the time, one to c until 18 s. Of e to d nothing flows but pings, in the same
# queue.
EXPERIMENT = """\
network ipv4
quit when a exits
service a files=stream.py exec="sh -c './stream.py c.0 1 18 & ./stream.py b.0 2 50; wait'"
service b files=stream.py exec="./stream.py - 0 60"
service c files=stream.py exec="./stream.py - 0 60"
service d
service e files=ping.sh exec="sh ping.sh"
bottleneck west capacity=50Mb
path a--b abw-flows=1:4Mb;4:10Mb rtt=20ms bottleneck-up=west
path c--a abw-up=8Mb abw-down=16Mb rtt=40ms bottleneck-down=west
path e--d name=near abw=12Mb rtt=10ms bottleneck-up=west
path e--d name=far abw=1Mb rtt=80ms
at 30s a--b set abw-flows=1:4Mb;4:13Mb
at 40s west set queue=40KB
from 40s to 42s west ramp capacity=20Mb queue=20KB every 500ms
at 48s near leave
expect throughput a c > 90% of plan from 6s to 16s
at 60s quit
"""
PINGS = """\
sleep 6; ping -i .25 -c 20 d.0
sleep 32; ping -i .25 -c 20 d.0
sleep .8; ping -i .25 -c 5 d.0
sleep 60
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "exp.tdl").write_text(EXPERIMENT)
    (folder / "ping.sh").write_text(PINGS)
    (folder / "stream.py").write_bytes(STREAM.read_bytes())
    (folder / "stream.py").chmod(0o755)
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def trips(run: Path) -> list[float]:
    """Of all pings, ms."""
    said = (run / "logs/e.0.log").read_text()
    return [float(found) for found in re.findall(r"time=([\d.]+) ms", said)]


def test_flows_of_both_paths_get_what_there_is_for_all(run: Path) -> None:
    """With two flows on one path and one on the other: (2 * 8 + 1 * 16) / 3 Mb/s."""
    delivered = Delivered(run)
    rates = [delivered.slope_bps(("a.0", to), 6, 17) for to in ("b.0", "c.0")]
    assert abs(sum(rates) / (32e6 / 3) - 1) < 0.03
    assert min(rates) > 1e6


def test_what_is_left_alone_has_its_own_table(run: Path) -> None:
    delivered = Delivered(run)
    assert abs(delivered.slope_bps(("a.0", "b.0"), 23, 30) / 6e6 - 1) < 0.03
    assert abs(delivered.slope_bps(("a.0", "b.0"), 33, 40) / 7e6 - 1) < 0.03


def test_pings_of_a_path_wait_behind_the_flows_of_others(run: Path) -> None:
    assert max(trips(run)[:20]) > 30


def test_a_queue_that_an_event_makes_short_delays_no_longer_than_it_holds(run: Path) -> None:
    """20 KB at 20 Mb/s are 8 ms, beside the round trip of 10 ms."""
    found = trips(run)[20:40]
    assert len(found) > 15
    assert max(found) <= 18.7
    assert max(found) > 12


def test_the_other_path_of_two_is_taken_where_one_is_down(run: Path) -> None:
    found = trips(run)[40:]
    assert len(found) == 5
    assert all(80 <= ms < 81 for ms in found)


def test_samples_of_all_its_links_have_the_queue_of_now(run: Path) -> None:
    """Also those of links of which nothing moves."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    columns = lines[0]["columns"]["links"]
    place = columns.index("backlog_bytes")
    plan = json.loads((run / "plan/topology.json").read_text())
    shared = {i for i, link in enumerate(plan["links"]) if link.get("neck") == "west"}
    last: dict[int, int] = {}
    seen = 0
    for line in lines[1:]:
        now = {row[0]: row[place] for row in line["links"] if row[0] in shared}
        last |= now
        seen += len(now) == len(shared)
        assert len(set(last.values())) <= 1, line["at_ns"]
    assert seen > 100


def test_samples_have_the_part_of_each_path(run: Path) -> None:
    """What is of none of them is of the others that the capacity stands for. Of e to d there is no
    more than a ping and a probe at a time."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    columns = lines[0]["columns"]["links"]
    whole, own = columns.index("backlog_bytes"), columns.index("own_backlog_bytes")
    links = json.loads((run / "plan/topology.json").read_text())["links"]
    shared = {i: link["name"] for i, link in enumerate(links) if link.get("neck") == "west"}
    most = dict.fromkeys(shared.values(), 0)
    for line in lines[1:]:
        rows = [row for row in line["links"] if row[0] in shared]
        if len(rows) == len(shared):
            assert sum(row[own] for row in rows) <= rows[0][whole] + SLACK_BYTES, line["at_ns"]
        for row in rows:
            most[shared[row[0]]] = max(most[shared[row[0]]], row[own])
        assert all(row[own] == row[whole] for row in line["links"] if row[0] not in shared)
    assert min(most["a.0->b.0"], most["a.0->c.0"]) > 10_000
    assert most["near:e.0->d.0"] < 2_000


def test_the_verdict_knows_of_it(run: Path) -> None:
    assert json.loads((run / "summary.json").read_text())["verdict"]["state"] == "valid"


def test_what_depends_on_others_has_no_planned_rate(run: Path) -> None:
    [found] = json.loads((run / "summary.json").read_text())["expectations"]
    assert found["state"] == "not_measured"
    assert "shares a bottleneck" in json.dumps(found)


def test_it_repeats(run: Path) -> None:
    tstorm(run.parent, "replay", "run", "--check", "--quiet", "--out", "again")
