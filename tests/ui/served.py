"""The server of a page with a stand-in for the run, and clients of it that may do anything."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn

from compiler.pipeline import compile_source
from runtime.options import DEFAULTS, RunOptions
from tests.waiting import wait_until
from tstorm.ui.access import Guarded
from tstorm.ui.feed import Feed, Held
from tstorm.ui.routes import API, ServedRun, application
from tstorm.ui.serving import hang_up_on_all, settings

TDL = "service a img=x\nbridge s\nlink a--s latency=1ms\nat 9s quit\n"
TOKEN = "a-secret-of-the-tests"
SECRET = {"Authorization": f"Bearer {TOKEN}"}
JSON = {**SECRET, "Content-Type": "application/json"}


class Told:
    """In the place of a page that grows: `update` is what it tells next."""

    def __init__(self) -> None:
        self.options: RunOptions = DEFAULTS
        self.plan = compile_source(TDL).plan
        self.ended = False
        self.over: dict[str, Any] | None = None
        self.update: dict[str, Any] = {}
        self.all: dict[str, Any] = {"run": {"id": "told"}}

    def whole(self) -> dict[str, Any]:
        return self.all

    def news(self) -> dict[str, Any]:
        update, self.update = self.update, {}
        return update

    def growth(self) -> dict[str, Any]:
        return {}

    def end(self) -> dict[str, Any] | None:
        self.ended = self.over is not None
        return self.over


@dataclass
class Site:
    """Where it is."""

    port: int
    page: Told = field(default_factory=Told)

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = SECRET,
        body: bytes | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body, headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def post(
        self, path: str, value: object, headers: Mapping[str, str] = JSON
    ) -> tuple[int, dict[str, Any]]:
        status, data, _ = self.ask("POST", f"{API}/{path}", headers, json.dumps(value).encode())
        return status, cast(dict[str, Any], json.loads(data))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def listen(self) -> socket.socket:
        """Asks for the stream, and has not read anything."""
        connection = self.connect()
        head = f"GET {API}/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += "Connection: close\r\n"
        connection.sendall(head.encode() + b"\r\n")
        return connection


@contextmanager
def served(
    run: str = "none", options: RunOptions = DEFAULTS, held: Held | None = None
) -> Iterator[Site]:
    """Loopback, a free port."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    site = Site(bound.getsockname()[1])
    site.page.options = options
    feed = Feed(site.page, API, held)
    app = application(ServedRun(run, feed, lambda: "# EOF\n"))
    server = uvicorn.Server(uvicorn.Config(Guarded(app, TOKEN, []), **settings()))

    async def serve() -> None:
        feeding = asyncio.create_task(feed.run())
        try:
            await server.serve(sockets=[bound])
        finally:
            feeding.cancel()
            await hang_up_on_all(server)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        wait_until(lambda: server.started, "the server listens")
        yield site
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
