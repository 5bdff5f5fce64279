"""Serves the page of one run until it is told to end: `tstorm ui`.

The server reads the run's directory and talks to its socket as every command does; it is a process
of its own that the run knows nothing of.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from runtime.errors import RunError
from runtime.launch.run_status import directory_of, goes_on
from runtime.page.growing_page import GrowingPage
from runtime.rundir.rundir import RunDirectory
from tstorm.live.steer import time_held
from tstorm.reporting.openmetrics import live_text
from tstorm.ui.access import Guarded
from tstorm.ui.feed import Feed
from tstorm.ui.routes import API, ServedRun, application

LOOPBACK = "127.0.0.1"
LEAST_TOKEN = 16  # characters
_MOST_TOKEN_BYTES = 1024
_BEGIN_SECONDS = 20.0  # for a run whose directory is being made
_LINGER_SECONDS = 3.0  # for who has not taken the end yet


def serve(
    run: str,
    listen: str,
    port: int,
    token_file: str | None,
    tell: Callable[[str], None],
    *,
    with_run: bool,
) -> None:
    """`tell` is given the link. `with_run`: the run is just about to begin, and the server ends
    with it. RunError."""
    token = secrets.token_urlsafe(32) if token_file is None else _token(token_file)
    directory = _opened(run, patient=with_run)
    page = GrowingPage(directory, lambda: goes_on(directory) is not False)
    name = str(directory.path)
    feed = Feed(page, API, lambda: time_held(name))
    served = ServedRun(name, feed, lambda: live_text(page))
    bound = _bound(listen, port)
    app = Guarded(application(served), token, [listen])
    address, number = bound.getsockname()[:2]
    host = f"[{address}]" if ":" in address else address
    tell(f"http://{host}:{number}/#{token}")
    server = uvicorn.Server(uvicorn.Config(app, **settings()))
    with bound, suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, feed, bound, with_run=with_run))


async def _serve(
    server: uvicorn.Server, feed: Feed, bound: socket.socket, *, with_run: bool
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    feeding = asyncio.create_task(feed.run())
    try:
        await asyncio.wait({serving, feeding}, return_when=asyncio.FIRST_COMPLETED)
        if feeding.done():
            feeding.result()  # what is wrong with it ends the server, too
        if with_run and not serving.done():
            deadline = time.monotonic() + _LINGER_SECONDS
            while feed.is_listened_to and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            server.should_exit = True
        await serving
    finally:
        feeding.cancel()
        server.should_exit = True
        await hang_up_on_all(server)


def _token(name: str) -> str:
    """RunError."""
    try:
        with Path(name).open("rb") as file:
            mode = file.fileno()
            found = stat.S_IMODE(Path(f"/proc/self/fd/{mode}").stat().st_mode)
            data = file.read(_MOST_TOKEN_BYTES)
    except OSError as error:
        raise RunError(f"{name}: {error.strerror}") from error
    if found & 0o077:
        raise RunError(f"{name} can be read by others", f"chmod 600 {name}")
    token = data.decode("ascii", "replace").strip()
    if len(token) < LEAST_TOKEN or not token.replace("-", "").replace("_", "").isalnum():
        hint = f"openssl rand -hex 32 > {name}"
        raise RunError(f"{name} is no secret of {LEAST_TOKEN} letters and digits or more", hint)
    return token


def _opened(run: str, *, patient: bool) -> RunDirectory:
    deadline = time.monotonic() + _BEGIN_SECONDS
    while True:
        try:
            return directory_of(run)
        except RunError:
            if not patient or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _bound(listen: str, port: int) -> socket.socket:
    """RunError."""
    with ExitStack() as undone:
        try:
            found = socket.getaddrinfo(listen, port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = found[0]
            bound = undone.enter_context(socket.socket(family, kind, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError as error:
            hint = "leave out the port, and a free one is taken" if port else ""
            why = f"cannot listen on {listen}:{port}: {error.strerror}"
            raise RunError(why, hint) from error
        undone.pop_all()
    return bound


def is_loopback(listen: str) -> bool:
    """Whether only this machine gets there."""
    try:
        return ipaddress.ip_address(listen).is_loopback
    except ValueError:
        return listen == "localhost"


# Connections of the page's server: so many at a time, and none that only waits.
#
# What is beyond MOST_CONNECTIONS is hung up on, and so is who does not finish a request's head
# within PATIENCE_SECONDS. The application finds `hang_up` in the state of its scope, for who
# takes nothing.

MOST_CONNECTIONS = 256
PATIENCE_SECONDS = 10.0
HEAD_BYTES = 16 << 10


class BoundedHttp(H11Protocol):
    """One connection."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "hang_up": transport.abort}
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._patience = self.loop.call_later(PATIENCE_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """Between two requests of a connection uvicorn has its own bound."""
        if getattr(self, "cycle", None) is None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)


async def hang_up_on_all(server: Server) -> None:
    """Of a server that has ended: on who still listens."""
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    await asyncio.sleep(0)  # closed in the loop's next turn


def settings() -> dict[str, Any]:
    """Of uvicorn."""
    return {
        "http": BoundedHttp,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "log_level": "critical",  # anybody may send nonsense
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": 1,
        "h11_max_incomplete_event_size": HEAD_BYTES,
        "backlog": 64,
    }
