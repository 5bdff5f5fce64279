"""Commands in containers of the cluster: the API server's exec over a websocket.

Channels of the protocol (v4, v5.channel.k8s.io): 0 stdin, 1 stdout, 2 stderr, 3 how it ended, as a
Status object; 4 the terminal's size; with v5 the message 255, 0 ends stdin.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.backend.k8s.exec_status import (
    ENDED,
    STDERR,
    STDOUT,
    How,
    how_ended,
)
from runtime.errors import RunError
from tstorm.k8s.connection import FORBIDDEN, ApiConnection

CONNECT_SECONDS, CLOSE_SECONDS = 15.0, 1.0
ANSWER_BYTES = 1 << 28


class BrokenStreamError(RunError):
    """The connection to a container broke, or could not be made (yet)."""


@dataclass(frozen=True, slots=True)
class ContainerPlace:
    """A container."""

    namespace: str
    pod: str
    container: str


@contextmanager
def opened(
    connection: ApiConnection,
    place: ContainerPlace,
    argv: Sequence[str],
    *,
    stdin: bool = False,
    tty: bool = False,
) -> Iterator[Any]:
    """The client's websocket. BrokenStreamError if there is none, RunError if it is forbidden."""
    import websocket
    from kubernetes.stream import ws_client

    client: Any = ws_client  # it has no types
    websocket.setdefaulttimeout(CONNECT_SECONDS)
    path = f"/api/v1/namespaces/{place.namespace}/pods/{place.pod}/exec"
    flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    query = [("container", place.container), ("command", list(argv))]
    query += [(name, str(value).lower()) for name, value in flags.items()]
    url = client.get_websocket_url(f"{connection.server}{path}", query)
    configuration = connection.api.configuration
    with _broken(place):
        socket = client.WSClient(
            configuration, url, connection.headers(), capture_all=False, binary=True
        )
    # One message a call. Newer clients take all there are first: of `yes` there is no last one.
    socket._frames_immediately_available = lambda: False
    try:
        with _broken(place):
            yield socket
    finally:
        socket.close(timeout=CLOSE_SECONDS)
        socket.sock.shutdown()  # which close() leaves out when the other end was first


@contextmanager
def _broken(place: ContainerPlace) -> Iterator[None]:
    import websocket

    try:
        yield
    except (websocket.WebSocketException, OSError) as error:
        if getattr(error, "status_code", 0) == FORBIDDEN:
            raise RunError(
                f"you may not start a command in pod {place.pod}",
                "ask for get and create of pods/exec, or use another --context",
            ) from error
        what = str(error).partition(" -+-+- ")[0] or type(error).__name__
        raise BrokenStreamError(f"no connection into pod {place.pod}: {what}") from error


def output(socket: Any, seconds: float) -> Iterator[bytes]:
    """What the command prints, as it comes, to its end. BrokenStreamError if nothing came for so
    long; what it said on stderr is left for the caller."""
    heard = time.monotonic()
    while True:
        data = socket.read_channel(STDOUT, timeout=1.0)
        if data:
            yield data
            heard = time.monotonic()
        elif not socket.is_open():
            return
        elif time.monotonic() - heard > seconds:
            raise BrokenStreamError(f"nothing came for {seconds:.0f} s")


def ended(socket: Any) -> How | None:
    """After the end of the output; None if the connection broke before the command ended."""
    data = socket.read_channel(ENDED)
    return how_ended(data) if data else None


def failure(socket: Any, how: How, argv: Sequence[str], place: ContainerPlace) -> RunError:
    """Of a command that has ended with something else than 0: its last words."""
    words = socket.read_channel(STDERR).decode("utf-8", "replace").strip().splitlines()
    why = how.refusal or (words[-1] if words else f"it ended with {how.status}")
    return RunError(
        f"{' '.join(argv)} in pod {place.pod}: {why}",
        "an image of another release cannot do it: use this release's (--agent-image)"
        if "usage:" in why
        else "",
    )


def answer(
    connection: ApiConnection, place: ContainerPlace, argv: Sequence[str], seconds: float = 30.0
) -> bytes:
    """What a command prints that ends with 0. RunError with its last words otherwise."""
    with opened(connection, place, argv) as socket:
        data = b""
        for part in output(socket, seconds):
            data += part
            if len(data) > ANSWER_BYTES:
                raise RunError(f"the answer of {argv[0]} in pod {place.pod} has no end")
        errors = socket.read_channel(STDERR)
        how = ended(socket)
    if how is None:
        raise BrokenStreamError(f"the connection into pod {place.pod} broke")
    if how.status:
        words = errors.decode("utf-8", "replace").strip().splitlines()
        why = how.refusal or (words[-1] if words else f"it ended with {how.status}")
        raise RunError(f"{' '.join(argv)} in pod {place.pod}: {why}")
    return data
