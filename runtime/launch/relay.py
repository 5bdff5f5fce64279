"""A command in a run in virtual time, with this process' streams and terminal: they reach it over
the run's control socket (runtime.virtual.execution has what is said there).
"""

from __future__ import annotations

import base64
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import encoded
from runtime.launch import stops
from runtime.rpc import control
from runtime.system import terminal
from runtime.virtual.execution import ExecRequest, TerminalSize
from runtime.virtual.line import PART_BYTES, READ_BYTES, Lines, encode

LOOK_SECONDS = 1.0  # between two looks at the terminal's size
STREAMS = {"out": "stdout", "err": "stderr"}  # of the command, and ours
KILLED = 128 + signal.SIGKILL


def exec_argv(
    path: Path, instance: str, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """The command's exit status. RunError if there is no such instance."""
    typed_at = terminal.is_ours()
    wanted = ExecRequest(instance, tuple(argv), environment, _size() if typed_at else None)
    request = {"ask": "exec", **encoded(wanted)}
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(control.TIMEOUT_SECONDS)
            connection.connect(str(path))
            connection.sendall(encode(request))
            with stops.noted() as signals:
                relay = _Relay(connection, signals)
                relay.start()
                with terminal.raw() if typed_at else nullcontext():
                    return relay.follow(typed_at=typed_at)
    except terminal.OutputError as error:
        if isinstance(error.__cause__, BrokenPipeError):  # the reader (`| head`) is gone
            return 128 + signal.SIGPIPE
        assert error.__cause__ is not None
        raise error.__cause__ from None
    except OSError as error:
        raise control.unanswered(path, error) from error


class _Relay:
    def __init__(self, connection: socket.socket, signals: socket.socket) -> None:
        self._connection = connection
        self._signals = signals
        self._lines = Lines("what the run says")
        self._waiting = bytearray()  # to be sent
        self._status: int | None = None
        self._started = False

    def start(self) -> None:
        """Waits until the command has been started, or refused: RunError."""
        while not self._started and self._status is None:
            self._receive()
        self._connection.setblocking(False)

    def follow(self, *, typed_at: bool) -> int:
        """Input to the command, its output to ours, until it ends."""
        size = _size() if typed_at else None
        is_open = terminal.is_open(0)
        if not is_open:
            self._say(eof=True)
        with selectors.PollSelector() as selector:  # takes regular files, too
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(self._signals, selectors.EVENT_READ)
            while self._status is None:
                self._look_for(selector, reads_input=is_open)
                ready = {key.fileobj: events for key, events in selector.select(LOOK_SECONDS)}
                if 0 in ready:
                    is_open = self._pass_input()
                if self._signals in ready:
                    for number in self._signals.recv(64):
                        self._say(signal=number)
                if typed_at and (now := _size()) != size:
                    size = now
                    self._say(size=size)
                if ready.get(self._connection, 0) & selectors.EVENT_READ:
                    self._receive()
                self._send()
        return self._status

    def _look_for(self, selector: selectors.PollSelector, *, reads_input: bool) -> None:
        """Nothing more is read while what was read has not gone out: the command takes no more."""
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting else 0)
        selector.modify(self._connection, wanted)
        reads = 0 in selector.get_map()
        if reads_input and not self._waiting and not reads:
            selector.register(0, selectors.EVENT_READ)
        elif reads and (self._waiting or not reads_input):
            selector.unregister(0)

    def _pass_input(self) -> bool:
        """Whether there may be more of it."""
        data = os.read(0, PART_BYTES)
        if data:
            self._say(**{"in": base64.b64encode(data).decode()})
        else:
            self._say(eof=True)
        return bool(data)

    def _say(self, **words: object) -> None:
        self._waiting += encode(words)

    def _send(self) -> None:
        try:
            while self._waiting:
                del self._waiting[: self._connection.send(self._waiting)]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):  # what it said before comes first
            self._waiting.clear()

    def _receive(self) -> None:
        """RunError for a refusal. A run that ends takes its commands along."""
        try:
            data = self._connection.recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data and self._status is None:
            if not self._started:
                raise RunError("the run has ended, or is ending")
            self._status = KILLED
        for said in self._lines.take(data):
            self._hear(said)

    def _hear(self, said: Mapping[str, Any]) -> None:
        if "error" in said:
            raise RunError(str(said["error"]), str(said.get("remedy", "")))
        if "status" in said:
            self._status = int(said["status"])
        self._started = self._started or "started" in said
        for name, stream in STREAMS.items():
            if name in said:
                terminal.show(getattr(sys, stream), base64.b64decode(said[name]))


def _size() -> TerminalSize:
    size = os.get_terminal_size(1)
    return size.lines, size.columns
