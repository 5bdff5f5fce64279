"""An API server that is none: pods in memory, over plain HTTP on loopback, and as hostile as asked.

`trouble` holds what the next requests meet, one each, in order: a Trouble, or None for none.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from runtime.backend.k8s.api import Api
from runtime.backend.k8s.httpget import Server

DEADLINE_SECONDS = 20.0  # only a test that fails takes so long
NAMESPACE = "tstorm-test"
WELL: dict[str, Any] = {"status": "Success"}  # how a command ends


@dataclass(frozen=True)
class Trouble:
    """status: the answer is this, with `message`. sends: raw bytes instead of an answer. cut: hangs
    up at once. hangs: says nothing."""

    status: int = 0
    sends: bytes = b""
    cut: bool = False
    message: str = "as asked"
    hangs: bool = False


def shown(name: str, service: str = "server", index: int = 0, **more: Any) -> dict[str, Any]:
    """A pod as the API shows it: of an instance that waits in its tstorm-hold on node n0."""
    node = more.pop("node", "n0")
    component = more.pop("component", "instance")
    container = more.pop("container", "instance")
    state = more.pop("state", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    ips = more.pop("ips", [f"10.244.0.{index + 2}"])
    uid = more.pop("uid", f"00000000-0000-0000-0000-{abs(hash(name)) % 10**12:012d}")
    status: dict[str, Any] = {
        "phase": more.pop("phase", "Running"),
        "podIPs": [{"ip": ip} for ip in ips],
        "containerStatuses": [
            {
                "name": container,
                "state": state,
                "lastState": more.pop("last", {}),
                "restartCount": more.pop("restarts", 0),
                "ready": more.pop("ready", False),
                "containerID": more.pop("container_id", f"containerd://{name}"),
                "image": "docker.io/library/x:1",
                "imageID": "sha256:abc",
            }
        ],
        **more,
    }
    labels = {
        "app.kubernetes.io/part-of": "thunderstorm",
        "app.kubernetes.io/component": component,
    }
    notes = {"thunderstorm.dev/plan": "d1"}
    if component == "instance":
        labels["apps.kubernetes.io/pod-index"] = str(index)
        notes["thunderstorm.dev/service"] = service
    return {
        "metadata": {"name": name, "uid": uid, "labels": labels, "annotations": notes},
        "spec": {"nodeName": node} if node else {},
        "status": status,
    }


class FakeApi:
    """`requests` are the paths that were asked for, with their queries."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.version = 100
        self.trouble: deque[Trouble | None] = deque()
        self.requests: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.logs: dict[str, list[bytes]] = {}
        self.log_ends = False  # a stream of a log ends with its last line
        self.log_trouble: Trouble | None = None  # that all requests for logs meet
        self.unfinished: set[str] = set()  # pods whose last line has no end
        self.command: Callable[[list[str]], tuple[bytes, dict[str, Any]]] = lambda _: (b"", WELL)
        self.ran: list[tuple[str, list[str]]] = []  # commands, with their pods
        self.oldest = 0  # versions before are gone
        self.page = 0  # most pods in one answer; 0: as many as are asked for
        self._history: list[tuple[int, dict[str, Any]]] = []
        self._moved = asyncio.Condition()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Away: all connections end, nobody listens."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self.cut()
            await server.wait_closed()

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def api(self) -> Api:
        return Api(Server("127.0.0.1", self._port, None), NAMESPACE, None)

    # -- what happens in the cluster ------------------------------------------------------------

    async def put(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        kind = "MODIFIED" if name in self.pods else "ADDED"
        await self._happen(kind, pod)
        self.pods[name] = pod

    async def remove(self, name: str) -> None:
        await self._happen("DELETED", self.pods.pop(name))

    async def say(self, change: dict[str, Any]) -> None:
        """Any line at all."""
        async with self._moved:
            self.version += 1
            self._history.append((self.version, change))
            self._moved.notify_all()

    async def _happen(self, kind: str, pod: dict[str, Any]) -> None:
        pod["metadata"]["resourceVersion"] = str(self.version + 1)
        await self.say({"type": kind, "object": json.loads(json.dumps(pod))})

    async def write(self, pod: str, *lines: bytes) -> None:
        """Lines of a container's log, with their times."""
        async with self._moved:
            self.logs.setdefault(pod, []).extend(lines)
            self._moved.notify_all()

    # -- answers --------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._server is None:
            self.cut()  # it came in with the end
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *rest = head.rstrip().split("\r\n")
        url = urlsplit(first.split()[1])
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        headers = dict(line.split(": ", 1) for line in rest)
        self.requests.append((url.path, query, headers))
        trouble = self.trouble.popleft() if self.trouble else None
        if url.path.endswith("/log"):
            trouble = trouble or self.log_trouble
        if trouble is not None:
            await self._misbehave(trouble, writer)
        elif url.path.endswith("/exec") and headers["Accept"] != "*/*":
            await self._misbehave(Trouble(status=406), writer)
        elif url.path.endswith("/exec"):
            argv = parse_qs(url.query)["command"]
            await self._exec(url.path.split("/")[-2], argv, headers, reader, writer)
        elif url.path.endswith("/log"):
            await self._log(url.path.split("/")[-2], query, writer)
        elif query.get("watch"):
            await self._watch(int(query["resourceVersion"]), writer)
        else:
            await self._list(query, writer)

    async def _misbehave(self, trouble: Trouble, writer: asyncio.StreamWriter) -> None:
        if trouble.hangs:
            await asyncio.Event().wait()
        if trouble.sends:
            writer.write(trouble.sends)
        elif trouble.status:
            told = {"kind": "Status", "code": trouble.status, "message": trouble.message}
            body = json.dumps(told).encode()
            head = f"HTTP/1.1 {trouble.status} No\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
        await writer.drain()

    async def _list(self, query: dict[str, str], writer: asyncio.StreamWriter) -> None:
        names = sorted(self.pods)
        begin = int(query.get("continue", "0"))
        size = self.page or int(query["limit"])
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if begin + size < len(names):
            metadata["continue"] = str(begin + size)
        items = [self.pods[name] for name in names[begin : begin + size]]
        body = json.dumps({"items": items, "metadata": metadata}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    async def _watch(self, version: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if version < self.oldest:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            await _chunk(writer, json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return
        while True:
            async with self._moved:
                await self._moved.wait_for(partial(self._later, version))
                found = self._later(version)
            for at, change in found:
                version = at
                await _chunk(writer, json.dumps(change).encode() + b"\n")

    def _later(self, version: int) -> list[tuple[int, dict[str, Any]]]:
        return [(at, change) for at, change in self._history if at > version]

    async def _exec(
        self,
        pod: str,
        argv: list[str],
        headers: dict[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Output in two frames with a ping between them, then how it ended."""
        key = headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key).digest()).decode()
        head = ["HTTP/1.1 101 Switching Protocols", f"Sec-WebSocket-Accept: {accept}"]
        head += [f"Sec-WebSocket-Protocol: {headers['Sec-WebSocket-Protocol']}", "", ""]
        writer.write("\r\n".join(head).encode())
        self.ran.append((pod, argv))
        output, ended = self.command(argv)
        said = b"\x01" + output
        writer.write(_frame(0x02, said[:5]) + _frame(0x89, b"there?") + _frame(0x80, said[5:]))
        writer.write(_frame(0x82, b"\x03" + json.dumps(ended).encode()) + _frame(0x88, b"\x03\xe8"))
        await writer.drain()
        answers = await reader.readexactly(2 + 4 + 6 + 2 + 4 + 2)  # a pong and a close, masked
        assert (answers[0], answers[12]) == (0x8A, 0x88)
        unmasked = bytes(answers[6 + at] ^ answers[2 + at % 4] for at in range(6))
        assert unmasked == b"there?"

    async def _log(self, pod: str, query: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        since, sent = query.get("sinceTime", "")[:19], 0  # as the real one: whole seconds

        def more() -> list[bytes]:
            lines = self.logs.get(pod, [])
            return [line for line in lines if line[:19].decode() >= since][sent:]

        while True:
            for line in more():
                cut = pod in self.unfinished and line is self.logs[pod][-1]
                await _chunk(writer, line if cut else line + b"\n")
                sent += 1
            if self.log_ends or "follow" not in query:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return
            async with self._moved:
                await self._moved.wait_for(more)


def _frame(first: int, data: bytes) -> bytes:
    """Of a server's websocket."""
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes([first]) + size + data


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    half = len(data) // 2  # a line may come in parts
    for part in (data[:half], data[half:]):
        if part:
            writer.write(b"%x\r\n" % len(part) + part + b"\r\n")
            await writer.drain()


def act(play: Callable[[FakeApi], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        server = FakeApi()
        await server.listen()
        try:
            await asyncio.wait_for(play(server), DEADLINE_SECONDS)
        finally:
            await server.close()

    asyncio.run(whole())
