"""Background traffic takes of the rate of a link and leaves its capacity: a full queue delays as a
real one does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs.delivered import Delivered
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

STREAM = Path(__file__).resolve().parents[2] / "bench/papers/scenes/stream.py"
EXPERIMENT = """\
service sender exec="./send.py"
service receiver exec="./receive.py"
bridge s
link sender--s latency=5ms up=10Mb symmetric queue=125KB
link receiver--s
at 0s receiver join
at 1s sender join
at 1s sender--s background 8Mb
at 11s quit
"""
SEND = """\
#!/usr/bin/python3
import socket, struct, time
to = (socket.gethostbyname("receiver.0"), 7000)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    end.sendto(struct.pack("<d", time.monotonic()) + bytes(964), to)  # 1,000 bytes of IP
    time.sleep(0.0016)
"""
RECEIVE = """\
#!/usr/bin/python3
import json, socket, struct, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
delays, begun = [], None
while True:
    sent = struct.unpack_from("<d", end.recv(2000))[0]
    now = time.monotonic()
    begun = begun or now
    if now > begun + 3:
        delays.append(now - sent)
    if now > begun + 8:
        break
print(json.dumps({"count": len(delays), "least": min(delays), "most": max(delays)}), flush=True)
time.sleep(100)
"""


FLOWS = """\
network ipv4
quit when a;b exit
service a files=stream.py exec="./stream.py b.0 2 20"
service b files=stream.py exec="./stream.py - 0 22"
bridge s
link a--s latency=5ms rate=10Mb
link b--s latency=5ms
at 0s a--s background 8Mb flows=3
at 12s a--s background 8Mb
at 60s quit
"""


def test_flows_of_others_give_way(tmp_path: Path) -> None:
    """Two flows beside three get two fifths; beside a background that stays, what it leaves."""
    (tmp_path / "exp.tdl").write_text(FLOWS)
    shutil.copy(STREAM, tmp_path)
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    delivered = Delivered(tmp_path / "run")
    assert abs(delivered.slope_bps(("a.0", "b.0"), 4, 12) / 4e6 - 1) < 0.02
    assert abs(delivered.slope_bps(("a.0", "b.0"), 14, 20) / 2e6 - 1) < 0.02
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]


def test_a_full_queue_delays_by_its_capacity(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    executables(tmp_path, {"send.py": SEND, "receive.py": RECEIVE})
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    found = json.loads((tmp_path / "run/logs/receiver.0.log").read_text())
    # 125 KB at 10 Mb/s are 100 ms, at the 2 Mb/s that are left they would be 500 ms.
    assert 0.099 < found["least"] <= found["most"] < 0.106
    assert abs(found["count"] - 5 * 2e6 / 8000) < 0.01 * 5 * 2e6 / 8000
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
