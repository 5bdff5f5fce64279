"""Packets of a path as its node prints them (runtime/agent/pod/path_capture.py)."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtime.agent.pod import path_capture
from runtime.agent.pod.supervisor_settings import Settings
from runtime.agent.process import portlog
from runtime.errors import RunError
from runtime.rpc import control
from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.pcapng_writer import PacketWriter
from tests.agent.pod.test_node_capture import ONLY_UDP
from tests.waiting import wait_until

NAMES = ["a.0->b.0/offered", "a.0->b.0"]
UDP = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\x11" + bytes(18) + b"data"
TCP = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\x06" + bytes(18) + b"data"
REQUEST = {"path": "a.0--b.0", "probes": 0, "filter": ""}


class Relayed:
    """A relay between pipes: `engine` is written to, `looks_on` is closed by who leaves; `printed`
    is the file of what comes."""

    def __init__(self, program: bytes) -> None:
        packets, engine = os.pipe()
        stdin, looks_on = os.pipe()
        printed, out = os.pipe()
        self.engine = os.fdopen(engine, "wb", buffering=0)
        self.looks_on = os.fdopen(looks_on, "wb", buffering=0)
        self.printed = os.fdopen(printed, "rb")

        def work() -> None:
            with (
                os.fdopen(packets, "rb", buffering=0) as source,
                os.fdopen(stdin, "rb") as leaving,
                os.fdopen(out, "wb") as target,
            ):
                path_capture.relay(source, leaving, target, NAMES, program)

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def found(self) -> tuple[list[Packet], dict[str, int]]:
        ends: dict[str, int] = {}
        packets = list(read_packets(self.printed, "the node", ends.__setitem__))
        self.thread.join()
        return packets, ends

    def close(self) -> None:
        for file in (self.engine, self.looks_on, self.printed):
            file.close()
        self.thread.join()


@contextmanager
def relaying(program: bytes) -> Iterator[Relayed]:
    made = Relayed(program)
    try:
        yield made
    finally:
        made.close()


def write(made: Relayed) -> PacketWriter:
    """What an engine has written: two packets are lost before the second one."""
    writer = PacketWriter(made.engine, NAMES, "pktd")
    writer.add(Packet(NAMES[0], 1, UDP, "", 0))
    writer.add(Packet(NAMES[1], 2, TCP, "", 2))
    writer.add(Packet(NAMES[1], 3, UDP, "dropped: lost by the draw", 0))
    return writer


@pytest.mark.parametrize(
    ("program", "times"), [(b"", [1, 2, 3]), (ONLY_UDP, [1, 3])], ids=["all", "udp"]
)
def test_it_ends_with_the_engine_and_the_kernel_filters(program: bytes, times: list[int]) -> None:
    with relaying(program) as made:
        writer = write(made)
        writer.ended(NAMES[1], 5)
        writer.close()
        made.engine.close()
        packets, ends = made.found()
    assert [one.at_ns for one in packets] == times
    assert packets[-1].comment == "dropped: lost by the draw"
    assert sum(one.missing for one in packets) == 2, "told with what comes next"
    assert ends == {NAMES[0]: 0, NAMES[1]: 5}


@pytest.mark.parametrize("program", [b"", ONLY_UDP], ids=["all", "udp"])
def test_an_engine_that_is_killed_has_cut_it(program: bytes) -> None:
    with relaying(program) as made:
        write(made)
        made.engine.close()
        packets, ends = made.found()
    assert packets
    assert ends == {}


@pytest.mark.parametrize("program", [b"", ONLY_UDP], ids=["all", "udp"])
def test_it_ends_with_who_looks_on(program: bytes) -> None:
    with relaying(program) as made:
        write(made)
        first = next(read_packets(made.printed, "what there is does not wait for more"))
        assert first.at_ns == 1
        made.looks_on.close()
        wait_until(lambda: not made.thread.is_alive(), "the relay ends")


@pytest.mark.parametrize("program", [b"", ONLY_UDP], ids=["all", "udp"])
def test_who_leaves_at_once_hears_of_no_damage(program: bytes) -> None:
    with relaying(program) as made:
        made.looks_on.close()
        wait_until(lambda: not made.thread.is_alive(), "the relay ends")
        said = made.printed.read()
    # What the engine writes is passed on as it comes; who filters begins a file, and it is whole.
    assert list(read_packets(io.BytesIO(said), "said")) == [] if program else said == b""


def here(scratch: Path) -> Settings:
    return Settings(name="n1", address="10.0.0.1", digest="d", net=-1, scratch=scratch)


def test_without_the_packet_engine_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run is on at n1"):
        path_capture.serve(REQUEST, here(tmp_path), io.BytesIO(), io.BytesIO())
    portlog.begin(tmp_path / "ports", "kernel")
    with pytest.raises(RunError, match="the kernel's traffic control shapes this run"):
        path_capture.serve(REQUEST, here(tmp_path), io.BytesIO(), io.BytesIO())
    portlog.begin(tmp_path / "ports", "user")
    with pytest.raises(RunError, match="the run does not listen"):
        path_capture.serve(REQUEST, here(tmp_path), io.BytesIO(), io.BytesIO())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probes": 2}, "the request"),
        ({"path": 1}, "the request"),
        ({"filter": "00"}, "whole instructions"),
    ],
)
def test_what_is_no_request_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        path_capture.serve({**REQUEST, **change}, here(tmp_path), io.BytesIO(), io.BytesIO())


def test_the_head_says_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    portlog.begin(tmp_path / "ports", "user")
    head = {"interfaces": [], "left_out": ["b.0"]}
    asked: list[tuple[Path, object]] = []

    def answer(path: Path, request: object) -> tuple[dict[str, Any], None]:
        asked.append((path, request))
        return head, None

    monkeypatch.setattr(control, "ask", answer)
    out = io.BytesIO()
    path_capture.serve(REQUEST, here(tmp_path), io.BytesIO(), out)
    assert json.loads(out.getvalue()) == head
    request = {"ask": "capture", "path": "a.0--b.0", "probes": False}
    assert asked == [(tmp_path / "captures/socket", request)]
