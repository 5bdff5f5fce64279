"""Names in /etc/hosts of containers: ours change, theirs stay, and nothing outside is touched."""

from __future__ import annotations

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.agent.pod.hosts_file import (
    BEGIN,
    END,
    MAX_BYTES,
    with_block,
    write,
)
from tests.agent.pod.planted import Planted
from tests.waiting import wait_until

OWN = b"127.0.0.1 localhost\n10.1.2.3 server-0.server\n"
LINES = "10.0.0.1 server.0\n10.0.0.2 server.1 server\n"
BLOCK = BEGIN + LINES.encode() + END


@pytest.mark.parametrize("own", [b"", OWN, OWN[:-1], b"\xff\0\n"])
def test_own_lines_stay_and_ours_are_replaced(own: bytes) -> None:
    ended = own if own.endswith(b"\n") or not own else own + b"\n"
    assert with_block(own, LINES) == ended + BLOCK
    assert with_block(with_block(own, "10.0.0.9 old\n"), LINES) == ended + BLOCK
    assert with_block(with_block(own, LINES), "") == ended


def test_what_only_begins_or_ends_like_ours_is_theirs() -> None:
    half = BEGIN + b"10.0.0.1 a\n"
    assert with_block(half + OWN, LINES) == half + OWN + BLOCK
    assert with_block(half + BLOCK + END, LINES) == half + END + BLOCK
    assert with_block(b"x" + BLOCK, "") == b"x"


@pytest.fixture
def node(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_the_file_is_changed_where_it_is(node: Planted) -> None:
    """It is a mount of its own: another file in its place would not be seen."""
    hosts = node.root(30) / "etc/hosts"
    hosts.parent.mkdir()
    hosts.write_bytes(OWN)
    before = hosts.stat().st_ino
    write(30, LINES, node.proc)
    assert hosts.read_bytes() == OWN + BLOCK
    write(30, "", node.proc)
    assert hosts.read_bytes() == OWN
    assert hosts.stat().st_ino == before


def plant(root: Path, what: str, outside: Path) -> None:
    etc = root / "etc"
    hosts = etc / "hosts"
    if what == "a link of the folder":
        etc.symlink_to(outside.parent)
        return
    etc.mkdir()
    if what == "a link":
        hosts.symlink_to(outside)
    elif what == "a link inside":
        (etc / "other").write_bytes(OWN)
        hosts.symlink_to("other")
    elif what == "a FIFO":
        os.mkfifo(hosts)
    elif what == "a folder":
        hosts.mkdir()
    elif what == "too large":
        with hosts.open("wb") as file:
            file.truncate(MAX_BYTES + 1)


@pytest.mark.parametrize(
    "what", ["nothing", "a link", "a link inside", "a link of the folder", "a FIFO", "a folder"]
)
def test_what_is_planted_is_refused(node: Planted, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "hosts"
    outside.write_bytes(OWN)
    plant(node.root(30), what, outside)
    with pytest.raises(OSError, match=r"."):
        write(30, LINES, node.proc)
    assert outside.read_bytes() == OWN


def test_a_huge_file_is_refused_and_kept(node: Planted, tmp_path: Path) -> None:
    root = node.root(30)
    plant(root, "too large", tmp_path)
    with pytest.raises(OSError, match="larger than 8 MiB"):
        write(30, LINES, node.proc)
    assert (root / "etc/hosts").stat().st_size == MAX_BYTES + 1


def test_who_swaps_the_file_meanwhile_leads_nobody_out(node: Planted, tmp_path: Path) -> None:
    """Links, FIFOs and files of its own take each other's place as fast as they can."""
    outside = tmp_path / "hosts"
    outside.write_bytes(OWN)
    etc = node.root(30) / "etc"
    etc.mkdir()
    over = threading.Event()
    swapped = 0

    def swap() -> None:
        nonlocal swapped
        for number in itertools.count():
            if over.is_set():
                return
            swapped = number
            other = etc / "other"
            (plant_file, plant_link, plant_fifo)[number % 3](other, outside)
            other.replace(etc / "hosts")

    with ThreadPoolExecutor(1) as pool:
        swapping = pool.submit(swap)
        written = 0

        def enough() -> bool:
            nonlocal written
            with suppress(OSError):
                write(30, LINES, node.proc)
                written += 1
            return swapped > 3000 and written > 300

        try:
            wait_until(enough, "swaps and writes", pause=0)
        finally:
            over.set()
        swapping.result()
    assert outside.read_bytes() == OWN


def plant_file(at: Path, _outside: Path) -> None:
    at.write_bytes(OWN)


def plant_link(at: Path, outside: Path) -> None:
    at.symlink_to(outside)


def plant_fifo(at: Path, _outside: Path) -> None:
    os.mkfifo(at)
