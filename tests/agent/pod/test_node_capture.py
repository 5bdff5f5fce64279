"""Packets of an instance as the kernel of its node has them (runtime/agent/pod/node_capture.py)."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from runtime.agent.pod import node_capture
from runtime.agent.pod.supervisor_settings import Settings
from runtime.errors import RunError
from runtime.json_schema import parse
from runtime.rundir.pcapng import Packet, read_packets
from tests.pktd.harness import World
from tests.pktd.pods import pods, two_pods

REPOSITORY = Path(__file__).resolve().parents[3]
UID = "00000000-0000-0000-0000-000000000001"
PROGRAM = """
import sys
from pathlib import Path
from runtime.agent.pod.node_capture import capture, request_of
from runtime.json_schema import parse
asked = request_of(parse(sys.stdin.buffer.readline(), "the request"))
capture(asked, sys.stdin.buffer, sys.stdout.buffer, Path(sys.argv[1]))
"""
# ip proto 17, as `tcpdump -dd` shows it: load the half-word at 12, …
ONLY_UDP = b"".join(
    struct.pack("@HBBI", *one)
    for one in (
        (0x28, 0, 0, 12),
        (0x15, 0, 3, 0x800),
        (0x30, 0, 0, 23),
        (0x15, 0, 1, 17),
        (0x6, 0, 0, 0x40000),
        (0x6, 0, 0, 0),
    )
)
MS = 1_000_000


@pytest.fixture
def world() -> Iterator[World]:
    with World() as made:
        yield made


@pytest.fixture
def goes_on(tmp_path: Path) -> Path:
    """A file that is there while a run is on."""
    found = tmp_path / "ports"
    found.touch()
    return found


def line(filter_: str = "") -> bytes:
    return json.dumps({"pod": UID, "instance": "a.0", "filter": filter_}).encode() + b"\n"


@contextmanager
def looking_on(
    world: World, pid: int, run: Path, program: bytes = b""
) -> Iterator[subprocess.Popen[bytes]]:
    """A capture in that namespace, which has begun."""
    argv = world.argv(pid, sys.executable, "-c", PROGRAM, str(run))
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(line(program.hex()))
        process.stdin.flush()
        assert printed(process).peek(), "the head comes when all is ready"
        yield process
        process.kill()


def printed(process: subprocess.Popen[bytes]) -> io.BufferedReader:
    return cast(io.BufferedReader, process.stdout)


def to_the_end(process: subprocess.Popen[bytes]) -> tuple[list[Packet], dict[str, int]]:
    ended: dict[str, int] = {}
    found = list(read_packets(printed(process), "the capture", ended.__setitem__))
    assert process.wait() == 0
    return found, ended


def echoes(found: list[Packet], interface: str, kind: int) -> list[Packet]:
    """ICMP of that type over IPv4."""
    return [
        one
        for one in found
        if one.interface == interface and one.data[12:14] == b"\x08\x00"
        if one.data[23] == 1 and one.data[34] == kind
    ]


@pytest.mark.e2e
@pytest.mark.root
def test_it_is_what_the_instance_sends_and_what_comes_to_it(world: World, goes_on: Path) -> None:
    a, _, _ = pods(world, 2)
    with looking_on(world, a, goes_on) as process:
        world.run(a, "ping", "-c", "3", "-i", "0.05", "10.77.0.2")
        world.run(a, "ping", "-c", "1", "127.0.0.1")  # which is no packet of the experiment
        assert process.stdin is not None
        process.stdin.close()
        found, ended = to_the_end(process)
    assert ended == {"a.0->network": 0, "network->a.0": 0}
    sent, come = echoes(found, "a.0->network", 8), echoes(found, "network->a.0", 0)
    assert len(sent) == len(come) == 3
    assert not echoes(found, "network->a.0", 8)
    for request, answer in zip(sent, come, strict=True):
        assert request.data[38:42] == answer.data[38:42]
        assert request.at_ns < answer.at_ns < request.at_ns + 10**9
    assert b"\x7f\0\0\1" not in {one.data[30:34] for one in found}


@pytest.mark.e2e
@pytest.mark.root
@pytest.mark.parametrize("kind", ["tap", "packet"])
def test_where_the_engine_shapes_it_is_before_the_queue(
    world: World, goes_on: Path, kind: str
) -> None:
    a, _, _ = two_pods(world, world.pktd(), kind=kind, delay=40 * MS)
    world.run(a, "ping", "-c", "1", "10.77.0.2")  # it asks for the address of its peer
    with looking_on(world, a, goes_on) as process:
        world.run(a, "ping", "-c", "3", "-i", "0.1", "10.77.0.2")
        goes_on.unlink()
        found, _ = to_the_end(process)
    sent, come = echoes(found, "a.0->network", 8), echoes(found, "network->a.0", 0)
    assert len(sent) == len(come) == 3
    for request, answer in zip(sent, come, strict=True):
        assert answer.at_ns - request.at_ns >= 80 * MS, "queue and delay of both ways lie between"


@pytest.mark.e2e
@pytest.mark.root
def test_the_kernel_filters_and_an_interface_that_goes_ends_it(world: World, goes_on: Path) -> None:
    a, _, _ = pods(world, 2)
    send = "import socket; s = socket.socket(type=2); s.sendto(b'x' * 9, ('10.77.0.2', 9))"
    with looking_on(world, a, goes_on, ONLY_UDP) as process:
        world.run(a, "ping", "-c", "1", "10.77.0.2")
        world.run(a, "python3", "-c", send)
        world.run(a, "ip", "link", "set", "eth0", "down")
        world.run(a, "ip", "link", "set", "eth0", "up")
        world.run(a, "python3", "-c", send)
        world.run(a, "ip", "link", "delete", "eth0")
        found, ended = to_the_end(process)
    assert [one.interface for one in found] == ["a.0->network"] * 2
    assert {one.data[-9:] for one in found} == {b"x" * 9}
    assert set(ended) == {"a.0->network", "network->a.0"}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "the request"),
        (b"[]\n", "the request"),
        (line("0"), "whole instructions"),
        (line("00" * 12), "whole instructions"),
        (line("00" * 8 * 4097), "whole instructions"),
        (line("x"), "whole instructions"),
    ],
)
def test_what_is_no_request_is_refused(sent: bytes, words: str) -> None:
    with pytest.raises(RunError, match=words):
        node_capture.request_of(parse(sent, "the request"))


def test_without_a_run_there_is_nothing_to_see(tmp_path: Path) -> None:
    here = Settings(name="n1", address="10.0.0.1", digest="d", net=-1, scratch=tmp_path)
    with pytest.raises(RunError, match="no run is on at n1"):
        node_capture.serve(json.loads(line()), here, io.BytesIO(), io.BytesIO())
