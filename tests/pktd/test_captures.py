"""Files of packets of a real pktd (docs/pktd.md, The record of packets)."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.rundir.pcapng import Packet, read_packets
from tests.datapath.client import Client, RefusedError
from tests.pktd.conftest import Setting
from tests.pktd.harness import World, pair
from tests.pktd.reference_digest import digest, xxh64
from tests.pktd.test_traffic import ADDRESSES, CLIENT, SERVER
from tests.waiting import wait_until

EPOCH_UNIX_NS = 10**18
FAR = ADDRESSES[4]


@contextmanager
def capturing(world: World, folder: Path, *options: str) -> Iterator[Client]:
    """A pktd that makes its files in the folder."""
    folder.chmod(0o777)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        engine = world.pktd("--captures", str(descriptor), *options, inherited=[descriptor])
    finally:
        os.close(descriptor)
    yield engine


def counts(engine: Client) -> dict[str, int]:
    words = (word.split("=") for word in engine("captures").split())
    return {key: int(value) for key, value in words}


def end_traffic(engine: Client) -> None:
    """Nothing enters any more, and nothing is under way."""
    engine.all(["unbind 0", "unbind 1"])
    engine.commit()
    wait_until(lambda: engine.engine()["in_flight"] == 0, "all has left the links")


def packets(path: Path) -> list[Packet]:
    with path.open("rb") as file:
        return list(read_packets(file, path.name))


def of(found: list[Packet], interface: str) -> list[Packet]:
    return [packet for packet in found if packet.interface == interface]


def test_the_reference_is_the_published_hash() -> None:
    assert xxh64(b"") == 0xEF46DB3751D8E999
    data = bytes((i * 131 + 7) & 255 for i in range(1500))
    assert xxh64(data) == 0x769FFC2E781F65AF
    assert xxh64(data[:31], 1) == 0xE811D10B03941E82


def test_files_hold_the_packets_that_digests_stand_for(
    world: World, setting: Setting, tmp_path: Path
) -> None:
    with capturing(world, tmp_path, "--digest-times") as engine:
        loss = 300_000_000
        a, _ = pair(world, engine, kind=setting.kind, delay=2_000_000, loss=loss)
        engine(f"epoch {int(engine('clock'))} unix={EPOCH_UNIX_NS}")
        engine("capture near.pcapng 0=a->s 1=s->a")
        engine("capture far.pcapng 2=s->b 3=b->s")
        world.run(a, "ping", "-q", "-c", "40", "-i", "0.01", FAR, check=False)
        end_traffic(engine)
        digests = dict(line.split() for line in engine.body("digests"))
        rows = {row[0]: row for row in engine.rows("stats links")}
        assert counts(engine) == {
            "written": sum(row[3] + row[6] for row in rows.values()),
            "lost": 0,
            "unwritten": 0,
            "errno": 0,
        }
    found = packets(tmp_path / "near.pcapng") + packets(tmp_path / "far.pcapng")
    for number, name in enumerate(("a->s", "s->a", "s->b", "b->s")):
        carried = of(found, name)
        assert len(carried) == rows[number][1]
        dropped = [one for one in carried if one.comment == "dropped: lost by the draw"]
        assert len(dropped) == rows[number][6]
        assert sum(len(one.data) - 14 for one in carried if not one.comment) == rows[number][4]
        assert digest(carried, EPOCH_UNIX_NS) == digests[str(number)]
    # What comes over the first link comes two milliseconds later over the second.
    first = [one.at_ns for one in of(found, "a->s") if not one.comment]
    second = [one.at_ns for one in of(found, "s->b") if not one.comment]
    assert {at - 2_000_000 for at in second} <= set(first)


def test_super_packets_are_segments_in_a_file(
    world: World, setting: Setting, tmp_path: Path
) -> None:
    with capturing(world, tmp_path) as engine:
        a, b = pair(world, engine, kind=setting.kind, rate=200_000_000)
        engine("capture link.pcapng 0=a->s 1=s->a")
        server = world.listen(b, SERVER, "4")
        world.run(a, "python3", "-c", CLIENT, FAR, "3000000")
        assert server.stdout is not None
        server.stdout.readline()
        end_traffic(engine)
        row = next(row for row in engine.rows("stats links") if row[0] == 0)
        assert counts(engine)["lost"] == 0
    carried = of(packets(tmp_path / "link.pcapng"), "a->s")
    assert len(carried) == row[3] + row[5]
    assert max(len(one.data) for one in carried) == 1514
    assert sum(len(one.data) - 14 for one in carried if not one.comment) == row[4]


def test_what_could_not_be_kept_is_counted(world: World, setting: Setting, tmp_path: Path) -> None:
    """A megabyte of room, and TCP without a limit: the writer may or may not keep up."""
    with capturing(world, tmp_path, "--capture-bytes", "1") as engine:
        a, b = pair(world, engine, kind=setting.kind)
        engine("capture link.pcapng 0=a->s 1=s->a")
        server = world.listen(b, SERVER, "4")
        world.run(a, "python3", "-c", CLIENT, FAR, "50000000")
        assert server.stdout is not None
        server.stdout.readline()
        end_traffic(engine)
        rows = {row[0]: row for row in engine.rows("stats links")}
        told = counts(engine)
        assert told["written"] + told["lost"] == rows[0][3] + rows[1][3]
    found = packets(tmp_path / "link.pcapng")
    assert len(found) == told["written"]
    missing = sum(one.missing for one in found)
    assert missing <= told["lost"], "those after the last packet are told at the end of the file"


def test_a_name_that_is_taken_is_refused(world: World, setting: Setting, tmp_path: Path) -> None:
    with capturing(world, tmp_path) as engine:
        pair(world, engine, kind=setting.kind)
        (tmp_path / "there").symlink_to("/etc/passwd")
        with pytest.raises(RefusedError, match="create there: File exists"):
            engine("capture there 0=x")
        with pytest.raises(RefusedError, match="not the plain name of a file"):
            engine("capture ../there 0=x")


def test_what_a_killed_pktd_leaves_can_be_read(
    world: World, setting: Setting, tmp_path: Path
) -> None:
    with capturing(world, tmp_path) as engine:
        a, _ = pair(world, engine, kind=setting.kind)
        engine("capture link.pcapng 0=a->s 1=s->a")
        world.run(a, "ping", "-q", "-c", "5", "-i", "0.01", FAR)
        assert counts(engine)["written"] >= 10
        world.run(a, "ping", "-q", "-c", "5", "-i", "0.01", FAR)
        engine.process.kill()
        engine.process.wait()
    assert len(packets(tmp_path / "link.pcapng")) >= 10


@pytest.mark.root
def test_a_full_disk_leaves_whole_packets_and_says_how_many_not(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], check=True)
    try:
        with World() as world, capturing(world, folder) as engine:
            a, b = pair(world, engine, kind="packet")
            engine("capture link.pcapng 0=a->s 1=s->a")
            server = world.listen(b, SERVER, "4")
            world.run(a, "python3", "-c", CLIENT, FAR, "2000000")
            assert server.stdout is not None
            server.stdout.readline()
            end_traffic(engine)
            rows = {row[0]: row for row in engine.rows("stats links")}
            told = counts(engine)
            with pytest.raises(OSError, match="No space left"):
                (folder / "rest").write_bytes(bytes(256 << 10))
            with pytest.raises(RefusedError, match="create other: No space left"):
                engine("capture other 2=s->b")
            engine.close()
        assert not (folder / "other").exists()
        assert told["errno"] == errno.ENOSPC
        assert told["written"] + told["unwritten"] == rows[0][3] + rows[1][3]
        assert 0 < len(packets(folder / "link.pcapng")) == told["written"]
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_wireshark_reads_the_files(world: World, setting: Setting, tmp_path: Path) -> None:
    with capturing(world, tmp_path) as engine:
        a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
        engine(f"epoch {int(engine('clock'))} unix={EPOCH_UNIX_NS}")
        engine("capture link.pcapng 0=a->s 1=s->a")
        world.run(a, "ping", "-c", "3", "-i", "0.01", FAR)
        engine.close()
    file = str(tmp_path / "link.pcapng")
    argv = ["tshark", "-r", file, "-T", "json", "-o", "ip.check_checksum:TRUE"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    layers = [one["_source"]["layers"] for one in json.loads(done.stdout)]
    names = [one["frame"]["frame.interface_id_tree"]["frame.interface_name"] for one in layers]
    assert names == ["a->s", "s->a"] * 3
    assert all(one["ip"]["ip.checksum.status"] == "1" for one in layers)


def test_a_capture_needs_its_folder(world: World, setting: Setting) -> None:
    engine = world.pktd()
    pair(world, engine, kind=setting.kind)
    with pytest.raises(RefusedError, match="without --captures"):
        engine("capture a 0=x")
