"""Satellites that move carry the pings of real programs as the file of their orbits says: who is
joined when, and for how long light is on the way; and the same in each run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.mobility_model import Radios
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

ORBITS = Path(__file__).parents[2] / "examples/satellites/orbits.json"
CLOCK_NS = 946_684_800 * 10**9  # what clocks say at the beginning of a run
LIGHT_KM = 299_792.458
NODES, RADIOS, RANGE_KM, SECONDS = 12, 3, 9000, 119
STEP_NS = 1_000  # of latencies, for each link of a way
NEAR_NS = 20_000  # two programs, and packets of one moment
TEXT = f"""\
service sat exec="./ping.py $TSTORM_INSTANCE"
mobility orbits.json nodes=sat range={RANGE_KM}km transceivers={RADIOS} allocate=nearest \
    latency-step=1us
routing hops
"""
# In the middle of each second one ping, to the next of the others.
PING = f"""\
#!/usr/bin/python3
import select, socket, struct, sys, time
own = int(sys.argv[1].rpartition(".")[2])
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
log, second = open("log", "w", buffering=1), 0
while True:
    due = {CLOCK_NS} + second * 10**9 + 5 * 10**8
    now = time.clock_gettime_ns(time.CLOCK_REALTIME)
    if now >= due:
        to = (own + 1 + second % {NODES - 1}) % {NODES}
        end.sendto(struct.pack("<cQQ", b"?", second, now), (f"sat.{{to}}", 7000))
        second += 1
        continue
    if not select.select([end], [], [], (due - now) / 1e9)[0]:
        continue
    data, there = end.recvfrom(100)
    kind, number, sent = struct.unpack("<cQQ", data)
    if kind == b"?":
        end.sendto(b"!" + data[1:], there)
    else:
        print(number, time.clock_gettime_ns(time.CLOCK_REALTIME) - sent, file=log)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("satellites")
    (folder / "exp.tdl").write_text(TEXT)
    (folder / "orbits.json").write_bytes(ORBITS.read_bytes())
    executables(folder, {"ping.py": PING})
    for name in ("one", "two"):
        tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", name)
    return [folder / "one", folder / "two"]


@cache
def _links() -> list[Mapping[int, Mapping[int, float]]]:
    """Who is linked in each second, and how many km apart, by Algorithm 1 from the file itself."""
    records = json.loads(ORBITS.read_text())["MobilecomScnDef"]["MobileNodeDef"]
    radios = Radios(NODES, RADIOS)
    found: list[Mapping[int, Mapping[int, float]]] = []
    for second in range(SECONDS + 1):
        now = records[second * NODES : (second + 1) * NODES]
        at = [tuple(round(r[f"Pos{axis}"] * 10**6) for axis in "XYZ") for r in now]
        sees = {(a, one["nodeID"] - 100) for a, r in enumerate(now) for one in r["visibilityGraph"]}
        apart = {(a, b): math.dist(at[a], at[b]) / 10**6 for a, b in sees}
        visible = {(a, b) for a, b in sees if a < b and (b, a) in sees and apart[a, b] <= RANGE_KM}
        linked = radios.step(visible, [(p[0], p[1], p[2]) for p in at])
        ways: dict[int, dict[int, float]] = {node: {} for node in range(NODES)}
        for a, b in linked:
            ways[a][b] = ways[b][a] = apart[a, b]
        found.append(ways)
    return found


def _ways(second: int, source: int, dest: int) -> list[tuple[int, float]]:
    """Of all ways with the fewest links: how many there are, and their km."""
    links, ahead = _links()[second], [(source, 0.0)]
    for hops in range(NODES):
        there = [(hops, km) for node, km in ahead if node == dest]
        if there:
            return there
        ahead = [(b, km + more) for a, km in ahead for b, more in links[a].items()]
    return []


def _answers(run: Path, source: int) -> dict[int, int]:
    """Round trips in ns, by second."""
    lines = (run / f"instances/sat.{source}/log").read_text().splitlines()
    return dict(map(int, line.split()) for line in lines)  # type: ignore[misc]


def test_pings_come_back_where_there_is_a_way_and_as_soon_as_light(runs: list[Path]) -> None:
    joined = apart = 0
    for source in range(NODES):
        got = _answers(runs[0], source)
        for second in range(1, SECONDS):
            dest = (source + 1 + second % (NODES - 1)) % NODES
            ways = _ways(second, source, dest)
            assert (second in got) == bool(ways), (source, dest, second)
            if not ways:
                apart += 1
                continue
            joined += 1
            off = [
                abs(got[second] - 2 * km / LIGHT_KM * 10**9) - 2 * hops * STEP_NS
                for hops, km in ways
            ]
            assert min(off) < NEAR_NS, (source, dest, second, got[second], ways)
    assert joined > 500
    assert apart > 200


def test_the_network_was_the_planned_one(runs: list[Path]) -> None:
    assert json.loads((runs[0] / "certificate.json").read_text())["verdict"]["state"] == "valid"


def test_two_runs_are_one(runs: list[Path]) -> None:
    one, two = runs
    for name in ("samples.jsonl", "events.jsonl"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    for source in range(NODES):
        name = f"instances/sat.{source}/log"
        assert (one / name).read_bytes() == (two / name).read_bytes()
