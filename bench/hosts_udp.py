"""`python -m bench.hosts_udp send HOST MBIT` and `… count`: datagrams at a constant rate, counted.

The sender paces in bursts of 1 ms; rates are of IP packets of 1,500 bytes (IPv4). The receiver
prints a line of JSON every 10 ms in which something arrived: `t_ns` (CLOCK_MONOTONIC at the end of
the interval) and `bytes` of IP packets.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import suppress

PORT = 7500
PAYLOAD = 1472
OVERHEAD = 28  # IPv4 and UDP
INTERVAL_NS = 10_000_000


def send(host: str, mbit: float) -> None:
    """Until it is killed."""
    gap_ns = (PAYLOAD + OVERHEAD) * 8000 / mbit
    data = bytes(PAYLOAD)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect((host, PORT))
        due = float(time.monotonic_ns())
        while True:
            while due <= time.monotonic_ns():
                with suppress(OSError):  # not reachable yet, or no longer: the rate goes on
                    out.send(data)
                due += gap_ns
            time.sleep(0.001)


def count() -> None:
    """Until it is killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        source.bind(("", PORT))
        room = bytearray(2048)
        total, end = 0, time.monotonic_ns() + INTERVAL_NS
        while True:
            source.settimeout(max((end - time.monotonic_ns()) / 1e9, 1e-6))
            with suppress(TimeoutError):
                total += source.recv_into(room) + OVERHEAD
            now = time.monotonic_ns()
            if now >= end:
                if total:
                    print(json.dumps({"t_ns": end, "bytes": total}), flush=True)
                total, end = 0, end + INTERVAL_NS * ((now - end) // INTERVAL_NS + 1)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], float(sys.argv[3]))
    else:
        count()
