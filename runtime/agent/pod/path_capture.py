"""`tstorm-agent capture` of a path: its packets at this node, as the packet engine has them, for
`tstorm capture --link` (docs/supervisor.md).

Input: a line of JSON on stdin, {"path": "a.0--b.0", "probes": 0|1, "filter": HEX}. Output: a line
of JSON, {"interfaces": [NAME…], "left_out": [NAME…]}, and where there are interfaces pcapng of
them: what comes to the queues of the paths that begin here, and what leaves these paths or is
dropped on them. Its times are those since T0. The agent of this container is asked for it
(runtime/agent/process/local_captures.py) and has the engine write to a pipe, which is read here.

It goes on until stdin ends, or the engine. The engine waits for none of this: what is read too
slowly is lost to the capture, which is counted.
"""

from __future__ import annotations

import io
import json
import os
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Self

from runtime.agent.pod import node_capture
from runtime.agent.pod.pod_messages import KERNEL
from runtime.agent.pod.supervisor_settings import Settings
from runtime.agent.process import portlog
from runtime.agent.process.local_captures import SOCKET
from runtime.errors import RunError, unexpected
from runtime.json_schema import decoded, integer
from runtime.rpc import control
from runtime.rundir.pcapng import read_packets
from runtime.rundir.pcapng_writer import PacketWriter

_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class PathCaptureRequest:
    """`filter` is '' or hexadecimal digits; `probes`: with the run's own."""

    path: str
    probes: Annotated[int, integer(0, 1)]
    filter: str


@dataclass(frozen=True, slots=True)
class PathCaptureHead:
    """What the packets are of; `left_out`: instances without a path now."""

    interfaces: tuple[str, ...]
    left_out: tuple[str, ...]


def serve(request: Any, here: Settings, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """One capture, to its end. RunError."""
    asked = decoded(PathCaptureRequest, request, "the request")
    program = node_capture.filter_of(asked.filter)
    kind, _ = portlog.read(here.ports)
    if not kind:
        raise RunError(f"no run is on at {here.name}")
    if kind == KERNEL:
        raise unseen()
    head, pipe = _begun(asked, here)
    try:
        stdout.write(json.dumps(head).encode() + b"\n")
        stdout.flush()
        if pipe is not None:
            with os.fdopen(pipe, "rb", buffering=0) as packets:
                os.nice(node_capture.NICE)
                relay(packets, stdin, stdout, [*head["interfaces"]], program)
    except BrokenPipeError:
        return  # nobody looks on any more
    except OSError as error:
        raise unexpected(error) from error


def unseen() -> RunError:
    """Where no process has the packets of a path before they are shaped."""
    return RunError(
        "the kernel's traffic control shapes this run: no process of it sees packets before a"
        " queue, or those that are dropped",
        "name an instance, such as tstorm capture RUN client.0, or run it with --datapath user",
    )


def _begun(asked: PathCaptureRequest, here: Settings) -> tuple[dict[str, Any], int | None]:
    request = {"ask": "capture", "path": asked.path, "probes": bool(asked.probes)}
    return control.ask(here.captures / SOCKET, request)


def relay(
    packets: io.FileIO, stdin: BinaryIO, stdout: BinaryIO, names: list[str], program: bytes
) -> None:
    """From the engine to whoever looks on, until one of them ends. RunError, OSError."""
    if not program:
        come = _Arriving(packets, stdin, lambda: None)
        while data := come.read(_READ_BYTES):
            stdout.write(data)
            stdout.flush()
        return
    batch = io.BytesIO()
    writer = PacketWriter(batch, names, "tstorm-agent capture")

    def send() -> None:
        node_capture.send(batch, stdout)

    arriving = _Arriving(packets, stdin, send)
    with _KernelFilter(program) as takes, io.BufferedReader(arriving, _READ_BYTES) as file:
        try:
            for packet in read_packets(file, "packets of the engine", writer.ended):
                (writer.add if takes(packet.data) else writer.skip)(packet)
        except RunError:
            if not arriving.has_left:  # else it was cut where nobody looks on
                raise
    if not writer.unended:  # else what looks like the end was none
        writer.close()
    send()


class _Arriving(io.RawIOBase):
    """The engine's pipe, which ends when `stdin` does. `before` is called before each waiting."""

    def __init__(self, packets: io.FileIO, stdin: BinaryIO, before: Callable[[], None]) -> None:
        self._packets, self._stdin, self._before = packets, stdin, before
        self.has_left = False

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self._before()
        ready: list[Any] = []
        while self._packets not in ready:
            ready, _, _ = select.select([self._packets, self._stdin], [], [])
            if self._stdin in ready and not os.read(self._stdin.fileno(), 1 << 12):
                self.has_left = True
                return 0
        return self._packets.readinto(room) or 0


class _KernelFilter:
    """Asks the kernel whether its packet filter takes a frame: by a pair of sockets, of which the
    receiving one has the filter (SO_ATTACH_FILTER of socket(7)). OSError."""

    def __init__(self, program: bytes) -> None:
        self._near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        node_capture.attach_filter(self._far, program)
        self._far.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._near.close()
        self._far.close()

    def __call__(self, frame: bytes) -> bool:
        self._near.send(frame)
        try:
            return bool(self._far.recv(1))
        except BlockingIOError:
            return False
