"""An API server that is none: objects by path in memory, over plain HTTP on loopback.

It knows what the command uses: create, server-side apply, get, list by labels, delete (a namespace
with what is in it), reviews that allow everything, and exec over a websocket, for which a test says
what the command in the container prints and how it ends. Nothing happens to objects by itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
SUCCESS = {"status": "Success"}


def ended(status: int) -> dict[str, Any]:
    """How a command in a container ended, as the API server says it."""
    if status == 0:
        return SUCCESS
    causes = [{"reason": "ExitCode", "message": str(status)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}


Frames = Iterable[tuple[int, bytes]]  # channel, data; channel 3 is how it ended
Exec = Callable[[str, list[str]], Frames]  # of a pod, a command and, for `follow`, a line of stdin


def _well(_pod: str, _argv: list[str]) -> Frames:
    return [(3, json.dumps(SUCCESS).encode())]


def _nothing(_method: str, _path: str) -> None:
    """Happens."""


@dataclass
class ApiServer:
    """`objects` by path. `refused` answers a method and path with a status instead."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    failing: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # first, statuses; 0:
    # it does what is asked, and hangs up
    requests: list[tuple[str, str]] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # the last one, by path
    denied: set[tuple[str, str]] = field(default_factory=set)  # verb, resource
    execs: list[tuple[str, list[str]]] = field(default_factory=list)
    on_exec: Exec = _well
    on_change: Callable[[str, str], None] = _nothing
    down: bool = False  # hangs up on everybody
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, path: str, **value: Any) -> None:
        name = path.rpartition("/")[2]
        meta = {"name": name, "uid": path, "creationTimestamp": "2026-01-01T00:00:00Z"}
        if "/namespaces/" in path:
            meta["namespace"] = path.split("/namespaces/")[1].split("/")[0]
        with self.lock:
            self.objects[path] = {**value, "metadata": {**meta, **value.get("metadata", {})}}

    def names(self, namespace: str) -> set[str]:
        """Kind and name of all there is in a namespace."""
        inside = f"/namespaces/{namespace}/"
        with self.lock:
            return {path.split(inside)[1] for path in self.objects if inside in path}

    def node(self, name: str, **labels: str) -> None:
        info = {"operatingSystem": "linux", "kernelVersion": "6.1", "architecture": "amd64"}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"nodeInfo": info, "conditions": ready}
        self.put(f"/api/v1/nodes/{name}", metadata={"labels": labels}, status=status)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        fake = self.server.fake
        split = urlsplit(self.path)
        path, query = unquote(split.path), parse_qs(split.query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fake.down:
            self.close_connection = True
            return
        fake.requests.append((method, path))
        if fake.failing.get((method, path)):
            code = fake.failing[method, path].pop(0)
            if code:
                self._answer(code, {"kind": "Status", "message": "later", "code": code})
            else:
                self._do(method, path, query, body)
                self.close_connection = True
        elif (method, path) in fake.refused:
            status, message = fake.refused[method, path]
            self._answer(status, {"kind": "Status", "message": message, "code": status})
        elif path.endswith("/exec"):
            self._exec(path.split("/")[-2], query["command"], query["stdin"] == ["true"])
        else:
            with fake.lock:
                self._answer(*self._do(method, path, query, body))
            fake.on_change(method, path)

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
        found = [one for key, one in fake.objects.items() if key.rpartition("/")[0] == path]
        last = path.rpartition("/")[2]
        if not found and not last.endswith("s"):
            return 404, {"reason": "NotFound", "message": f"{path} not found"}
        for selector in query.get("labelSelector", []):
            found = [one for one in found if _selected(selector, one)]
        return 200, {"items": found}

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
        return 200, {}

    def _answer(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

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
            ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        try:
            asked = [self._line().decode()] if stdin and argv[1:] == ["follow"] else []
            for channel, data in fake.on_exec(pod, [*argv, *asked]):
                self.wfile.write(_frame(bytes([channel]) + data))
            self.wfile.write(b"\x88\x02\x03\xe8")  # a normal close
            while self.connection.recv(1 << 16):
                """What is not read would reset the connection."""
        except OSError:
            return

    def _line(self) -> bytes:
        """Of stdin: messages until its end (RFC 6455, 5.2)."""
        line = b""
        while not line.endswith(b"\n"):
            size = self.rfile.read(2)[1] & 0x7F
            if size > 125:
                size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
            mask, data = self.rfile.read(4), self.rfile.read(size)
            message = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
            assert message[:1] == b"\0", "channel 0"
            line += message[1:]
        return line


def _frame(data: bytes) -> bytes:
    """One binary message (RFC 6455, 5.2)."""
    if len(data) < 126:
        return bytes([0x82, len(data)]) + data
    if len(data) < 1 << 16:
        return struct.pack("!BBH", 0x82, 126, len(data)) + data
    return struct.pack("!BBQ", 0x82, 127, len(data)) + data


def _selected(selector: str, one: dict[str, Any]) -> bool:
    """`a=b` and `a in (b,c)`, joined by commas outside of parentheses."""
    labels = one["metadata"].get("labels") or {}
    if " in (" in selector:
        key, _, values = selector.partition(" in (")
        return labels.get(key) in values.rstrip(")").split(",")
    return all(
        labels.get(key) == value for key, value in (p.split("=") for p in selector.split(","))
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: ApiServer


@contextmanager
def listening() -> Iterator[ApiServer]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake = ApiServer(url=f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(path: Path, url: str) -> Path:
    """A kubeconfig with the context `here` for a server."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path
