"""Several links between the same two elements: packets take the faster one that is up, also in what
real programs measure, and with `routing ecmp` both."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.paths.flows import UDP, FlowTuple
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, read_plan
from runtime.results.sent_packets import PROBE, recorded_packets
from runtime.rundir.rundir import recorded
from runtime.schedule import PlanClock
from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

MS, SECOND = 10**6, 10**9
EXPERIMENT = """\
service a exec="tprobe rtt b.0 --count 900 --interval 20ms --each"
service b exec="tprobe serve"
bridge s1
link a--s1 name=fast latency=1ms up=1Gb symmetric
link a--s1 name=slow latency=20ms up=10Mb symmetric
link b--s1 latency=2ms
at 5s fast leave
at 10s fast join
at 12s slow set latency=5ms
at 14s fast:s1->a set latency=50ms
at 20s quit
"""
# From when on what the round trip is, in ms: there by `fast` and back by `slow` in the end.
PLANNED = ((0.1, 4.9, 6), (5.1, 9.9, 44), (10.1, 13.9, 6), (14.1, 17.9, 10))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel")
    (folder / "exp.tdl").write_text(EXPERIMENT)
    options = ("--time", "virtual", "--quiet", "--packets", "--out", "run")
    tstorm(folder, "run", "exp.tdl", *options)
    return folder / "run"


def trips(run: Path) -> list[tuple[float, float]]:
    """When each began (s) and how long it took (ms), as the program says."""
    lines = (json.loads(line) for line in (run / "logs/a.0.log").read_text().splitlines())
    found = [one for one in lines if "seq" in one]
    begin = found[0]["t_ns"]
    return [((one["t_ns"] - begin) / SECOND, one["rtt_us"] / 1000) for one in found]


def test_a_program_measures_the_delay_of_the_link_that_is_up(done: Path) -> None:
    measured = trips(done)
    for begin, end, wanted in PLANNED:
        there = [rtt for at, rtt in measured if begin < at < end]
        assert len(there) > 150
        # Beside the delays what 82 bytes take at 10 Mb/s, on both ways by `slow`.
        assert wanted <= min(there) <= max(there) < wanted + 0.2


def test_the_verdict_is_valid_and_says_what_each_was_judged_by(done: Path) -> None:
    certificate = json.loads((done / "certificate.json").read_text())
    assert certificate["verdict"]["state"] == "valid", certificate["verdict"]
    planned = {
        (one["from"], one["to"]): one["planned"]["delay_ns"] // MS
        for one in certificate["pairs"]
        if one["epoch"]["to_ns"] == 10 * SECOND
    }
    assert planned == {("a.0", "b.0"): 22, ("b.0", "a.0"): 22}


def test_samples_and_captures_have_each_link_by_its_name(done: Path) -> None:
    links = {one["link"]: one for one in json.loads((done / "summary.json").read_text())["links"]}
    counts = {name: links[name]["pkts"] for name in links if name.endswith("a.0->s1")}
    assert counts.keys() == {"fast:a.0->s1", "slow:a.0->s1"}
    assert counts["slow:a.0->s1"] > 150 and counts["fast:a.0->s1"] > 500
    assert links["slow:s1->a.0"]["pkts"] > counts["slow:a.0->s1"], "the way back, from 14 s on"
    names = {path.name for path in (done / "packets").iterdir()}
    assert names == {"fast_a.0--s1.pcapng", "slow_a.0--s1.pcapng", "b.0--s1.pcapng"}
    events = map(json.loads, (done / "events.jsonl").read_text().splitlines()[1:])
    down = [one["target"] for one in events if one["kind"] == "link_down"]
    assert down == ["fast:a.0->s1", "fast:s1->a.0"]


def test_packets_are_joined_to_the_microsecond(done: Path) -> None:
    """Of each ping what lies between its sending and the arrival of its answer is what the program
    has measured."""
    directory = recorded(done)
    start_ns = directory.manifest()["start_unix_ns"]
    found = recorded_packets(directory, read_plan(done / "plan"), PlanClock(0, 1), start_ns)
    assert found is not None and (found.stray, found.missing) == (0, 0)
    own = [one for one in found.packets if one.words != PROBE and not one.cause]
    there = [one for one in own if (one.src, one.dst) == (0, 1)]
    back = {one.sent_ns: one.end_ns for one in own if (one.src, one.dst) == (1, 0)}
    took = []
    for one in there:
        answer = min((sent for sent in back if sent >= one.end_ns), default=None)
        if answer is not None and answer - one.end_ns < MS:
            took.append((back[answer] - one.sent_ns) / MS)
    measured = [rtt for _, rtt in sorted(trips(done))]  # lines come as answers do
    assert len(measured) == 900
    assert max(abs(a - b) for a, b in zip(took, measured, strict=True)) < 0.005


def test_over_hosts_a_path_takes_the_link_that_is_up(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    options = ("--time", "virtual", "--quiet", "--hosts", "2", "--until", "8s", "--out", "run")
    tstorm(tmp_path, "run", "exp.tdl", *options)
    verdict = json.loads((tmp_path / "run/summary.json").read_text())["verdict"]
    assert verdict["state"] == "valid", verdict
    measured = trips(tmp_path / "run")
    for begin, end, wanted in ((0.1, 4.9, 6), (5.1, 7.8, 44)):
        there = [rtt for at, rtt in measured if begin < at < end]
        assert len(there) > 100
        assert wanted <= min(there) <= max(there) < wanted + 0.2


FLOWS = 60
SHARED = """\
routing ecmp
service a exec="./send.py"
service b
bridges s t
link a--s name=left latency=1ms
link a--s name=right latency=1ms
link s--t name=upper latency=2ms
link s--t name=lower latency=2ms
link s--t name=far latency=3ms
link b--t latency=1ms
at 10s lower leave
at 20s quit
"""
SEND = f"""\
#!/usr/bin/python3
import socket, time
address = (socket.gethostbyname("b.0"), 9)
for _ in range(2):
    time.sleep(5)
    for i in range({FLOWS}):
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.bind(("", 2000 + i))
        end.sendto(bytes(100 + i), address)
    time.sleep(5)
time.sleep(100)
"""


def planned(plan: Plan) -> Counter[str]:
    """Bytes of each link: all flows before 10 s, and again after it."""
    found: Counter[str] = Counter()
    for at_ns in (5 * SECOND, 15 * SECOND):
        state = plan.state_at(at_ns)
        for i in range(FLOWS):
            for link in Paths(state, FlowTuple(UDP, 2000 + i, 9)).path(0, 1).links:
                found[plan.topology.links[link].name] += 128 + i
    return found


def test_equal_links_share_the_flows_out_as_the_plan_says(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(SHARED)
    (tmp_path / "send.py").write_text(SEND)
    (tmp_path / "send.py").chmod(0o755)
    options = ("--time", "virtual", "--quiet", "--no-probes")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run")
    plan = read_plan(tmp_path / "run/plan")
    wanted = planned(plan)
    used = {"left:a.0->s", "right:a.0->s", "upper:s->t", "lower:s->t"}
    assert wanted.keys() == used | {"t->b.0"}
    summary: dict[str, Any] = json.loads((tmp_path / "run/summary.json").read_text())
    found = {one["link"]: one["bytes"] for one in summary["links"]}
    # What answers them (port unreachable) goes the other way.
    assert {link: found[link] for link in wanted} == dict(wanted)
    assert "far:s->t" not in found, "nothing was offered to it"
