"""GET requests of HTTP/1.1 (RFC 9112) whose answers may go on for hours: what the API server of a
cluster is asked with.

One connection a request. The standard library's client blocks, and the coordinator follows
thousands of logs at a time. A peer that is gone without a word is noticed by TCP's own probes,
since a stream may be silent for good reasons.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from runtime.errors import RunError

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0  # until the answer begins: a large list takes its time
HEAD_BYTES = 65536
LINE_BYTES = 16 << 20  # an object of the API has at most 1.5 MB in its store
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_PROBES = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class HttpError(RunError):
    """No answer, or none that makes sense."""


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """Where requests go; `tls` is None for plain HTTP."""

    host: str  # a name, or an address without brackets
    port: int
    tls: ssl.SSLContext | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class HttpAnswer:
    """The body comes in parts, as they arrive. HttpError wherever the connection breaks."""

    def __init__(self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader):
        self.status = status
        self.headers = headers
        self._reader = reader

    @property
    def _is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            if self._is_chunked:
                async for part in self._chunks():
                    yield part
            else:
                async for part in self._plain():
                    yield part
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise HttpError(f"the answer broke off: {reason(error)}") from error

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            size = int((await self._line()).partition(b";")[0], 16)
            if size == 0:
                return
            while size > 0:
                part = await self._reader.read(min(size, 1 << 16))
                if not part:
                    raise ValueError("it ended in the middle")
                size -= len(part)
                yield part
            if await self._line():
                raise ValueError("a chunk is longer than it says")

    async def _line(self) -> bytes:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ValueError("it ended in the middle")
        return line.rstrip(b"\r\n")

    async def _plain(self) -> AsyncIterator[bytes]:
        length = self.headers.get("content-length")
        left = int(length) if length is not None else None
        while left is None or left > 0:
            part = await self._reader.read(1 << 16 if left is None else min(left, 1 << 16))
            if not part:
                if left:
                    raise ValueError("it ended in the middle")
                return
            left = None if left is None else left - len(part)
            yield part

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """With their ends. The last one may have none, of an answer that ended where it says that
        it does; what else is left is a broken answer's."""
        rest = b""
        async for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line + b"\n"
            if len(rest) > LINE_BYTES:
                raise HttpError(f"the answer has a line of more than {LINE_BYTES:,} bytes")
        if rest and (self._is_chunked or "content-length" in self.headers):
            yield rest

    async def whole(self, most: int) -> bytes:
        found = bytearray()
        async for part in self.parts():
            found += part
            if len(found) > most:
                raise HttpError(f"the answer has more than {most:,} bytes")
        return bytes(found)


@asynccontextmanager
async def connected(server: ApiAddress) -> AsyncIterator[Streams]:
    """A connection, which ends with the block. HttpError."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                server.host, server.port, ssl=server.tls, limit=HEAD_BYTES
            )
    except TimeoutError as error:
        raise HttpError(f"{server} does not answer within {CONNECT_SECONDS:g} s") from error
    except OSError as error:
        raise HttpError(f"cannot reach {server}: {reason(error)}") from error
    try:
        _probe(writer)
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()


@asynccontextmanager
async def get(
    server: ApiAddress, path: str, headers: Mapping[str, str]
) -> AsyncIterator[HttpAnswer]:
    """The answer to one request; the connection ends with the block. HttpError."""
    async with connected(server) as streams:
        yield await ask(server, path, headers, streams)


def _probe(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBES:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


async def ask(
    server: ApiAddress, path: str, headers: Mapping[str, str], streams: Streams
) -> HttpAnswer:
    """One request on this connection. HttpError."""
    reader, writer = streams
    wanted = {"Host": str(server), "Connection": "close", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items())]
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
        return HttpAnswer(*_head(head), reader)
    except TimeoutError as error:
        raise HttpError(f"{server} does not answer within {ANSWER_SECONDS:g} s") from error
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise HttpError(f"{server} gave no answer: {reason(error)}") from error


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    version, _, words = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise ValueError(f"{first!r:.60} is no HTTP")
    status = int(words[:3])
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return status, headers


def reason(error: Exception) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "it ended in the middle"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
