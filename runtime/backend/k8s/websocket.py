"""Messages that a server sends over a websocket (RFC 6455): what commands in containers are run by.

The client sends nothing but answers to pings, and its own close. A connection that breaks, or a
server that speaks nonsense, is an HttpError.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from runtime.backend.k8s import httpget
from runtime.backend.k8s.httpget import (
    ApiAddress,
    HttpAnswer,
    HttpError,
    Streams,
)

SWITCHED = 101
MESSAGE_BYTES = 1 << 24
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_MORE, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


@asynccontextmanager
async def opened(
    server: ApiAddress, path: str, headers: Mapping[str, str], protocol: str
) -> AsyncIterator[tuple[HttpAnswer, AsyncGenerator[bytes, None]]]:
    """The answer; if its status is SWITCHED the messages, until the server closes. HttpError."""
    key = base64.b64encode(os.urandom(16))
    wanted = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": key.decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": protocol,
    }
    async with httpget.connected(server) as streams:
        answer = await httpget.ask(server, path, {**headers, **wanted}, streams)
        if answer.status == SWITCHED:
            _check(answer, key, protocol)
        yield answer, _messages(streams)


def _check(answer: HttpAnswer, key: bytes, protocol: str) -> None:
    digest = hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest()
    if answer.headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise HttpError("what answers is no websocket")
    if answer.headers.get("sec-websocket-protocol") != protocol:
        raise HttpError(f"the server does not speak {protocol}")


async def _messages(streams: Streams) -> AsyncGenerator[bytes, None]:
    reader, writer = streams
    held = bytearray()
    try:
        while True:
            kind, last, data = await _frame(reader)
            if kind == _CLOSE:
                writer.write(_own(_CLOSE, data[:2]))
                return
            if kind == _PING:
                writer.write(_own(_PONG, data))
            elif kind in (_MORE, _TEXT, _BINARY):
                held += data
                if len(held) > MESSAGE_BYTES:
                    raise ValueError(f"a message has more than {MESSAGE_BYTES:,} bytes")
                if last:
                    yield bytes(held)
                    held.clear()
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise HttpError(f"the connection broke: {httpget.reason(error)}") from error


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    """What kind of frame, whether it is the last one of its message, and its bytes."""
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if second & 0x80:
        raise ValueError("a server masks nothing")
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    if size > MESSAGE_BYTES:
        raise ValueError(f"a frame has more than {MESSAGE_BYTES:,} bytes")
    return first & 0x0F, bool(first & 0x80), await reader.readexactly(size)


def _own(kind: int, data: bytes) -> bytes:
    """A frame of the client, which masks what it sends; control frames have 125 bytes at most."""
    data = data[:125]
    mask = os.urandom(4)
    body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
    return bytes((0x80 | kind, 0x80 | len(data))) + mask + body
