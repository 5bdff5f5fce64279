"""A world for tcald: instances with an eth0 at a bridge, and sockets of this process inside them.

A socket stays in the network namespace in which it was made, so one process can send in one
instance, receive in another, and has one clock for both.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.pktd.harness import Pktd, World
from tests.pktd.pods import PREFIXES, path, pods

BUILD = Path(__file__).resolve().parents[2] / "tcal_c" / "build"
TCALD = BUILD / "tcald"
PORT = 5000
DEADLINE_S = 30.0
MS = 1_000_000
IP_UDP_BYTES = 28
_CLONE_NEWNET = 0x40000000
_STAMP = struct.Struct("=qI")  # when it was sent, CLOCK_REALTIME ns; its number
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35  # asm-generic/socket.h


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """This thread is in the network namespace of a process for as long as the body lasts."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as own:
        with Path(f"/proc/{pid}/ns/net").open("rb") as other:
            if libc.setns(other.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "entering a network namespace")
        try:
            yield
        finally:
            if libc.setns(own.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "coming back from a network namespace")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.005)


def address(number: int, *, six: bool = False) -> str:
    """Of node `number`, from 0."""
    return f"fd77:7473::{number + 1:x}" if six else f"10.77.0.{number + 1}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One datagram: its number, how long it was on the way, when it came (CLOCK_REALTIME)."""

    number: int
    delay_ns: int
    at_ns: int


class Ear:
    """A UDP socket that takes in what comes, with the kernel's time of arrival."""

    def __init__(self, pid: int, *, six: bool = False, port: int = PORT) -> None:
        with inside(pid):
            self.socket = socket.socket(
                socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM
            )
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.socket.bind(("", port))

    def close(self) -> None:
        self.socket.close()

    def take(self, count: int, *, quiet_s: float = 2.0) -> list[Arrival]:
        """What comes, up to `count`, or until nothing has for `quiet_s`."""
        found: list[Arrival] = []
        while len(found) < count and select.select([self.socket], [], [], quiet_s)[0]:
            data, extra, _, _ = self.socket.recvmsg(65536, 64)
            seconds, nanoseconds = struct.unpack("=qq", extra[0][2])
            at_ns = seconds * 1_000_000_000 + nanoseconds
            sent_ns, number = _STAMP.unpack_from(data)
            found.append(Arrival(number, at_ns - sent_ns, at_ns))
        return found


class Mouth:
    """Sends numbered datagrams of a stated size (bytes at layer 3) to one address."""

    def __init__(self, pid: int, to: str, *, port: int = PORT) -> None:
        six = ":" in to
        self._headers = IP_UDP_BYTES + (20 if six else 0)
        with inside(pid):
            self.socket = socket.socket(
                socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM
            )
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 16 << 20)
        self.socket.connect((to, port))
        self._next = 0

    def close(self) -> None:
        self.socket.close()

    def say(self, count: int, *, size: int = 200, every_s: float = 0) -> None:
        """`count` datagrams, evenly spaced if asked, else as fast as it goes."""
        filling = bytes(size - self._headers - _STAMP.size)
        start = time.monotonic()
        for index in range(count):
            while time.monotonic() < start + index * every_s:
                time.sleep(0.0002)
            stamp = _STAMP.pack(time.time_ns(), self._next)
            self._next += 1
            with contextlib.suppress(BlockingIOError):
                self.socket.send(stamp + filling)


class Instances(World):
    """A world that also owns sockets."""

    def __init__(self) -> None:
        super().__init__()
        self._sockets: list[Ear | Mouth] = []

    def __exit__(self, *raised: Any) -> None:
        for made in self._sockets:
            made.close()
        super().__exit__(*raised)

    def ear(self, pid: int, *, six: bool = False) -> Ear:
        made = Ear(pid, six=six)
        self._sockets.append(made)
        return made

    def mouth(self, pid: int, to: str) -> Mouth:
        made = Mouth(pid, to)
        self._sockets.append(made)
        return made


@dataclass(slots=True)
class Network:
    """Instances 0, 1, … with a datapath attached to each, joined by a bridge."""

    world: Instances
    engine: Pktd
    pids: list[int]

    def ear(self, node: int, *, six: bool = False) -> Ear:
        return self.world.ear(self.pids[node], six=six)

    def mouth(self, node: int, to: int, *, six: bool = False) -> Mouth:
        return self.world.mouth(self.pids[node], address(to, six=six))

    def set(self, source: int, dest: int, **properties: int | str) -> None:
        """Changes a path at once."""
        words = " ".join(f"{key}={value}" for key, value in properties.items())
        self.engine(f"path {source} {dest} {words}")
        self.engine.commit()

    def usage(self, source: int, dest: int) -> dict[str, int]:
        names = ("sent_pkts", "sent_bytes", "drop_queue", "drop_loss", "backlog_bytes")
        for row in self.engine.rows("usage all"):
            if row[:2] == [source, dest]:
                return dict(zip(names, row[2:], strict=True))
        return dict.fromkeys(names, 0)

    def tc(self, node: int, *words: str) -> str:
        return self.world.run(self.pids[node], "tc", *words)


def start(world: Instances, *options: str) -> Pktd:
    """tcald, greeted."""
    engine = Pktd(world.start([str(TCALD), *options]))
    engine("hello 1")
    return engine


def attach(engine: Pktd, number: int, pid: int) -> None:
    """Port, node and address `number` for the instance in that namespace; stages its node."""
    engine(f"attach {number} netns=/proc/{pid}/ns/net if=eth0 prefix={PREFIXES}")
    engine(f"node {number} ip={address(number)} ip6={address(number, six=True)}")
    engine(f"bind {number} {number}")


def network(
    world: Instances, count: int = 2, *, options: Sequence[str] = (), **properties: int | str
) -> Network:
    """`count` instances, all of them attached, every path between them with `properties`."""
    pids = pods(world, count)[:-1]
    engine = start(world, *options)
    made = Network(world, engine, pids)
    for number, pid in enumerate(pids):
        attach(engine, number, pid)
    for source in range(count):
        for dest in range(count):
            if source != dest:
                engine(path(source, dest, **properties))
    engine.commit()
    _introduce_all(made)
    return made


def _introduce_all(net: Network) -> None:
    """Everybody knows everybody's MAC address: no resolution is part of a measurement."""
    macs = []
    for pid in net.pids:
        with inside(pid):
            macs.append(mac_of("eth0"))
    for source, pid in enumerate(net.pids):
        lines = [
            f"neigh replace {address(dest, six=six)} lladdr {mac} dev eth0\n"
            for dest, mac in enumerate(macs)
            if dest != source
            for six in (False, True)
        ]
        ip_batch(net.world, pid, lines)


def ip_batch(world: Instances, pid: int, lines: Sequence[str]) -> None:
    """Many ip(8) commands in one process."""
    argv = world.argv(pid, "ip", "-batch", "-")
    done = subprocess.run(argv, input="".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def mac_of(interface: str) -> str:
    """Of an interface of the namespace that this thread is in (ioctl SIOCGIFHWADDR)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        answer = fcntl.ioctl(asked, 0x8927, struct.pack("256s", interface.encode()))
    return ":".join(f"{byte:02x}" for byte in answer[18:24])


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
