"""Datagrams at a constant rate (of IP packets of 1,500 bytes, IPv4), and when they arrive.

`python -m bench.hosts.udp send HOST MBIT` sends until it is killed, in bursts of 1 ms;
`… pulse HOST MBIT ROUNDS` for 0.3 s and then not for 0.3 s and up to a period of the agents' loop,
so that rounds begin at any moment of it, ROUNDS times;
`… count` prints a line of JSON for every 2 ms in which something arrived: `t_ns` (CLOCK_REALTIME,
where the 2 ms begin) and `bytes` of IP packets. The time is the kernel's (SO_TIMESTAMPNS,
socket(7)), so it does not matter when this program gets to read.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
import time
from contextlib import suppress

PORT = 7500
PAYLOAD = 1472
OVERHEAD = 28  # IPv4 and UDP
INTERVAL_NS = 2_000_000
PULSE_S = 0.3
PERIOD_S = 0.025  # of the agents' loop
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h


def send(host: str, mbit: float, seconds: float) -> None:
    gap_ns = (PAYLOAD + OVERHEAD) * 8000 / mbit
    data = bytes(PAYLOAD)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect((host, PORT))
        due = float(time.monotonic_ns())
        end = due + seconds * 1e9
        while (now := time.monotonic_ns()) < end:
            while due <= now:
                with suppress(OSError):  # not reachable yet, or no longer: the rate goes on
                    out.send(data)
                due += gap_ns
            time.sleep(0.001)


def pulse(host: str, mbit: float, rounds: int) -> None:
    source = random.Random(1)
    for _ in range(rounds):
        send(host, mbit, PULSE_S)
        time.sleep(PULSE_S + source.uniform(0, PERIOD_S))


def count() -> None:
    """Until it is killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        source.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        source.bind(("", PORT))
        room, begin, total = bytearray(2048), 0, 0
        while True:
            size, ancillary, _, _ = source.recvmsg_into([room], 64)
            seconds, nanoseconds = struct.unpack("@ll", ancillary[0][2])
            now = seconds * 1_000_000_000 + nanoseconds
            if now - begin >= INTERVAL_NS:
                if total:
                    print(json.dumps({"t_ns": begin, "bytes": total}), flush=True)
                total, begin = 0, now - now % INTERVAL_NS
            total += size + OVERHEAD


def main(what: str, *words: str) -> None:
    if what == "send":
        send(words[0], float(words[1]), float("inf"))
    elif what == "pulse":
        pulse(words[0], float(words[1]), int(words[2]))
    else:
        count()


if __name__ == "__main__":
    main(*sys.argv[1:])
