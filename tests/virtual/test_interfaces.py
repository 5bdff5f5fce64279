"""`interfaces`: programs that are in several networks at once, by address and by device, in virtual
time. What leaves by an interface takes its link alone, and the rest of an instance's links go on
without it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import read_plan
from compiler.plan.types import COMMON_MAC, device_mac
from tests.cli.process import ROOT, tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

MS, SECOND = 10**6, 10**9


def _record(run: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / name).read_text())
    return found


def _links(run: Path) -> dict[str, int]:
    return {one["link"]: one["pkts"] for one in _record(run, "summary.json")["links"]}


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example."""
    folder = tmp_path_factory.mktemp("phone")
    for name in ("phone.tdl", "phone.py"):
        shutil.copy(ROOT / "examples/networks" / name, folder)
    tstorm(folder, "run", "phone.tdl", "--time", "virtual", "--quiet", "--packets", "--out", "run")
    return folder / "run"


def test_a_program_goes_on_over_its_other_network(phone: Path) -> None:
    said = (phone / "logs/phone.0.log").read_text().splitlines()
    wanted = ["over phone.0: 16 ms", "over phone.0.eth1: 82 ms", "over phone.0: 16 ms"]
    assert said == wanted
    summary = _record(phone, "summary.json")
    assert summary["verdict"]["state"] == "valid", summary["verdict"]


def test_each_interface_is_judged_by_the_path_of_its_link(phone: Path) -> None:
    planned = {
        (one["from"], one["to"], one["epoch"]["from_ns"] // SECOND): one["planned"]
        for one in _record(phone, "certificate.json")["pairs"]
    }
    assert {pair[:2] for pair in planned} == {
        (src, dst)
        for own in ("phone.0", "phone.0.eth1")
        for src, dst in ((own, "server.0"), ("server.0", own))
    }
    assert planned["phone.0", "server.0", 0]["delay_ns"] == 8 * MS
    assert planned["phone.0.eth1", "server.0", 0]["delay_ns"] == 41 * MS


def test_packets_are_on_the_link_of_the_address_that_they_come_from(phone: Path) -> None:
    """The captures of both links, with all that programs sent."""
    plan = read_plan(phone / "plan")
    address = {node.name: bytes(map(int, node.ipv4.split("."))) for node in plan.topology.nodes[:3]}
    home = (phone / "packets/phone.0--home.pcapng").read_bytes()
    cell = (phone / "packets/phone.0--cell.pcapng").read_bytes()
    own, other = address["phone.0"], address["phone.0.eth1"]
    assert home.count(own) > 100 and other not in home
    assert cell.count(other) > 20 and own not in cell
    # And so are the MACs: what comes has that of its interface, what goes that of the server.
    device = [bytes.fromhex(mac.replace(":", "")) for mac in (device_mac(0), device_mac(2))]
    usual = bytes.fromhex(COMMON_MAC.replace(":", ""))
    assert home.count(device[0] + usual) > 20 and home.count(usual + device[0]) > 20
    assert cell.count(device[1] + usual) > 10 and cell.count(usual + device[1]) > 10
    assert device[1] not in home and device[0] not in cell


PINGS = """\
service phone interfaces exec="./pings.sh"
service server
bridges home cell net
link phone--home latency=1ms
link phone--cell latency=20ms
link home--net
link cell--net
link server--net
from 5s to 10s phone--cell leave
at 15s phone disconnect
at 18s phone reconnect
at 20s phone crash
at 22s phone join
at 30s partition phone;server
at 32s heal
expect rtt phone.0.eth1 server < 45ms to 4s
expect unreachable phone.0.eth1 server from 5s to 10s
expect loss phone server < 1% from 5s to 10s
expect throughput phone.0.eth1 server > 5Kb from 11s to 14s
at 40s quit
"""
SCRIPT = """\
#!/bin/sh
for by in eth0 eth1 $TSTORM_IPV4; do
    for six in -4 -6; do
        case $by$six in 10.*-6) continue ;; esac
        stdbuf -oL ping $six -D -n -i 0.1 -I $by server.0 >>$by$six.log &
    done
done
python3 -c "
import fcntl, socket
end = socket.socket()
for i in range(2):
    print(fcntl.ioctl(end, 0x8927, b'eth%d' % i + bytes(28))[18:24].hex(':'))
" >>macs.txt
wait
"""


@pytest.fixture(scope="module")
def pings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pings")
    (folder / "exp.tdl").write_text(PINGS)
    (folder / "pings.sh").write_text(SCRIPT)
    (folder / "pings.sh").chmod(0o755)
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def _answers(run: Path) -> dict[str, list[tuple[float, float]]]:
    """By interface and family: when answers came (s of the run), and round trips in ms."""
    begin = _record(run, "manifest.json")["start_unix_ns"] / SECOND
    found: dict[str, list[tuple[float, float]]] = {}
    line = re.compile(r"^\[([0-9.]+)\] .*icmp_seq=.*time=([0-9.]+) ms$", re.MULTILINE)
    for log in (run / "instances/phone.0").glob("*-[46].log"):
        answers = line.findall(log.read_text())
        found[log.stem] = [(float(at) - begin, float(rtt)) for at, rtt in answers]
    return found


def test_ping_takes_the_link_of_its_device(pings: Path) -> None:
    answers = _answers(pings)
    assert answers.keys() == {"eth0-4", "eth0-6", "eth1-4", "eth1-6", "10.77.0.1-4"}
    for by, found in answers.items():
        wanted = 40 if by.startswith("eth1") else 2
        assert {round(rtt) for _, rtt in found} == {wanted}, by


def test_devices_have_macs_of_their_own_in_each_life(pings: Path) -> None:
    said = (pings / "instances/phone.0/macs.txt").read_text().split()
    assert said == ["02:54:53:01:00:00", "02:54:53:01:00:02"] * 2


def _between(found: list[tuple[float, float]], begin: float, end: float) -> int:
    return sum(begin < at < end for at, _ in found)


def test_a_link_that_leaves_cuts_its_interface_only(pings: Path) -> None:
    answers = _answers(pings)
    for by, found in answers.items():
        assert _between(found, 0.5, 4.9) > 40, by
        assert _between(found, 5.1, 9.9) > 40 or by.startswith("eth1")
        assert not (_between(found, 5.1, 9.9) and by.startswith("eth1")), by
        assert _between(found, 10.2, 14.9) > 40, by


def test_what_happens_to_the_instance_happens_to_all_its_interfaces(pings: Path) -> None:
    for by, found in _answers(pings).items():
        assert not _between(found, 15.1, 17.9), f"{by}: disconnected"
        assert _between(found, 18.2, 19.9) > 10, by
        assert not _between(found, 20.1, 21.9), f"{by}: crashed"
        assert _between(found, 22.5, 29.9) > 60, f"{by}: in its next life"
        assert not _between(found, 30.1, 31.9), f"{by}: the server is in another part"
        assert _between(found, 32.2, 39.9) > 60, by


def test_nothing_was_counted_that_is_not_of_the_plan(pings: Path) -> None:
    summary = _record(pings, "summary.json")
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
    assert summary["engine"]["drop_spoofed"] == 0
    links = _links(pings)
    assert links["phone.0->cell"] > 200 and links["phone.0->home"] > 400


def test_what_is_expected_of_an_interface_is_judged_by_its_path(pings: Path) -> None:
    found = _record(pings, "summary.json")["expectations"]
    assert [one["state"] for one in found] == ["passed"] * 4, found
