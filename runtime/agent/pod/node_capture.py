"""`tstorm-agent capture`: the packets of an instance of this node, as pcapng on stdout, for
`tstorm capture` (docs/supervisor.md).

Input: a line of JSON on stdin, {"pod": UID, "instance": NAME, "filter": HEX}, where HEX is a
program of the kernel's packet filter, 8 bytes an instruction as libpcap has them, '' for none.
Output: two interfaces, what the instance sends and what comes to it, by packet(7) sockets in the
network of its pod: at its eth0, and at the device to which the packet engine, where that shapes,
has what it sends (docs/pktd.md, path mode). So what is sent is seen before the queue of its path
with the packet engine, and behind the path with the kernel's datapath, whose queues are at eth0.

It goes on until stdin ends, which is when whoever looks on goes, or the run on this node, or the
network. The kernel waits for none of this: what is read too slowly is lost to the capture, which is
counted. Times are those of the node's real-time clock.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from runtime.agent.pod.podprocesses import PROC, members
from runtime.agent.pod.supervisor_settings import Settings
from runtime.errors import RunError, unexpected
from runtime.json_schema import TEXT, Shape, check
from runtime.rundir.pcapng import Packet
from runtime.rundir.pcapng_writer import PacketWriter
from runtime.system import namespaces
from runtime.system.network.interface import INTERFACE

_REQUEST = Shape({"pod": TEXT, "instance": TEXT, "filter": TEXT})
_PROGRAM = "tstorm-agent capture"
_ENGINE = "emu"  # begins the names of the packet engine's devices
_PACKET_BYTES = 1 << 17  # a super-packet has 64 KiB and its header
_BUFFER_BYTES = 32 << 20  # of a socket, for packets that were not read yet
_AT_ONCE = 256  # packets of a socket that are read before the next one's turn
_LOOK_SECONDS = 0.5  # between two looks whether the run goes on
NICE = 10  # the run comes first

# Of linux/if_ether.h, asm/socket.h and linux/if_packet.h; Python does not name them.
_ALL_PROTOCOLS, _ATTACH_FILTER, _BUFFER_FORCED, _TIMES = 3, 26, 33, 35
_PACKET_LEVEL, _STATISTICS = 263, 6
_TIME, _COUNTS, _INSTRUCTION_BYTES, _INSTRUCTIONS = struct.Struct("@qq"), "@II", 8, 4096


def sent_by(instance: str) -> str:
    """The name of the interface that has what the instance sends."""
    return f"{instance}->network"


def come_to(instance: str) -> str:
    """The name of the one that has what comes to it."""
    return f"network->{instance}"


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """`filter` is '' or hexadecimal digits."""

    pod: str
    instance: str
    filter: str


def request_of(request: Any) -> CaptureRequest:
    """RunError for what is none."""
    check(request, _REQUEST, "the request")
    filter_of(request["filter"])
    return CaptureRequest(request["pod"], request["instance"], request["filter"])


def filter_of(digits: str) -> bytes:
    """A program of the kernel's packet filter. RunError."""
    try:
        program = bytes.fromhex(digits)
    except ValueError:
        program = b"?"
    size, rest = divmod(len(program), _INSTRUCTION_BYTES)
    if rest or size > _INSTRUCTIONS:
        raise RunError("the request: filter must be whole instructions of a filter")
    return program


