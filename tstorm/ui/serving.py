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

import uvicorn

from runtime.errors import RunError
from runtime.launch.run_status import directory_of, goes_on
from runtime.page.growing_page import GrowingPage
from runtime.rundir.rundir import RunDirectory
from tstorm.live.steer import time_held
from tstorm.reporting.openmetrics import live_text
from tstorm.ui.access import Guarded
from tstorm.ui.bounded_http import hang_up_on_all, settings
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
