"""Where a process receives, as text: ADDRESS:PORT, an IPv6 address in brackets (RFC 3986, section
3.2.2)."""

from __future__ import annotations

Endpoint = tuple[str, int]  # address (IPv6 without brackets), port
MAX_PORT = 65535


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
