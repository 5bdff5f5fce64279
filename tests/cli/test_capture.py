"""`tstorm capture`: packets of a run, read back by Wireshark's own reader."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from runtime.rundir.pcapng import Packet, read_packets
from tests.cli.process import DEADLINE_SECONDS, begun, tstorm
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

TDL = """\
service server exec="sleep 1000" expect=any
service client exec="ping -i 0.02 server" expect=any
bridge s
link client--s latency=5ms loss=20% up=1Mb down=1Mb
link server--s latency=5ms
at 100s quit
"""
SHORT = TDL.replace("at 100s quit", "at 2s quit")


def until_packets_pass(folder: Path, run: subprocess.Popen[str]) -> None:
    log = folder / "r/logs/client.0.log"

    def up() -> bool:
        assert run.poll() is None, run.communicate()
        return log.exists() and "bytes from" in log.read_text()

    wait_until(up, "packets pass")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("capture")
    folder.chmod(0o755)
    (folder / "e.tdl").write_text(TDL)
    with begun(folder, "run", "e.tdl", "--out", "r") as run:
        until_packets_pass(folder, run)
        yield folder
    tstorm(folder, "destroy", "--all")


def captured(place: Path, *words: str, size: int = 20_000) -> str:
    """Goes on until the file has so many bytes and ends by Ctrl-C; what was said."""
    file = place / words[words.index("-w") + 1]
    with begun(place, "capture", "r", *words) as process:

        def long_enough() -> bool:
            assert process.poll() is None, process.communicate()
            return file.exists() and file.stat().st_size > size

        wait_until(long_enough, "packets are captured")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, said
    return said


def packets(file: Path) -> list[Packet]:
    with file.open("rb") as opened:
        return list(read_packets(opened, file.name))


def test_a_link_is_seen_before_and_behind_its_queue(place: Path) -> None:
    said = captured(place, "--link", "client.0->s", "-w", "link.pcapng")
    found = packets(place / "link.pcapng")
    assert f"{len(found):,} packets" in said
    assert {one.interface for one in found} == {"client.0->s", "client.0->s/offered"}
    offered = {one.data: one for one in found if one.interface.endswith("/offered")}
    behind = {one.data: one for one in found if not one.interface.endswith("/offered")}
    assert {"", "dropped: lost by the draw"} == {one.comment for one in behind.values()}
    both = offered.keys() & behind.keys()
    assert len(both) > 10
    for data in both:
        took = behind[data].at_ns - offered[data].at_ns
        planned = 0 if behind[data].comment else 5_000_000 + 84 * 8 * 1000  # delay and 1 Mb/s
        assert took == planned
    assert not any(one.data[23] == 253 for one in found), "probes are left out"


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_reads_a_live_capture_from_a_pipe(place: Path) -> None:
    with begun(place, "capture", "r", "client.0", "--filter", "icmp") as process:
        argv = ["tshark", "-r", "-", "-c", "40", "-T", "fields", "-e", "frame.interface_name"]
        argv += ["-e", "ip.checksum.status", "-e", "frame.comment", "-o", "ip.check_checksum:TRUE"]
        done = subprocess.run(
            argv, stdin=process.stdout, capture_output=True, text=True, check=True, timeout=120
        )
        assert process.stdout is not None
        process.stdout.close()
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert {row[0] for row in rows} == {"client.0->s/offered", "s->client.0"}
        assert {(row[1], row[2]) for row in rows} == {("1", "")}
        process.wait(DEADLINE_SECONDS)
        assert process.returncode == 0


HOSTS = """\
service server exec="sleep 1000" expect=any
service client exec="ping -i 0.02 server" expect=any
service other
bridge s
link client--s latency=5ms loss=20%
link server--s latency=5ms
link other--s latency=5ms
at 100s quit
"""


@pytest.fixture(scope="module")
def over_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Client and server are on different hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    folder.chmod(0o755)
    (folder / "e.tdl").write_text(HOSTS)
    with begun(folder, "run", "e.tdl", "--hosts", "2", "--out", "r") as run:
        until_packets_pass(folder, run)
        yield folder
        tstorm(folder, "destroy", "r")


def test_over_hosts_one_file_has_what_all_of_them_have_seen(over_hosts: Path) -> None:
    """A path is one queue, where the instance is that sends: 10 ms and a loss each way."""
    said = captured(over_hosts, "--link", "client.0--server.0", "-w", "path.pcapng")
    found = packets(over_hosts / "path.pcapng")
    assert f"{len(found):,} packets" in said
    assert [one.at_ns for one in found] == sorted(one.at_ns for one in found)
    start_ns = json.loads((over_hosts / "r/manifest.json").read_text())["start_unix_ns"]
    assert 0 < found[0].at_ns - start_ns < 100e9, "times of day, as in a run on one machine"
    for way in ("client.0->server.0", "server.0->client.0"):
        offered = {one.data: one for one in found if one.interface == f"{way}/offered"}
        behind = {one.data: one for one in found if one.interface == way}
        assert {"", "dropped: lost by the draw"} >= {one.comment for one in behind.values()}
        both = offered.keys() & behind.keys()
        assert len(both) > 10
        for data in both:
            took = behind[data].at_ns - offered[data].at_ns
            assert took == (0 if behind[data].comment else 10_000_000)
    assert any(one.comment for one in found)


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_over_hosts_an_instance_sends_and_gets(over_hosts: Path) -> None:
    captured(over_hosts, "client.0", "-w", "own.pcapng", "--filter", "icmp")
    argv = ["tshark", "-r", "own.pcapng", "-T", "fields", "-e", "frame.interface_name"]
    argv += ["-e", "frame.time_epoch", "-e", "ip.src"]
    done = subprocess.run(argv, cwd=over_hosts, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {"client.0->server.0/offered", "server.0->client.0"}
    assert {(row[0][:6], row[2]) for row in rows} == {
        ("client", "10.77.0.2"),
        ("server", "10.77.0.1"),
    }
    times = [float(row[1]) for row in rows]
    assert times == sorted(times)


def test_over_hosts_a_link_is_none(over_hosts: Path) -> None:
    said = tstorm(over_hosts, "capture", "r", "--link", "client--s", "-w", "x", code=1).stderr
    said = " ".join(said.split())
    assert "a path between two instances is one queue, and 'client--s' is none" in said
    assert "--link client.0--server.0" in said
    assert not (over_hosts / "x").exists()
    assert not list((over_hosts / "r").glob("capture-*"))


def test_a_killed_reader_frees_its_place(place: Path) -> None:
    with begun(place, "capture", "r", "--link", "server--s", "-w", "a.pcapng") as process:
        wait_until((place / "a.pcapng").exists, "it captures")
        taken = tstorm(place, "capture", "r", "--link", "server--s", "-w", "b.pcapng", code=1)
        assert "is captured already" in taken.stderr
        process.kill()
        process.wait()
    captured(place, "--link", "server--s", "-w", "c.pcapng", size=2_000)
    assert [path.name for path in (place / "r").glob("capture-*")] == []


def test_what_cannot_be_is_told(place: Path) -> None:
    said = tstorm(place, "capture", "r", "client", "-w", "x", code=1).stderr
    assert "'client' is a service" in said and "write client.0" in said
    said = tstorm(place, "capture", "r", "--link", "a--b", "-w", "x", code=1).stderr
    assert "has no link 'a--b'" in said and "client.0--s" in said
    said = tstorm(place, "capture", "r", "client.0", "--filter", "tcp prot 80", code=1).stderr
    assert "syntax error" in said or "libpcap" in said
    assert tstorm(place, "capture", "r", code=2).stderr.count("name an INSTANCE or --link") == 1
    assert not (place / "x").exists()


def test_a_finished_run_gives_what_it_kept(tmp_path: Path) -> None:
    (tmp_path / "e.tdl").write_text(SHORT)
    tstorm(tmp_path, "run", "e.tdl", "--packets", "--out", "r")
    tstorm(tmp_path, "capture", "r", "--link", "client--s", "-w", "all.pcapng", "--probes")
    name = "client.0--s.pcapng"
    kept, found = packets(tmp_path / "r/packets" / name), packets(tmp_path / "all.pcapng")
    assert sorted(found, key=astuple) == sorted(kept, key=astuple)  # of a moment: in no order
    assert [one.at_ns for one in found] == sorted(one.at_ns for one in found)
    tstorm(tmp_path, "capture", "r", "client.0", "-w", "own.pcapng")
    own = [one for one in packets(tmp_path / "own.pcapng") if one.interface == "s->client.0"]
    arrived = [one for one in kept if one.interface == "s->client.0" and not one.comment]
    assert own == [one for one in arrived if one.data[23] != 253]
    said = tstorm(tmp_path, "capture", "r", "client.0", "-w", "own.pcapng", code=1).stderr
    assert "is there already" in said
    whole = (tmp_path / "r/packets" / name).read_bytes()
    words = ("capture", "r", "--link", "client--s", "-w")
    assert "missing" not in tstorm(tmp_path, *words, "whole.pcapng").stderr
    (tmp_path / "r/packets" / name).write_bytes(whole[: len(whole) // 2])
    said = tstorm(tmp_path, *words, "half.pcapng").stderr
    assert "later ones of client.0->s, s->client.0 are missing" in " ".join(said.split())
    (tmp_path / "r/packets" / name).write_bytes(whole[: len(whole) // 2] + bytes(500))
    assert "edited or damaged" in tstorm(tmp_path, *words, "damaged.pcapng", code=1).stderr
    assert not (tmp_path / "damaged.pcapng").exists()
