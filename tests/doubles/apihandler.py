"""How tests.doubles.api answers: HTTP/1.1, a thread for each connection."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

if TYPE_CHECKING:
    from tests.doubles.api import FakeApi, Trouble

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
_CLOSE = b"\x88\x02\x03\xe8"  # a normal one
_PING = b"there?"
_ASKED = ["follow"], ["capture"]  # commands that read one line of stdin
SUCCESS: dict[str, Any] = {"status": "Success"}  # how a command ends


def ended(status: int) -> dict[str, Any]:
    """How a command in a container ended, as the API server says it."""
    if status == 0:
        return SUCCESS
    causes = [{"reason": "ExitCode", "message": str(status)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fake: FakeApi, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.fake = fake
        self.connections: set[socket.socket] = set()

    def cut(self) -> None:
        with self.fake.lock:
            for connection in self.connections:
                with suppress(OSError):  # the client has gone
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # else the client has gone
            self.fake.faults.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpServer

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def handle(self) -> None:
        fake = self.server.fake
        with fake.lock:
            if not fake.listens:
                return  # it came in with the end
            self.server.connections.add(self.connection)
        try:
            super().handle()
        finally:
            with fake.lock:
                self.server.connections.discard(self.connection)

    def _serve(self) -> None:
        fake, method = self.server.fake, self.command
        split = urlsplit(self.path)
        path, lists = unquote(split.path), parse_qs(split.query)
        query = {key: values[0] for key, values in lists.items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fake.down:
            self.close_connection = True
            return
        pod = path.split("/")[-2]
        trouble = fake.meets(method, path, query)
        if trouble is not None and not trouble.done:
            self._misbehave(trouble)
        elif path.endswith("/exec") and self.headers.get("Accept", "*/*") != "*/*":
            self._answer(406, {"kind": "Status", "code": 406, "message": "not acceptable"})
        elif path.endswith("/exec"):
            self._exec(pod, lists["command"], query.get("stdin") == "true")
        elif path.endswith("/log"):
            self._log(pod, query.get("sinceTime", ""), "follow" in query)
        elif query.get("watch"):
            self._watch(int(query["resourceVersion"]))
        else:
            with fake.lock:
                status, value = self._do(method, path, query, body)
                if trouble is not None:
                    self.close_connection = True
                    return
                data = json.dumps(value).encode()
            self._send(status, data)  # without the lock: who reads it may want that
            fake.on_change(method, path)

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _misbehave(self, trouble: Trouble) -> None:
        while trouble.hangs and self.connection.recv(1 << 16):
            """Until the client has had enough."""
        if trouble.status:
            told = {"kind": "Status", "code": trouble.status, "message": trouble.message}
            self._answer(trouble.status, told)
            return
        self.wfile.write(trouble.sends)
        self.close_connection = True

    def _do(self, method: str, path: str, query: Any, body: bytes) -> tuple[int, Any]:
        fake = self.server.fake
        if path == "/version":
            return 200, {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
        if path.endswith("selfsubjectreviews"):
            return 201, {"status": {"userInfo": {"username": "somebody"}}}
        if path.endswith("selfsubjectaccessreviews"):
            asked = json.loads(body)["spec"]["resourceAttributes"]
            denied = (asked["verb"], asked["resource"]) in fake.denied
            return 201, {"status": {"allowed": not denied}}
        if method == "GET":
            return self._get(path, query)
        if method == "DELETE":
            return self._delete(path, json.loads(body).get("preconditions", {}))
        value = yaml.safe_load(body)
        if method == "POST":
            path = f"{path}/{value['metadata']['name']}"
            if path in fake.objects:
                return 409, {"reason": "AlreadyExists", "message": f"{path} already exists"}
        fake.bodies[path] = body
        before = fake.objects.get(path, {}).get("metadata", {}).get("annotations", {})
        notes = {**before, **value["metadata"].get("annotations", {})}
        fake.put(path, **{**value, "metadata": {**value["metadata"], "annotations": notes}})
        return 201, fake.objects[path]

    def _get(self, path: str, query: Any) -> tuple[int, Any]:
        fake = self.server.fake
        if path in fake.objects:
            return 200, fake.objects[path]
        found = [
            fake.objects[key] for key in sorted(fake.objects) if key.rpartition("/")[0] == path
        ]
        last = path.rpartition("/")[2]
        if not found and not last.endswith("s"):
            return 404, {"reason": "NotFound", "message": f"{path} not found"}
        if "labelSelector" in query:
            found = [one for one in found if _selected(query["labelSelector"], one)]
        begin = int(query.get("continue", 0))
        size = fake.page or int(query.get("limit", 0)) or len(found)
        metadata = {"resourceVersion": str(fake.version)}
        if begin + size < len(found):
            metadata["continue"] = str(begin + size)
        return 200, {"items": found[begin : begin + size], "metadata": metadata}

    def _delete(self, path: str, preconditions: Any) -> tuple[int, Any]:
        fake = self.server.fake
        if path not in fake.objects:
            return 404, {"reason": "NotFound", "message": f"{path} not found"}
        uid = fake.objects[path]["metadata"]["uid"]
        if preconditions.get("uid", uid) != uid:
            return 409, {"reason": "Conflict", "message": "Precondition failed: UID"}
        del fake.objects[path]
        inside = f"/namespaces/{path.rpartition('/')[2]}/"
        for key in [key for key in fake.objects if inside in key]:
            del fake.objects[key]
        for key, one in list(fake.objects.items()):
            if any(o["uid"] == uid for o in one["metadata"].get("ownerReferences", ())):
                del fake.objects[key]
        return 200, {}

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # -- streams --------------------------------------------------------------------------------

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        half = len(data) // 2  # a line may come in parts
        for part in (data[:half], data[half:]):
            if part:
                self.wfile.write(b"%x\r\n" % len(part) + part + b"\r\n")

    def _wait_for(self, more: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """What there is as soon as there is something; nothing when the server closes."""
        fake = self.server.fake
        with fake.moved:
            fake.moved.wait_for(lambda: more() or not fake.listens)
            return more() if fake.listens else []

    def _watch(self, version: int) -> None:
        fake = self.server.fake
        self._begin_stream()
        if version < fake.oldest:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            self._chunk(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return

        def later() -> list[tuple[int, dict[str, Any]]]:
            return [(at, change) for at, change in fake.history if at > version]

        while found := self._wait_for(later):
            version = found[-1][0]
            for _, change in found:
                self._chunk(json.dumps(change).encode() + b"\n")

    def _log(self, pod: str, since: str, follow: bool) -> None:
        fake, sent = self.server.fake, 0
        self._begin_stream()

        def more() -> list[bytes]:
            """As the real one: from whole seconds on."""
            lines = fake.logs.get(pod, [])
            return [line for line in lines if line[:19].decode() >= since[:19]][sent:]

        while True:
            for line in more():
                cut = pod in fake.unfinished and line is fake.logs[pod][-1]
                self._chunk(line if cut else line + b"\n")
                sent += 1
            if fake.log_ends or not follow:
                self.wfile.write(b"0\r\n\r\n")
                return
            if not self._wait_for(more):
                return

    # -- commands -------------------------------------------------------------------------------

    def _exec(self, pod: str, argv: list[str], stdin: bool) -> None:
        fake = self.server.fake
        fake.execs.append((pod, argv))
        key = self.headers["Sec-WebSocket-Key"] + _MAGIC
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accept),
            ("Sec-WebSocket-Protocol", self.headers["Sec-WebSocket-Protocol"].split(",")[0]),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        asked = [self._line().decode()] if stdin and argv[1:] in _ASKED else []
        pings = 0
        if fake.on_talk is not None and argv[1:] == ["steer"]:
            self._talk(fake.on_talk(argv))
            return
        for channel, data in fake.on_exec(pod, [*argv, *asked]):
            message = bytes([channel]) + data
            if fake.pings and channel == 1:  # in the middle of a message
                parts = _frame(0x02, message[:5]), _frame(0x89, _PING), _frame(0x80, message[5:])
                self.wfile.write(b"".join(parts))
                pings += 1
            else:
                self.wfile.write(_frame(0x82, message))
        self.wfile.write(_CLOSE)
        for _ in range(pings):
            assert self._message() == (0x8A, _PING)
        if pings:
            assert self._message()[0] == 0x88
        while self.connection.recv(1 << 16):
            """What is not read would reset the connection."""

    def _talk(self, process: subprocess.Popen[bytes]) -> None:
        """What comes is its stdin, what it prints goes back, to the end of either."""
        assert process.stdin is not None
        with process:
            telling = threading.Thread(target=self._tell, args=(process,))
            telling.start()
            with suppress(OSError, ValueError):  # the client has gone, or the command has ended
                while (message := self._message())[0] != 0x88:
                    process.stdin.write(message[1][1:])
                    process.stdin.flush()
            with suppress(OSError):
                process.stdin.close()
            telling.join()

    def _tell(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        with suppress(OSError):
            while data := os.read(process.stdout.fileno(), 1 << 16):
                self.wfile.write(_frame(0x82, b"\1" + data))
            self.wfile.write(_frame(0x82, b"\2" + process.stderr.read()))
            how = json.dumps(ended(process.wait())).encode()
            self.wfile.write(_frame(0x82, b"\3" + how) + _CLOSE)

    def _line(self) -> bytes:
        """Of stdin: messages until its end."""
        line = b""
        while not line.endswith(b"\n"):
            _, message = self._message()
            assert message[:1] == b"\0", "channel 0"
            line += message[1:]
        return line

    def _message(self) -> tuple[int, bytes]:
        """One of the client's, unmasked, with what kind it is (RFC 6455, 5.2)."""
        kind, size = self.rfile.read(2)
        size &= 0x7F
        if size > 125:
            size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
        mask, data = self.rfile.read(4), self.rfile.read(size)
        return kind, bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def _frame(first: int, data: bytes) -> bytes:
    """A server's (RFC 6455, 5.2)."""
    if len(data) < 126:
        return bytes([first, len(data)]) + data
    if len(data) < 1 << 16:
        return struct.pack("!BBH", first, 126, len(data)) + data
    return struct.pack("!BBQ", first, 127, len(data)) + data


def _selected(selector: str, one: dict[str, Any]) -> bool:
    """`a=b` and `a in (b,c)`, joined by commas outside of parentheses."""
    labels = one["metadata"].get("labels") or {}
    if " in (" in selector:
        key, _, values = selector.partition(" in (")
        return labels.get(key) in values.rstrip(")").split(",")
    return all(
        labels.get(key) == value for key, value in (p.split("=") for p in selector.split(","))
    )
