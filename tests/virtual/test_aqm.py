"""Queues that drop early, with TCP that fills them and a program that asks beside it: what
it waits is what the discipline promises, the link stays used, and all of it comes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """\
service sender exec="./send.py" sysctl=net.ipv4.tcp_ecn:{ecn}
service receiver exec="./receive.py" sysctl=net.ipv4.tcp_ecn:{ecn}
bridge s
link sender--s latency=5ms
link s--receiver rate=10Mb {queue}
at 0s receiver join
at 1s sender join
at 12s quit
"""
SEND = """\
#!/usr/bin/python3
import json, select, socket, statistics, time
address = socket.gethostbyname("receiver.0")
ends = [socket.create_connection((address, 7000)) for _ in range(2)]
for end in ends:
    end.setblocking(False)
asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asks.connect((address, 7000))
begin = time.monotonic()
asked, trips = begin + 4, []
while (now := time.monotonic()) < begin + 10:
    if now >= asked:
        asks.send(str(now).encode())
        asked += 0.05
    readable, writable, _ = select.select([asks], ends, [], max(asked - now, 0.0001))
    for end in writable:
        end.send(bytes(65536))
    if readable:
        trips.append(1000 * (time.monotonic() - float(asks.recv(100))))
print(json.dumps({"count": len(trips), "ms": statistics.median(trips)}), flush=True)
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import select, socket, time
listener = socket.create_server(("", 7000))
answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answers.bind(("", 7000))
ends, count, begin = [], 0, time.monotonic()
while time.monotonic() < begin + 10.5:
    for end in select.select([listener, answers, *ends], [], [], 0.5)[0]:
        if end is listener:
            ends.append(listener.accept()[0])
        elif end is answers:
            data, sender = answers.recvfrom(100)
            answers.sendto(data, sender)
        else:
            data = end.recv(1 << 20)
            count += len(data) if time.monotonic() > begin + 5 else 0
print(count, flush=True)
time.sleep(100)
"""


def _lay_out(folder: Path, queue: str, ecn: int) -> None:
    (folder / "exp.tdl").write_text(EXPERIMENT.format(queue=queue, ecn=ecn))
    executables(folder, {"send.py": SEND, "receive.py": RECEIVE})


def _found(run: Path) -> tuple[float, float, dict[str, Any]]:
    """The median round trip in ms, the share of the rate that TCP used, and the summary."""
    said = json.loads((run / "logs/sender.0.log").read_text().splitlines()[-1])
    assert said["count"] > 80
    count = int((run / "logs/receiver.0.log").read_text().splitlines()[-1])
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
    return said["ms"], count * 8 * 1500 / 1448 / 5.5 / 1e7, summary


@pytest.mark.parametrize(
    ("queue", "least", "most"),
    [
        ("queue=300ms", 150, 320),
        ("queue=40pkt", 30, 62),  # 40 packets are 48 ms
        ("aqm=codel", 11, 26),
        ("aqm=pie", 15, 40),
        ("aqm=red;min:5KB;max:15KB;probability:10% queue=100KB", 11, 26),
    ],
)
def test_packets_wait_as_the_queue_promises(
    tmp_path: Path, queue: str, least: float, most: float
) -> None:
    _lay_out(tmp_path, queue, ecn=0)
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    trip_ms, used, summary = _found(tmp_path / "run")
    assert least < trip_ms < most
    assert used > 0.8
    assert sum(link["drop_queue"] for link in summary["links"]) > 0
    assert summary["engine"]["marked"] == 0


def test_a_flow_that_sends_little_does_not_wait_and_nothing_is_lost_with_ecn(
    tmp_path: Path,
) -> None:
    """Nor is anything different when it is repeated."""
    _lay_out(tmp_path, "aqm=fq_codel", ecn=1)
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    trip_ms, used, summary = _found(tmp_path / "run")
    assert 10 < trip_ms < 12.5  # one packet that is being sent takes 1.2 ms
    assert used > 0.9
    assert summary["engine"]["marked"] > 10
    assert sum(link["drop_queue"] for link in summary["links"]) == 0
    done = tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")
    assert "everything is the same" in done.stderr
