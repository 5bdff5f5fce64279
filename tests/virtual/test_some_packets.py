"""`only=`: cuts, delays and refusals that touch some of the packets of real programs, and all of it
comes again to the last byte."""

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
bridge s
link near--s latency=5ms
link far--s latency=5ms
at 0s far join
at 1s near join
from 2s to 3s near--s set loss=100% only=udp:7001
from 4s to 5s near->s set latency+=100ms only=udp:7001;tcp
at 6s near--s set reject=100% only=tcp:7003;to:far
at 9s quit
expect valid
"""
SEND = """\
#!/usr/bin/python3
import json, socket, time
address = socket.gethostbyname("far.0")
ends = []
for port in (7001, 7002):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((address, port))
    ends.append(end)
begin = time.monotonic()
for number in range(500):
    time.sleep(max(begin + number / 100 - time.monotonic(), 0))
    for end in ends:
        end.send(json.dumps([number, time.monotonic()]).encode())
time.sleep(1)
found = []
for port in (7003, 7004):
    asked = time.monotonic()
    try:
        socket.create_connection((address, port), timeout=1)
        found.append(round(1000 * (time.monotonic() - asked)))
    except ConnectionRefusedError:
        found.append("refused")
print(json.dumps(found), flush=True)
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import json, select, socket, time
ends = {}
for port in (7001, 7002):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("", port))
    ends[end] = port
listening = [socket.create_server(("", port)) for port in (7003, 7004)]
while True:
    for end in select.select(list(ends), [], [])[0]:
        number, sent = json.loads(end.recv(200))
        took = round(1000 * (time.monotonic() - sent))
        print(json.dumps([ends[end], number, took]), flush=True)
"""


def test_some_packets_are_cut_delayed_and_refused_and_the_rest_pass(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    executables(tmp_path, {"send.py": SEND, "receive.py": RECEIVE})
    done = tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--out", "first")
    assert "not probed: what links do to only=" in done.stderr
    lines = (tmp_path / "first/logs/far.0.log").read_text().splitlines()
    took: dict[int, dict[int, int]] = {7001: {}, 7002: {}}
    for line in lines:
        port, number, ms = json.loads(line)
        took[port][number] = ms
    assert set(took[7002].values()) == {10}
    assert len(took[7002]) == 500
    cut = set(range(500)) - set(took[7001])
    assert {*range(102, 198)} <= cut <= {*range(98, 202)}
    late = {number for number, ms in took[7001].items() if ms == 110}
    assert {*range(302, 398)} <= late <= {*range(298, 402)}
    assert {ms for number, ms in took[7001].items() if number not in late} == {10}
    said = (tmp_path / "first/logs/near.0.log").read_text().splitlines()[-1]
    assert json.loads(said) == ["refused", 20]
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr
