"""Connections of the page's server: so many at a time, and none that only waits.

What is beyond MOST_CONNECTIONS is hung up on, and so is who does not finish a request's head within
PATIENCE_SECONDS. The application finds `hang_up` in the state of its scope, for who takes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

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
