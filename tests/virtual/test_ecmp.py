"""Flows that are shared out over equal paths: each takes the links that the plan says, also when
one of them is gone, and probes are judged by the path that they take."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from compiler.plan.paths.flows import UDP, FlowTuple
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, read_plan
from tests.cli.process import tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

FLOWS = 60
EXPERIMENT = """\
routing ecmp
service a exec="./send.py"
service b
bridges s m[0..2] t
link a--s latency=1ms
link b--t latency=1ms
for i in 0..2 {
    link s--m$i latency=1ms
    link m$i--t latency=1ms
}
at 10s m1 leave
at 20s quit
"""
SEND = f"""\
#!/usr/bin/python3
import socket, time
def send(family):
    address = socket.getaddrinfo("b.0", 9, family, socket.SOCK_DGRAM)[0][4][:2]
    for i in range({FLOWS}):
        end = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            end.setsockopt(socket.IPPROTO_IPV6, 70, 0)  # IPV6_AUTOFLOWLABEL: no label
        end.bind(("", 2000 + i))
        end.sendto(bytes(100 + i), address)
for _ in range(2):
    time.sleep(5)
    send(socket.AF_INET)
    send(socket.AF_INET6)
    time.sleep(5)
time.sleep(100)
"""


def planned(plan: Plan) -> Counter[str]:
    """Bytes of each link: all flows before 10 s, and again after it."""
    found: Counter[str] = Counter()
    for at_ns in (5 * 10**9, 15 * 10**9):
        state = plan.state_at(at_ns)
        for i in range(FLOWS):
            for version, headers in ((4, 28), (6, 48)):
                way = Paths(state, FlowTuple(UDP, 2000 + i, 9, version=version)).path(0, 1)
                for link in way.links:
                    found[plan.topology.links[link].name] += headers + 100 + i
    return found


def counted(run: Path, plan: Plan) -> dict[str, int]:
    """Bytes that were offered to each link."""
    found: dict[str, int] = {}
    for line in (run / "samples.jsonl").read_text().splitlines()[1:]:
        for link, _, offered_bytes, *_ in json.loads(line)["links"]:
            found[plan.topology.links[link].name] = offered_bytes
    return found


def test_flows_take_the_links_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    executables(tmp_path, {"send.py": SEND})
    options = ("--time", "virtual", "--quiet", "--no-probes")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run")
    plan = read_plan(tmp_path / "run/plan")
    wanted, found = planned(plan), counted(tmp_path / "run", plan)
    assert {"s->m0", "s->m1", "s->m2"} <= wanted.keys()
    # What answers them (port unreachable) goes the other way.
    assert {link: found[link] for link in wanted} == dict(wanted)


LOSSY = """\
routing ecmp
service a replicas=3
service b replicas=3
bridges s m[0..2] t
link a--s latency=1ms
link b--t latency=1ms
for i in 0..2 {
    link s--m$i latency=1ms loss=${30*i}%
    link m$i--t latency=1ms
}
at 500s quit
"""


@pytest.mark.parametrize("network", ["dual", "ipv6"])
def test_probes_are_judged_by_the_path_that_they_take(tmp_path: Path, network: str) -> None:
    """Of the equal paths one loses nothing, one 30 % and one 60 %: no other one would do."""
    (tmp_path / "exp.tdl").write_text(f"network {network}\n{LOSSY}")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    certificate = json.loads((tmp_path / "run/certificate.json").read_text())
    assert certificate["verdict"]["state"] == "valid", certificate["verdict"]
    planned = {path["planned"]["loss_ppb"] for path in certificate["pairs"]}
    assert {0, 300_000_000, 600_000_000} <= planned
