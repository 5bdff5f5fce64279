"""A world for tcald: instances with an eth0 at a bridge, and sockets of this process inside them.

A socket stays in the network namespace in which it was made, so one process can send in one
instance, receive in another, and has one clock for both.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Self

from tests.datapath.client import Client
from tests.intime import Attempt, in_time
from tests.pktd.pods import PREFIXES, change, path

BUILD = Path(__file__).resolve().parents[2] / "tcal_c" / "build"
TCALD = BUILD / "tcald"
FIRST_PORT = 5000
DEADLINE_S = 120.0  # only a test that fails takes so long
MS = 1_000_000
IP_UDP_BYTES = 28
_CLONE_NEWNET = 0x40000000
_STAMP = struct.Struct("=qI")  # when it was sent, CLOCK_REALTIME ns; its number
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35  # asm-generic/socket.h


class Space:
    """A network namespace without a process: it lasts until it is closed and nothing is in it."""

    def __init__(self) -> None:
        with _back_afterwards():
            _checked(_LIBC.unshare(_CLONE_NEWNET), "making a network namespace")
            self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and what it starts, is in the namespace for as long as the body lasts."""
        with _back_afterwards():
            _checked(_LIBC.setns(self._fd, _CLONE_NEWNET), "entering a network namespace")
            yield

    def run(self, *argv: str, given: str = "") -> str:
        """Runs a program inside to its end; fails with what it said."""
        with self.inside():
            done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def ip(self, lines: Sequence[str]) -> None:
        """Many ip(8) commands in one process."""
        self.run("ip", "-batch", "-", given="".join(f"{line}\n" for line in lines))


_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, attempt: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), attempt)


@contextmanager
def _back_afterwards() -> Iterator[None]:
    with Path("/proc/thread-self/ns/net").open("rb") as own:
        try:
            yield
        finally:
            _checked(_LIBC.setns(own.fileno(), _CLONE_NEWNET), "coming back to a namespace")


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

    def __init__(self, space: Space, port: int, *, six: bool = False) -> None:
        with space.inside():
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

    def __init__(self, space: Space, to: str, port: int) -> None:
        six = ":" in to
        self._headers = IP_UDP_BYTES + (20 if six else 0)
        with space.inside():
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


class Instances:
    """Network namespaces, processes and sockets of a test; leaving it ends them."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._port = FIRST_PORT

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def spaces(self, count: int) -> list[Space]:
        """`count` namespaces with an eth0 each at one bridge, addresses of nodes 0, 1, …

        They know each other's MAC addresses: no resolution is part of a measurement.
        """
        bridge, *made = (self._stack.enter_context(closing(Space())) for _ in range(count + 1))
        lines = ["link add br0 type bridge", "link set br0 up"]
        for number, space in enumerate(made):
            peer = f"peer name eth0 address {mac(number)} netns {space.path}"
            lines += [
                f"link add far{number} type veth {peer}",
                f"link set far{number} master br0 up",
            ]
        bridge.ip(lines)
        for number, space in enumerate(made):
            lines = [
                "link set lo up",
                f"addr add {address(number)}/16 dev eth0",
                f"addr add {address(number, six=True)}/64 dev eth0 nodad",
                "link set eth0 up",
            ]
            space.ip([*lines, *_neighbours(number, count)])
        return made

    def tcald(self, *options: str) -> Client:
        """tcald, greeted."""
        process = subprocess.Popen([TCALD, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stack.callback(_end, process)
        engine = Client(process)
        engine("hello 1")
        return engine

    def new_port(self) -> None:
        """Whatever is still on its way belongs to the sockets before."""
        self._port += 1

    def ear(self, space: Space, *, six: bool = False) -> Ear:
        return self._stack.enter_context(closing(Ear(space, self._port, six=six)))

    def mouth(self, space: Space, to: str) -> Mouth:
        return self._stack.enter_context(closing(Mouth(space, to, self._port)))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def mac(number: int) -> str:
    return f"02:00:0a:4d:{number >> 8:02x}:{number & 255:02x}"


def _neighbours(own: int, count: int) -> list[str]:
    return [
        f"neigh replace {address(number, six=six)} lladdr {mac(number)} dev eth0"
        for number in range(count)
        if number != own
        for six in (False, True)
    ]


@dataclass(slots=True)
class Network:
    """Instances 0, 1, … with a datapath attached to each, joined by a bridge."""

    world: Instances
    engine: Client
    spaces: list[Space]

    def ear(self, node: int, *, six: bool = False) -> Ear:
        return self.world.ear(self.spaces[node], six=six)

    def mouth(self, node: int, to: int, *, six: bool = False) -> Mouth:
        return self.world.mouth(self.spaces[node], address(to, six=six))

    def set(self, source: int, dest: int, **properties: int | str) -> None:
        """Changes a path at once."""
        self.engine(change(source, dest, **properties))
        self.engine.commit()

    def reset(self) -> None:
        """Every path as a path without any properties, and new sockets for what is asked for."""
        self.world.new_port()
        for source, dest in self.pairs():
            self.engine(path(source, dest, dist="normal"))
        self.engine.commit()

    def pairs(self) -> list[tuple[int, int]]:
        return list(permutations(range(len(self.spaces)), 2))

    def usage(self, source: int, dest: int) -> Counter[str]:
        """Subtract an earlier one to see what one test has done."""
        names = ("sent_pkts", "sent_bytes", "drop_queue", "drop_loss", "backlog_bytes")
        for row in self.engine.rows("usage all"):
            if row[:2] == [source, dest]:
                return Counter(dict(zip(names, row[2:], strict=True)))
        return Counter()


def judged_in_time(test: Callable[..., None]) -> Callable[..., None]:
    """For a test of times on the fixture `net`: again, as if new, if it was late (tests.intime)."""

    @functools.wraps(test)
    def inner(net: Network, **given: object) -> None:
        def trial(_attempt: Attempt) -> None:
            net.reset()
            test(net, **given)

        in_time(trial)

    return inner


def attach(engine: Client, number: int, space: Space) -> None:
    """Port, node and address `number` for the instance in that namespace; stages its node."""
    engine(f"attach {number} netns={space.path} if=eth0 prefix={PREFIXES}")
    engine(f"node {number} ip={address(number)} ip6={address(number, six=True)}")
    engine(f"bind {number} {number}")


def network(world: Instances, count: int = 2, **properties: int | str) -> Network:
    """`count` instances, all of them attached, every path between them with `properties`."""
    made = Network(world, world.tcald(), world.spaces(count))
    for number, space in enumerate(made.spaces):
        attach(made.engine, number, space)
    for source, dest in made.pairs():
        made.engine(path(source, dest, **properties))
    made.engine.commit()
    return made
