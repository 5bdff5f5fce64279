"""`router` and `lan` in virtual time: programs that forward, and frames of all kinds."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ROOT, tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

SECOND = 10**9


def _summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    assert found["verdict"]["state"] == "valid", found["verdict"]
    return found


def _answers(run: Path) -> list[tuple[float, float, int]]:
    """Of ping: when answers came (s of the run), round trips in ms, and the TTL."""
    begin = json.loads((run / "manifest.json").read_text())["start_unix_ns"] / SECOND
    line = re.compile(r"^\[([0-9.]+)\] .*ttl=([0-9]+) time=([0-9.]+) ms$", re.MULTILINE)
    found = line.findall((run / "logs/client.0.log").read_text())
    return [(float(at) - begin, float(rtt), int(ttl)) for at, ttl, rtt in found]


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, twice."""
    folder = tmp_path_factory.mktemp("static")
    for name in ("static.tdl", "routes.sh"):
        shutil.copy(ROOT / "examples/routers" / name, folder)
    for run in ("run", "again"):
        tstorm(folder, "run", "static.tdl", "--time", "virtual", "--quiet", "--out", run)
    return folder / "run"


def test_packets_pass_two_routers_while_their_link_is_up(static: Path) -> None:
    answers = _answers(static)
    assert {ttl for _, _, ttl in answers} == {62}  # two routers took one each, the links none
    assert {round(rtt) for at, rtt, _ in answers if at > 1} <= {16, 18}  # 18: somebody asked by ARP
    assert sum(at < 3 for at, _, _ in answers) > 10
    assert not [at for at, _, _ in answers if 3.1 < at < 5]
    assert sum(5.2 < at < 8 for at, _, _ in answers) > 8


def test_each_link_is_judged_and_what_programs_decide_is_not(static: Path) -> None:
    _summary(static)
    pairs = json.loads((static / "certificate.json").read_text())["pairs"]
    assert {(one["from"], one["to"]) for one in pairs} == {
        ("client.0", "r.0"), ("r.0", "client.0"), ("r.0.eth1", "r.1"), ("r.1", "r.0.eth1"),
        ("server.0", "r.1.eth1"), ("r.1.eth1", "server.0"),
    }  # fmt: skip


def test_two_runs_are_the_same(static: Path) -> None:
    again = static.with_name("again")
    for name in ("samples.jsonl", "probes.jsonl", "events.jsonl", "logs/client.0.log"):
        assert (static / name).read_bytes() == (again / name).read_bytes(), name


LAN = """\
service client exec="ping -D -i 0.5 10.79.0.3" expect=run
service far replicas=2 exec="./listen.py"
lan one
lan two
addresses auto
link client--one latency=1ms
link far--two latency=2ms
link one--two latency=3ms
at 1s far.1 crash
at 2s far.1 join
from 3s to 4s one--two leave
at 6s quit
"""
LISTEN = """\
#!/usr/bin/env python3
import socket
any_frame = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
group = b"\\x01\\x80\\xc2\\x00\\x00\\x0e"
any_frame.bind(("eth0", 0x88B5))
own = any_frame.getsockname()[4]
any_frame.send(group + own + b"\\x88\\xb5" + b"hello from " + own.hex().encode() + bytes(30))
while True:
    data = any_frame.recv(2000)
    print(data[14:].rstrip(b"\\0").decode(), flush=True)
"""


@pytest.fixture(scope="module")
def lan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lan")
    (folder / "exp.tdl").write_text(LAN)
    (folder / "listen.py").write_text(LISTEN)
    (folder / "listen.py").chmod(0o755)
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def test_a_lan_joins_what_is_at_it(lan: Path) -> None:
    _summary(lan)
    answers = _answers(lan)
    assert {round(rtt) for _, rtt, _ in answers} <= {12, 24}  # 24: ARP has asked first
    assert not [at for at, _, _ in answers if 1.1 < at < 2 or 3.1 < at < 4]
    assert sum(4.4 < at < 6 for at, _, _ in answers) >= 2


def test_a_lan_carries_protocols_that_are_not_of_the_internet(lan: Path) -> None:
    said = (lan / "logs/far.0.log").read_text()
    assert len(re.findall(r"hello from 0254530100", said)) >= 1  # of the other one's second life
