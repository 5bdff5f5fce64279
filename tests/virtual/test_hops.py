"""Bridges show to programs that trace paths: traceroute's way of asking, and ping's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import hops

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

PING = """\
#!/bin/sh
ping -n -c 1 -W 1 -t 2 far.0
ping -c 1 -W 1 -t 3 far.0
ping -6 -c 1 -W 1 -t 1 far.0
ping -c 1 -W 1 -t 4 far.0
exec sleep 100
"""


def _carry_out(folder: Path, text: str = hops.NETWORK, program: str = hops.TRACE) -> Path:
    hops.lay_out(folder, text, program)
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def test_each_bridge_answers_after_the_way_to_it_and_back(tmp_path: Path) -> None:
    run = _carry_out(tmp_path)
    assert hops.traced(run) == [
        [["s1", 11, 0, 2], ["s2", 11, 0, 6], ["s3", 11, 0, 12], ["far.0", 3, 3, 20]],
        [["s1", 3, 0, 2], ["s2", 3, 0, 6], ["s3", 3, 0, 12], ["far.0", 1, 4, 20]],
    ]
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
    assert (summary["engine"]["expired"], summary["engine"]["withheld"]) == (6, 0)
    tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")


def test_a_hop_behind_a_link_that_loses_everything_is_not_seen(tmp_path: Path) -> None:
    run = _carry_out(tmp_path, hops.NETWORK.replace("latency=3ms", "latency=3ms loss=100%"))
    assert hops.traced(run) == [
        [["s1", 11, 0, 2], ["s2", 11, 0, 6], None, None],
        [["s1", 3, 0, 2], ["s2", 3, 0, 6], None, None],
    ]


def test_silent_hops_take_nothing_from_the_ttl(tmp_path: Path) -> None:
    run = _carry_out(tmp_path, "hops silent\n" + hops.NETWORK)
    assert hops.traced(run) == [[["far.0", 3, 3, 20]] * 4, [["far.0", 1, 4, 20]] * 4]
    assert json.loads((run / "summary.json").read_text())["engine"]["expired"] == 0


def test_ping_names_the_bridge_where_its_packet_ended(tmp_path: Path) -> None:
    said = (_carry_out(tmp_path, program=PING) / "logs/near.0.log").read_text()
    assert "From 10.77.255.253 icmp_seq=1 Time to live exceeded" in said
    assert "From s3 (10.77.255.252) icmp_seq=1 Time to live exceeded" in said
    assert "From s1 (fd77:7473::1:0) icmp_seq=1 Time exceeded: Hop limit" in said
    assert "icmp_seq=1 ttl=61 time=20.0 ms" in said  # 64, and three bridges on the way back
