"""Where a process receives, as text: ADDRESS:PORT, an IPv6 address in brackets (RFC 3986, section
3.2.2); and how long a connection to it lasts when its machine is gone."""

from __future__ import annotations

import socket

Endpoint = tuple[str, int]  # address (IPv6 without brackets), port
MAX_PORT = 65535
IDLE_SECONDS, INTERVAL_SECONDS, UNANSWERED = 5, 3, 3  # TCP asks an idle peer whether it is there


def text(endpoint: Endpoint) -> str:
    address, port = endpoint
    return f"[{address}]:{port}" if is_ipv6(endpoint) else f"{address}:{port}"


def parse(words: str) -> Endpoint:
    """What text() has made. ValueError for anything else."""
    host, colon, port = words.rpartition(":")
    address = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    bare = ":" in address and address == host
    decimal = port.isascii() and port.isdecimal()
    if not colon or not address or bare or not decimal or int(port) > MAX_PORT:
        raise ValueError(f"{words!r} is not ADDRESS:PORT or [IPV6]:PORT")
    return address, int(port)


def is_ipv6(endpoint: Endpoint) -> bool:
    return ":" in endpoint[0]


def keep_alive(connection: socket.socket) -> None:
    """A peer whose machine is gone ends the connection, after 14 s."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, UNANSWERED)
