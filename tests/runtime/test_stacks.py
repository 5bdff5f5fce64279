"""What instances' own stacks drop is told apart from what the network drops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.stacks import stack_summary
from runtime.stacks.counters import DROPS
from tests.runtime.support import Compile, User, records

COUNT = 400
# The server reads the port of the datagrams only when it is asked at its other port, over the same
# path, so that all of them have come by then.
SERVER = """
import socket
def port(number, **options):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.get("room", 1 << 20))
    s.bind(("", number))
    return s
datagrams, questions = port(7000, room=ROOM), port(7001)
datagrams.setblocking(False)
count = 0
while True:
    text, who = questions.recvfrom(100)
    try:
        while text == b"count" and datagrams.recv(2000):
            count += 1
    except BlockingIOError:
        pass
    questions.sendto(b"%d" % count, who)
"""
CLIENT = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("server.0", 7001))
s.settimeout(0.5)
def ask(text):
    while True:
        try:
            s.send(text)
            return s.recv(100)
        except (TimeoutError, ConnectionRefusedError):
            time.sleep(0.05)
ask(b"there")
mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(COUNT):
    mouth.sendto(bytes(1000), ("server.0", 7000))
    time.sleep(0.0005)
print(int(ask(b"count")), flush=True)
"""


def _script(home: Path, name: str, text: str, **values: int) -> str:
    path = home / name
    for key, value in values.items():
        text = text.replace(key, str(value))
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return f"python3 {path}"


def _result(user: User, plan_of: Compile, room: int, loss: str, hosts: int = 0) -> Any:
    """Summary, manifest, lines of stacks.jsonl, and how many datagrams the server's program got."""
    server = _script(user.home, "server.py", SERVER, ROOM=room)
    client = _script(user.home, "client.py", CLIENT, COUNT=COUNT)
    plan = plan_of(
        f'service server img=x exec="{server}"\nservice client img=x exec="{client}"\nbridge s1\n'
        f"link server--s1 latency=1\nlink client--s1 latency=1 {loss}\n"
        "quit when client exits\nat 120s quit\n"
    )
    assert user.run(plan, hosts=hosts)["outcome"] == "completed"
    run = user.home / "out"
    summary = json.loads((run / "summary.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    got = int((run / "logs/client.0.log").read_text().split()[-1])
    return summary, manifest, records(run / "stacks.jsonl"), got


def _network_dropped(summary: dict[str, Any]) -> int:
    rows = summary["links"] or summary["pairs"]
    return sum(row[key] for row in rows for key in ("drop_queue", "drop_loss", "drop_down"))


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_small_buffer_loses_where_the_network_loses_nothing(
    plan_of: Compile, user: User, hosts: int
) -> None:
    summary, manifest, lines, got = _result(user, plan_of, room=3000, loss="", hosts=hosts)
    lost = summary["stacks"]["server.0"]["UdpRcvbufErrors"]
    assert lost > COUNT // 2
    assert got + lost == COUNT
    assert _network_dropped(summary) == 0
    said = stack_summary.line(summary)
    assert f"server.0 UdpRcvbufErrors {lost:,} ({DROPS['UdpRcvbufErrors']})" in said
    assert said.endswith("the network dropped 0 packets")
    assert (lines[0]["format"], lines[0]["version"]) == ("tstorm-stacks", 1)
    moved = [one["counters"].get("UdpRcvbufErrors", 0) for one in lines[1:]]
    assert sum(moved) == lost
    assert manifest["instance_network"]["net.ipv4.tcp_congestion_control"]
    page = (user.home / "out/report.html").read_text()
    assert "UdpRcvbufErrors" in page
    assert DROPS["UdpRcvbufErrors"] in page


def test_a_lossy_link_is_no_drop_of_a_stack(plan_of: Compile, user: User) -> None:
    summary, _, _, got = _result(user, plan_of, room=1 << 20, loss="loss=30%")
    assert 0 < got < COUNT
    assert _network_dropped(summary) >= COUNT - got
    stacks = summary.get("stacks", {})
    assert [one for one in stacks.values() if not DROPS.keys().isdisjoint(one)] == []
    assert "UdpRcvbufErrors" not in stack_summary.line(summary)


def test_what_is_lost_at_the_end_of_a_life_is_counted(plan_of: Compile, user: User) -> None:
    """The crash comes long before the next second's reading; the rejoined one lost nothing."""
    burst = (
        "import socket, time; "
        "ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 3000); ear.bind(('127.0.0.1', 7000)); "
        "mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"[mouth.sendto(bytes(1000), ear.getsockname()) for _ in range({COUNT})]; "
        "open('sent', 'x').close(); time.sleep(100)"
    )
    path = user.home / "burst.py"
    path.write_text(burst, encoding="utf-8")
    path.chmod(0o644)
    plan = plan_of(
        f'service one img=x exec="python3 {path}" ready="test -e sent"\n'
        "bridge s1\nlink one--s1 latency=1\nstart when ready\nat 10ms one.0 crash\nat 20ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert summary["stacks"]["one.0"]["UdpRcvbufErrors"] > COUNT // 2
