"""A partition for one port, an outage for another one and for pings, and a link that refuses all,
as real programs meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """\
service near exec="./send.py"
service far exec="./receive.py"
bridges s t
link near--s latency=5ms
link s--t latency=5ms
link far--t latency=5ms
at 0s far join
at 1s near join
at 2s partition near;far only=udp:7001
from 3s to 4s near--s leave only=udp:7002;icmp
at 5s heal
from 7s to 8s s->t reject
at 9s quit
expect valid
"""
SEND = """\
#!/usr/bin/python3
import json, socket, time
address = socket.gethostbyname("far.0")
begin = time.monotonic()
ends = []
for port in (7001, 7002):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((address, port))
    ends.append(end)
for number in range(50):
    time.sleep(max(begin + number / 10 - time.monotonic(), 0))
    for end in ends:
        end.send(str(number).encode())
time.sleep(max(begin + 6.5 - time.monotonic(), 0))
asked = time.monotonic()
try:
    socket.create_connection((address, 7003), timeout=1)
    found = "connected"
except ConnectionRefusedError:
    found = "refused"
print(json.dumps([found, round(1000 * (time.monotonic() - asked))]), flush=True)
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import json, select, socket
ends = {}
for port in (7001, 7002):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("", port))
    ends[end] = port
listening = socket.create_server(("", 7003))
while True:
    for end in select.select(list(ends), [], [])[0]:
        print(json.dumps([ends[end], int(end.recv(200))]), flush=True)
"""


def test_some_packets_are_cut_while_the_links_stay_and_a_link_refuses_all(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    executables(tmp_path, {"send.py": SEND, "receive.py": RECEIVE})
    done = tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--out", "first")
    assert "not probed: what links do to only=icmp;udp:7002, only=udp:7001" in done.stderr
    came: dict[int, set[int]] = {7001: set(), 7002: set()}
    for line in (tmp_path / "first/logs/far.0.log").read_text().splitlines():
        port, number = json.loads(line)
        came[port].add(number)
    cut = {port: set(range(50)) - seen for port, seen in came.items()}
    assert {*range(11, 39)} <= cut[7001] <= {*range(9, 41)}
    assert {*range(21, 29)} <= cut[7002] <= {*range(19, 31)}
    said = (tmp_path / "first/logs/near.0.log").read_text().splitlines()[-1]
    assert json.loads(said) == ["refused", 10]
