"""What a driver is told of its run, what it says to whoever follows that, and the socket on which
it does on this machine: one JSON object a message.

SOCK_SEQPACKET keeps messages whole, so a progress record that finds no room is dropped as a whole.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.driver.progress import Progress
from runtime.errors import RunError
from runtime.json_schema import decoded, encoded
from runtime.judge.run_end import RunEnd
from runtime.options import RunOptions
from runtime.options import decode as decode_options

MESSAGE_BYTES = 1 << 20
REPORT_SECONDS = 0.2  # five looks a second look like motion


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends, with room for the longest message."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
    return ends


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """What the driver is told, wherever the run takes place. Paths are absolute."""

    run_id: str
    directory: str
    socket: str  # where the control socket is to be
    options: RunOptions

    @property
    def plan(self) -> Path:
        return Path(self.directory) / "plan"


def config_of(record: Mapping[str, Any]) -> DriverConfig:
    return DriverConfig(**{**record, "options": decode_options(record["options"], "options")})


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Time 0 is known. `facts` goes into the manifest."""

    facts: Mapping[str, Any]


Said = Progress | RunStarted | RunEnd


def write(said: Said) -> dict[str, Any]:
    """As it is sent."""
    if isinstance(said, RunStarted):
        return {"started": dict(said.facts)}
    return {"progress" if isinstance(said, Progress) else "final": encoded(said)}


def read(message: Mapping[str, Any]) -> Said | None:
    """None for what is about something else. RunError for what makes no sense."""
    if "progress" in message:
        return decoded(Progress, message["progress"], "progress")
    if "final" in message:
        return decoded(RunEnd, message["final"], "the end")
    if "started" not in message:
        return None
    if not isinstance(message["started"], dict):
        raise RunError(f"the start is {message['started']!r:.40}")
    return RunStarted(message["started"])


def encode(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode()


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next message; None at the end. May raise BlockingIOError."""
    data = connection.recv(MESSAGE_BYTES)
    return json.loads(data) if data else None


class PacketLink:
    """The other side, as runtime.launch listens to a driver."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, record: Mapping[str, object]) -> None:
        """OSError if the driver is gone."""
        self._socket.send(encode(record))

    def receive(self) -> list[dict[str, Any]] | None:
        """What has arrived; None at the end."""
        record = receive(self._socket)
        return None if record is None else [record]

    def close(self) -> None:
        self._socket.close()


class DriverEnd:
    """The driver's side. `stop` is set when the other side asks to stop, or goes away."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.stop = asyncio.Event()

    def configuration(self) -> dict[str, Any] | None:
        """The first message (waits for it)."""
        return receive(self._socket)

    def watch(self) -> None:
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def _receive(self) -> None:
        try:
            record = receive(self._socket)
        except BlockingIOError:
            return
        if record is None:
            asyncio.get_running_loop().remove_reader(self._socket)
        self.stop.set()  # the only thing it ever says; silence for ever means the same

    def report_seconds(self, _planned_seconds: float) -> float:
        return REPORT_SECONDS

    def send(self, said: Said) -> None:
        """Dropped if nobody reads; a reader that is gone means PID 1 is about to end us."""
        try:
            self._socket.send(encode(write(said)))
        except OSError:
            return

    def send_final(self, end: RunEnd) -> None:
        """The same, but waits for room, however long: the reader may have been stopped (^Z) or wait
        for who reads from it, and an outcome that is lost would be a failure."""
        self._socket.setblocking(True)
        self.send(end)