def serve(request: Any, here: Settings, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """One capture, to its end. RunError."""
    asked = request_of(request)
    if not here.ports.exists():
        raise RunError(f"no run is on at {here.name}")
    found = members([asked.pod])[asked.pod]
    if not found:
        raise RunError(f"no process of the pod of {asked.instance} is on {here.name}")
    try:
        space = os.open(PROC / str(found[0].pid) / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
        namespaces.enter_network(space)
    except OSError as error:
        raise unexpected(error) from error
    os.nice(NICE)
    capture(asked, stdin, stdout, here.ports)


def capture(asked: CaptureRequest, stdin: BinaryIO, stdout: BinaryIO, run: Path) -> None:
    """In the network of this process, while the file `run` is there. RunError."""
    names = [sent_by(asked.instance), come_to(asked.instance)]
    try:
        taps = _opened(bytes.fromhex(asked.filter))
        batch = io.BytesIO()
        writer = PacketWriter(batch, names, _PROGRAM)
        send(batch, stdout)
        is_over = False
        while taps and not is_over:
            heard: list[Any] = [stdin, *(tap.socket for tap in taps)]
            ready, _, _ = select.select(heard, [], [], _LOOK_SECONDS)
            has_left = stdin in ready and not os.read(stdin.fileno(), 1 << 12)
            is_over = has_left or not run.exists()
            for tap in taps:
                for packet in tap.read(*names):
                    writer.add(packet)
            send(batch, stdout)
            taps = [tap for tap in taps if not tap.gone]
        for name in names:
            writer.ended(name, 0)  # it adds what packets have told
        writer.close()
        send(batch, stdout)
    except BrokenPipeError:
        return  # nobody looks on any more
    except OSError as error:
        raise unexpected(error) from error


def send(batch: io.BytesIO, out: BinaryIO) -> None:
    """Blocks that leave together, by one system call. OSError."""
    if batch.tell():
        out.write(batch.getvalue())
        out.flush()
        batch.seek(0)
        batch.truncate()


class _Tap:
    """A packet socket at one device. OSError."""

    def __init__(self, device: str, program: bytes) -> None:
        self.gone = self._is_last = False  # with its device; then what is in the queue is the last
        self._untold = 0  # that were lost
        self._is_engine = device.startswith(_ENGINE)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # deaf until it is bound
        if program:
            attach_filter(self.socket, program)
        self.socket.setsockopt(socket.SOL_SOCKET, _BUFFER_FORCED, _BUFFER_BYTES)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMES, 1)
        self.socket.setblocking(False)
        self.socket.bind((device, _ALL_PROTOCOLS))

    def read(self, sent: str, come: str) -> Iterable[Packet]:
        """What has come by now, `_AT_ONCE` at most; the last one tells what was lost by then."""
        found: list[Packet] = []
        while len(found) < _AT_ONCE:
            try:
                data, notes, _, address = self.socket.recvmsg(_PACKET_BYTES, 64)
            except BlockingIOError:
                self.gone = self._is_last
                break
            except OSError as error:  # it comes once, before what is in the queue
                if error.errno != errno.ENETDOWN:
                    raise
                self._is_last = not self._is_there()
                continue
            leaves = address[2] == socket.PACKET_OUTGOING
            if leaves or not self._is_engine:  # what the engine writes to its device goes nowhere
                found.append(Packet(sent if leaves else come, _moment(notes), data, "", 0))
        self._untold += self._lost()
        if self._untold and found:
            found[-1] = replace(found[-1], missing=self._untold)
            self._untold = 0
        return found

    def _is_there(self) -> bool:
        """A device that is only down for a while has kept its number."""
        return self.socket.getsockname()[0] in (name for _, name in socket.if_nameindex())

    def _lost(self) -> int:
        """Since the last time it was asked."""
        size = struct.calcsize(_COUNTS)
        counts = self.socket.getsockopt(_PACKET_LEVEL, _STATISTICS, size)
        return int(struct.unpack(_COUNTS, counts)[1])


def _opened(program: bytes) -> list[_Tap]:
    devices = sorted(name for _, name in socket.if_nameindex())
    own = [name for name in devices if name == INTERFACE or name.startswith(_ENGINE)]
    if INTERFACE not in own:
        raise RunError(f"there is no {INTERFACE} in the network of the instance")
    return [_Tap(name, program) for name in own]


def attach_filter(tap: socket.socket, program: bytes) -> None:
    """SO_ATTACH_FILTER of socket(7): struct sock_fprog."""
    held = ctypes.create_string_buffer(program, len(program))
    count = len(program) // _INSTRUCTION_BYTES
    tap.setsockopt(
        socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", count, ctypes.addressof(held))
    )


def _moment(notes: Iterable[tuple[int, int, bytes]]) -> int:
    """When the kernel had it, ns since 1970."""
    for level, kind, data in notes:
        if (level, kind) == (socket.SOL_SOCKET, _TIMES) and len(data) >= _TIME.size:
            seconds, nanoseconds = _TIME.unpack_from(data)
            return int(seconds * 10**9 + nanoseconds)
    return time.time_ns()  # it came before its socket took times
