"""When a program receives what the kernel has for it already: `python -m bench.hosts.received PORT
SECONDS` prints a line for every datagram, the ns from the kernel's stamp of its arrival
(SO_TIMESTAMPNS, socket(7)) to the program's own look at the same clock; `… to HOST PORT SECONDS`
sends one every 2 ms. The first second is left out."""

from __future__ import annotations

import gc
import socket
import struct
import sys
import time
from contextlib import suppress

INTERVAL_SECONDS = 0.002
SKIPPED_NS = 1_000_000_000
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h


def send(host: str, port: int, seconds: int) -> None:
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        while time.monotonic() < end:
            with suppress(OSError):  # not reachable yet
                out.sendto(bytes(100), (host, port))
            time.sleep(INTERVAL_SECONDS)


def receive(port: int, seconds: int) -> list[int]:
    found: list[int] = []
    began = time.time_ns()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        source.bind(("", port))
        source.settimeout(1)
        while (now := time.time_ns()) < began + seconds * 1_000_000_000:
            with suppress(TimeoutError):
                _, ancillary, _, _ = source.recvmsg(200, 64)
                now = time.time_ns()
                whole, rest = struct.unpack("@ll", ancillary[0][2])
                if now > began + SKIPPED_NS:
                    found.append(now - whole * 1_000_000_000 - rest)
    return found


def main(*words: str) -> None:
    gc.disable()
    if words[0] == "to":
        send(words[1], int(words[2]), int(words[3]))
        return
    for waited_ns in receive(int(words[0]), int(words[1])):
        sys.stdout.write(f"{waited_ns}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
