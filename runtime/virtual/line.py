"""The line between a guest and the process that started it: one JSON object a line of text, both
ways, over a serial line that passes bytes as they are.

    guest to host   what a driver says ({"progress": …}, {"started": …}, {"final": …}), and
                    {"call": N, "say": …} for call N; {"call": N, "over": true} ends it
    host to guest   {"stop": true}; {"call": N, "say": …} and {"call": N, "over": true}

A call is a connection to the run's control socket: the host passes on what it hears there
(runtime.virtual.control_exchange), the guest answers (runtime.virtual.inside). What a call
carries of a command's input and output is in parts; each is confirmed with {"call": N, "took":
true} when it has gone on its way, and no more than PARTS are on the line at a time: who reads
slowly holds nobody else up. The guest confirms {"got": BYTES}, all it has read so far, and no more
than AHEAD_BYTES are on the way to it. Nothing goes to a guest that nobody asks for anything: bytes
that arrive are interrupts, at moments that no two runs share.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import decoded, parse

DEVICE = "/dev/ttyS0"  # in the guest
READ_BYTES = WRITE_BYTES = 1 << 16
LINE_BYTES = 1 << 28  # the longest: the state of a run with all its counters
# A serial line of the guest's holds 4 kB that nobody has read, and one that was full is never read
# again: its driver switches the interrupt off (line_throttle in arch/um/drivers/line.c) for good.
AHEAD_BYTES = 3840
PARTS = 8  # of one call and one direction that may be under way
PART_BYTES = 1 << 15
STREAMS = ("in", "out", "err")  # what a part is of, in base64


def encode(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def is_part(said: Mapping[str, object]) -> bool:
    """Whether it is to be confirmed."""
    return any(name in said for name in STREAMS)


@dataclass(frozen=True, slots=True)
class CallMessage:
    """What either side says in a call: a request, an answer or a part (`say`), that it has ended
    (`over`), or that a part has gone on its way (`took`)."""

    call: int
    say: Mapping[str, Any] | None = None
    over: bool = False
    took: bool = False

    def to_record(self) -> dict[str, object]:
        words = {"say": self.say, "over": self.over or None, "took": self.took or None}
        return {"call": self.call} | {k: said for k, said in words.items() if said is not None}


def call_message(record: Mapping[str, Any]) -> CallMessage:
    """RunError if it makes no sense."""
    message = decoded(CallMessage, record, "a call")
    if message.say is None and not message.over and not message.took:
        raise RunError("a call has a message that says nothing")
    return message


class Renaming:
    """Replaces names, and paths with what is below them, in lines of JSON."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """What is replaced has no character that JSON would write in another way."""
        any_of = b"|".join(re.escape(name.encode()) for name in names)
        self._names = re.compile(rb"(?<![\w./-])(?:" + any_of + rb")(?![\w-]|\.\w)")
        self._by = {name.encode(): json.dumps(by)[1:-1].encode() for name, by in names.items()}

    def __call__(self, line: bytes) -> bytes:
        return self._names.sub(lambda found: self._by[found[0]], line)


class Lines:
    """What has arrived, put together to records."""

    def __init__(
        self,
        what: str = "a message over the guest's line",
        rename: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._what = what
        self._rename = rename
        self._held = bytearray()
        self._searched = 0  # so many bytes have no end of a line in them

    def take(self, data: bytes) -> Iterator[dict[str, Any]]:
        """RunError for what is no record."""
        self._held += data
        while (end := self._held.find(b"\n", self._searched)) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            self._searched = 0
            yield self._record(line)
        self._searched = len(self._held)
        if self._searched > LINE_BYTES:
            raise RunError(f"{self._what} has no end")

    def _record(self, line: bytes) -> dict[str, Any]:
        record = parse(self._rename(line), self._what)
        if type(record) is not dict:
            raise RunError(f"{self._what} is no object")
        return record


class Writer:
    """Puts records on a descriptor as it takes them, with no more than `ahead` bytes that were not
    confirmed (None: any number). Waits for nobody. With `ahead` 0 all of it waits for open()."""

    def __init__(self, descriptor: int, ahead: int | None = None) -> None:
        self._descriptor = descriptor
        self._room = ahead
        self._confirmed = 0
        self._waiting = bytearray()
        self._loop = asyncio.get_running_loop()

    @property
    def waiting_bytes(self) -> int:
        return len(self._waiting)

    def send(self, record: Mapping[str, object]) -> None:
        self._waiting += encode(record)
        self._write()

    def open(self, ahead: int) -> None:
        """Who reads is there."""
        self._room = ahead
        self._write()

    def confirm(self, total: int) -> None:
        """So many bytes have arrived by now."""
        if self._room is not None:
            self._room += total - self._confirmed
            self._confirmed = total
            self._write()

    def _write(self) -> None:
        try:
            while part := self._waiting[: WRITE_BYTES if self._room is None else self._room]:
                written = os.write(self._descriptor, part)
                del self._waiting[:written]
                if self._room is not None:
                    self._room -= written
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._write)
            return
        except OSError:  # nobody reads any more: who reads here is told that
            self._waiting.clear()
        self._loop.remove_writer(self._descriptor)


class HostEnd:
    """The host's side of the line, as runtime.launch.launch listens to a driver. Paths of the guest
    become the host's. What is sent waits until the driver has said something: what comes before it
    has opened its side is lost."""

    def __init__(self, connection: socket.socket, rename: Callable[[bytes], bytes]) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._lines = Lines(rename=rename)
        self._writer = Writer(connection.fileno(), 0)
        self._is_heard = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, record: Mapping[str, object]) -> None:
        self._writer.send(record)

    def receive(self) -> list[dict[str, Any]] | None:
        """What has arrived; None at the end. RunError for what is no message."""
        try:
            data = self._socket.recv(READ_BYTES)
        except ConnectionResetError:  # a guest that was killed, with bytes for it on the way
            data = b""
        if not data:
            return None
        if not self._is_heard:
            self._is_heard = True
            self._writer.open(AHEAD_BYTES)
        return list(filter(self._is_news, self._lines.take(data)))

    def _is_news(self, record: Mapping[str, Any]) -> bool:
        if "got" not in record:
            return True
        if type(record["got"]) is not int:
            raise RunError("the guest confirms what is no number of bytes")
        self._writer.confirm(record["got"])
        return False

    def close(self) -> None:
        self._socket.close()


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends, for the host and for the kernel. A guest never waits for room, or its time would
    go on while what it says does not: the buffer is as large as the host allows."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        os.set_inheritable(end.fileno(), False)
    return ends
