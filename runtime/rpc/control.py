"""The control socket of a run: `inspect`, `exec` and `do` ask here. An agent in a cluster has one
for commands in its own container.

One request and one answer per connection, each a line of JSON; the one to `enter` carries a pidfd.
The socket is in a directory of the user's own with mode 0600; a peer of another user is refused.
Requests are short, each peer has some seconds, and there are MOST_PEERS at a time: whoever floods,
lags or talks nonsense is hung up on, and the run goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import parse

REQUEST_BYTES = 65536
ANSWER_BYTES = 1 << 28  # longest answer: the state of a run with all its counters
TIMEOUT_SECONDS = 10.0
MOST_PEERS = 64  # at a time; those beyond are hung up on

Reply = tuple[Mapping[str, object], int | None]  # the answer and a descriptor to hand over


class Given(int):
    """A descriptor that is the peer's alone: it is closed here once it was handed over."""


Handler = Callable[[Mapping[str, Any]], Awaitable[Reply]]
Converse = Callable[[socket.socket], Awaitable[None]]  # with a peer of the same user; OSError


class ControlServer:
    """Listens, and leaves what is said on a connection to `converse`."""

    def __init__(self, path: Path, converse: Converse) -> None:
        self._path = path
        self._converse = converse
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._tasks: set[asyncio.Task[None]] = set()
        old = os.umask(0o177)
        try:
            self._socket.bind(str(path))
        finally:
            os.umask(old)
        self._socket.listen(16)
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return  # the peer has gone again
        if len(self._tasks) >= MOST_PEERS:
            connection.close()
            return
        connection.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # a peer that hangs up is not our trouble
            if _peer_user(connection) == os.geteuid():
                await self._converse(connection)

    async def finish(self, seconds: float) -> None:
        """Closes, and waits so long at most for what is still being said."""
        self.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._path.unlink(missing_ok=True)


def _peer_user(connection: socket.socket) -> int:
    size = struct.calcsize("3i")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", packed)[1])


def answered_by(handler: Handler) -> Converse:
    """One request and its answer. A peer that does not speak is hung up on."""

    async def converse(connection: socket.socket) -> None:  # TimeoutError is an OSError
        await asyncio.wait_for(_answer_one(connection, handler), TIMEOUT_SECONDS)

    return converse


async def _answer_one(connection: socket.socket, handler: Handler) -> None:
    loop = asyncio.get_running_loop()
    data = await read_request(connection)
    if not data:
        return
    answer, descriptor = await _answer(data, handler)
    line = encode(answer)
    if descriptor is not None:
        try:
            sent = socket.send_fds(connection, [line[:1]], [descriptor])
        finally:
            if isinstance(descriptor, Given):
                os.close(descriptor)
        line = line[sent:]
    await loop.sock_sendall(connection, line)


async def read_request(connection: socket.socket) -> bytes:
    """A line, b"" if the peer hangs up before its end. One that is too long is cut."""
    loop = asyncio.get_running_loop()
    data = b""
    while not data.endswith(b"\n") and len(data) < REQUEST_BYTES:
        part = await loop.sock_recv(connection, REQUEST_BYTES)
        if not part:
            return b""
        data += part
    return data


async def _answer(data: bytes, handler: Handler) -> Reply:
    try:
        return await handler(json.loads(data))
    except RunError as error:
        return refusal(error), None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return refusal(RunError(f"not a request: {error}")), None


def encode(answer: Mapping[str, object]) -> bytes:
    return json.dumps(answer, sort_keys=True).encode() + b"\n"


def refusal(error: RunError) -> dict[str, object]:
    """The answer that ask() raises again."""
    return {"error": error.message, "remedy": error.remedy}


def unanswered(path: Path, error: OSError) -> RunError:
    """Why a run says nothing on its socket."""
    if isinstance(error, FileNotFoundError):
        return RunError(
            "the run does not listen: it is getting ready, or about to end", "try again"
        )
    return RunError(f"the run does not answer on {path}: {error.strerror or error}")


def ask(path: Path, request: Mapping[str, object]) -> tuple[dict[str, Any], int | None]:
    """The client's side: the answer and the descriptor that came with it.

    Raises RunError if the run does not answer or refuses.
    """
    descriptors: list[int] = []
    data = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(TIMEOUT_SECONDS)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            while not data.endswith(b"\n"):
                part, got, _, _ = socket.recv_fds(connection, 1 << 20, 1)
                descriptors.extend(got)
                if not part:
                    break
                data += part
                if len(data) > ANSWER_BYTES:
                    raise RunError(f"the run's answer on {path} has no end")
    except OSError as error:
        raise unanswered(path, error) from error
    if not data.endswith(b"\n"):
        raise RunError(f"the run hung up on {path}", "it runs as another user, or is ending")
    answer = parse(data, f"the run's answer on {path}")
    if type(answer) is not dict:
        raise RunError(f"the run's answer on {path} is none")
    if "error" in answer:
        raise RunError(str(answer["error"]), str(answer.get("remedy", "")))
    return answer, descriptors[0] if descriptors else None
