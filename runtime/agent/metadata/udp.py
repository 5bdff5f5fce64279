"""The socket that agents' datagrams come and go by: never waits, and never works for long.

What comes in stays in the kernel's buffer until the loop asks for it, so a flood costs a bounded
part of each period and no more. What does not begin as this run's datagrams do is dropped by the
kernel (`kernel_drops`, with what found no room).
"""

from __future__ import annotations

import asyncio
import ctypes
import random
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

from runtime.agent.clock import Clock
from runtime.agent.process.commandline import PPB
from runtime.errors import RunError
from runtime.rpc import endpoint
from runtime.rpc.endpoint import Endpoint

_SO_ATTACH_FILTER, _SO_MEMINFO = 26, 55  # asm-generic/socket.h
_MEMINFO_DROPS = 8  # position in what SO_MEMINFO tells (linux/sock_diag.h)
_LOAD_BYTE = 0x30  # BPF_LD | BPF_B | BPF_ABS
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_UDP_HEADER = 8  # what a program on a UDP socket sees begins with it
_WHOLE = 0xFFFF_FFFF
_MAX_PREFIX = 64  # jumps of a program are at most 255 instructions long

_INSTRUCTION = struct.Struct("=HBBI")

BUFFER_BYTES = 1 << 20  # asked for; the kernel may give less (net.core.rmem_max)
DATAGRAM_BYTES = 2048  # longer than any of ours: a longer one arrives cut, and is refused
DRAIN_NS = 4_000_000  # of a period of 25 ms
CHECK_EVERY = 64  # datagrams between two looks at the clock

COUNTERS = ("received", "drains_cut_short", "dropped_on_purpose", "send_errors")


class Mailbox:
    """Hosts are numbers. Datagrams are taken from anybody: whether one is genuine shows in it."""

    def __init__(self, clock: Clock, address: Endpoint, drop_ppb: int = 0) -> None:
        self._clock = clock
        self._drop_ppb = drop_ppb
        self._random = random.Random(0)
        self._hosts: Sequence[Endpoint] = ()
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._six = endpoint.is_ipv6(address)
        family = socket.AF_INET6 if self._six else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        try:
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            where = endpoint.text(address)
            raise RunError(f"cannot receive on {where} (UDP): {error.strerror}") from error
        self.port: int = self._socket.getsockname()[1]

    def meet(self, hosts: Sequence[Endpoint], prefix: bytes) -> None:
        """Who the others are, and how their datagrams begin. RunError for those that cannot be
        reached from here."""
        for host in hosts:
            if endpoint.is_ipv6(host) is not self._six:
                mine = "IPv6" if self._six else "IPv4"
                raise RunError(
                    f"{endpoint.text(host)} cannot be reached: this agent sends metadata by {mine}",
                    "give the agents of all hosts addresses of one family (--metadata)",
                )
        self._hosts = hosts
        with suppress(OSError):  # then strangers' datagrams are refused here, at more cost
            _accept_only(self._socket, prefix)

    def drain(self, take: Callable[[int, bytes], None]) -> None:
        """Hands over what has arrived, as far as DRAIN_NS goes."""
        start = now = self._clock.now_ns()
        count = 0
        while True:
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES)
            except OSError:
                break  # empty
            count += 1
            if self._drop_ppb and self._random.randrange(PPB) < self._drop_ppb:
                self._counts["dropped_on_purpose"] += 1
                continue
            take(now, datagram)
            if count % CHECK_EVERY == 0:
                now = self._clock.now_ns()
                if now - start > DRAIN_NS:
                    self._counts["drains_cut_short"] += 1
                    break
        self._counts["received"] += count

    def send(self, host: int, datagram: bytes) -> None:
        """What cannot be sent is lost, as on any network: it is told again."""
        try:
            self._socket.sendto(datagram, self._hosts[host])
        except OSError:
            self._counts["send_errors"] += 1

    def watch(self, on_arrival: Callable[[], None]) -> None:
        """Calls once when something arrives, or is there already."""
        loop = asyncio.get_running_loop()

        def arrived() -> None:
            loop.remove_reader(self._socket)
            on_arrival()

        loop.add_reader(self._socket, arrived)

    def look_away(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)

    def counters(self) -> dict[str, int]:
        return {**self._counts, "kernel_drops": _dropped(self._socket)}

    def close(self) -> None:
        self._socket.close()


def _program(prefix: bytes) -> bytes:
    """Instructions that take datagrams with this prefix whole, and nothing else."""
    assert len(prefix) <= _MAX_PREFIX
    found = []
    for at, byte in enumerate(prefix):
        left = 2 * (len(prefix) - at)  # from the jump to the last instruction but itself
        found.append(_INSTRUCTION.pack(_LOAD_BYTE, 0, 0, _UDP_HEADER + at))
        found.append(_INSTRUCTION.pack(_JUMP_IF_EQUAL, 0, left - 1, byte))
    found.append(_INSTRUCTION.pack(_RETURN, 0, 0, _WHOLE))
    found.append(_INSTRUCTION.pack(_RETURN, 0, 0, 0))
    return b"".join(found)


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog (linux/filter.h)."""

    _fields_ = (("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _accept_only(receiver: socket.socket, prefix: bytes) -> None:
    """The kernel drops datagrams that begin otherwise, before they take up room: else a flood of
    garbage would fill the socket's buffer. It does so from now on; what is in the buffer already
    stays. Raises OSError.

    A classic BPF program on the socket (Documentation/networking/filter.rst of Linux;
    SO_ATTACH_FILTER in socket(7)), which any user may attach."""
    code = _program(prefix)
    instructions = ctypes.create_string_buffer(code, len(code))
    count = len(code) // _INSTRUCTION.size
    whole = _FilterProgram(count, ctypes.cast(instructions, ctypes.c_void_p))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(whole))


def _dropped(receiver: socket.socket) -> int:
    """Datagrams that the kernel dropped at this socket: filtered out, or without room."""
    try:
        told = receiver.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    except OSError:
        return 0  # Linux before 4.12
    values = struct.unpack(f"={len(told) // 4}I", told)
    return int(values[_MEMINFO_DROPS]) if len(values) > _MEMINFO_DROPS else 0
