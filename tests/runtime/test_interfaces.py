"""Instances with several interfaces in namespaces of this machine: by address, by device, and
MPTCP, where the kernel has it. What only differs with time is in tests/virtual."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = pytest.mark.e2e

NETWORK = """\
bridges fast slow net
link client--fast latency=1ms
link client--slow latency=20ms
link fast--net
link slow--net
link server--net
"""
PING = "ping -q -i 0.05 -c"
PINGS = f"""\
service client interfaces exec="sh -c '{PING} 3 -I eth1 server.0; {PING} 3 server.0'"
service server exec="{PING} 6 client.0.eth1"
{NETWORK}quit when all exit
"""


def _round_trips(log: Path) -> list[float]:
    return [
        float(found) for found in re.findall(r"rtt min/avg/max\S* = ([0-9.]+)", log.read_text())
    ]


def test_what_leaves_by_an_interface_takes_its_link(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(PINGS)
    tstorm(tmp_path, "run", "exp.tdl", "--quiet", "--out", "run")
    slow, fast = _round_trips(tmp_path / "run/logs/client.0.log")
    [back] = _round_trips(tmp_path / "run/logs/server.0.log")
    assert slow >= 40 and back >= 40
    assert 2 <= fast < 40
    links = json.loads((tmp_path / "run/summary.json").read_text())["links"]
    packets = {one["link"]: one["pkts"] for one in links}
    assert packets["client.0->slow"] >= 9 and packets["client.0->fast"] >= 3


TCP = """\
import pathlib, socket, sys, time

def new():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)

def ask():
    began = time.monotonic()
    made.sendall(b"x")
    assert made.recv(1) == b"x"
    time.sleep(0.01)
    return time.monotonic() - began > 0.04

if sys.argv[1:]:
    made = new()
    while made.connect_ex((sys.argv[1], 5555)):  # nobody listens yet
        time.sleep(0.02)
        made = new()
    for _ in range(20):
        ask()
    pathlib.Path("begun").touch()
    slow = 0
    while slow < 5:
        slow = slow + 1 if ask() else 0
    print("goes on", flush=True)
else:
    made = new()
    made.bind(("", 5555))
    made.listen()
    while True:  # the first one is that of ready=
        connection, _ = made.accept()
        while said := connection.recv(1):
            connection.sendall(said)
"""
ENDPOINTS = (
    "ip mptcp limits set subflow 1; ip mptcp endpoint add $TSTORM_IPV4 dev eth0 subflow; "
    "ip mptcp endpoint add 10.77.0.3 dev eth1 subflow backup"
)
MPTCP = f"""\
network ipv4
start when ready
service client interfaces files=tcp.py setup="sh -c '{ENDPOINTS}'" \\
    ready="test -e begun" ready-timeout=10s exec="python3 tcp.py server.0"
service server files=tcp.py setup="ip mptcp limits set subflow 1" ready=tcp:5555 \\
    exec="python3 tcp.py" expect=any
{NETWORK}at 300ms client--fast leave
at 20s quit
quit when client exits
"""


def _has_mptcp() -> bool:
    enabled = Path("/proc/sys/net/mptcp/enabled")
    known = subprocess.run(["ip", "mptcp", "limits"], capture_output=True, check=False)
    return enabled.exists() and enabled.read_text().strip() == "1" and not known.returncode


@pytest.mark.skipif(not _has_mptcp(), reason="this kernel, or its ip, has no MPTCP")
def test_a_connection_of_mptcp_outlives_the_link_that_it_began_on(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(MPTCP)
    (tmp_path / "tcp.py").write_text(TCP)
    tstorm(tmp_path, "run", "exp.tdl", "--quiet", "--out", "run")
    assert "goes on" in (tmp_path / "run/logs/client.0.log").read_text()


@pytest.mark.parametrize("options", [("--hosts", "2"), ("--hosts", "2", "--datapath", "kernel")])
def test_over_hosts_they_are_refused_with_the_line(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "exp.tdl").write_text(PINGS)
    done = tstorm(tmp_path, "run", "exp.tdl", "--quiet", *options, "--out", "run", code=None)
    assert done.returncode != 0
    said = "exp.tdl:1: an interface for each link of client (interfaces) is not possible"
    assert said in done.stderr.replace("\n", " "), done.stderr
