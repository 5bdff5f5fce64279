#!/usr/bin/python3
"""The programs of bench.virtual.mahimahi.

mahimahi_ends.py receive FILE           number of a datagram and when it came (ns of the clock)
mahimahi_ends.py send FILE              to where mm-link's shell says that the outside is, drawn
mahimahi_ends.py again ADDRESS PLANNED FILE     the same datagrams at planned ns of the clock

Those who send write when (ns of the clock) and how many bytes of payload, in the order of numbers.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import time
from pathlib import Path

PORT = 7000
COUNT, EACH_S = 6000, 0.004
SIZES = (8, 108, 708, 1448, 1448)
SO_TIMESTAMPNS = 35


def receive(to: str) -> None:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("", PORT))
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with Path(to).open("w", buffering=1) as log:
        while True:
            data, said, _, _ = end.recvmsg(2000, 200)
            seconds, ns = struct.unpack("qq", said[0][2])
            print(struct.unpack_from("<Q", data)[0], seconds * 10**9 + ns, file=log)


def send(to: str) -> None:
    draws, at_ns = random.Random(5), time.clock_gettime_ns(time.CLOCK_REALTIME)
    planned = []
    for _ in range(COUNT):
        at_ns += round(draws.expovariate(1 / EACH_S) * 1e9)
        planned.append((at_ns, draws.choice(SIZES)))
    _send(os.environ["MAHIMAHI_BASE"], planned, to)


def again(address: str, planned: str, to: str) -> None:
    lines = Path(planned).read_text().splitlines()
    _send(address, [(int(at), int(size)) for at, size in map(str.split, lines)], to)


def _send(address: str, planned: list[tuple[int, int]], to: str) -> None:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to_address, sent = (socket.gethostbyname(address), PORT), []
    for number, (at_ns, size) in enumerate(planned):
        wait_ns = at_ns - time.clock_gettime_ns(time.CLOCK_REALTIME)
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        sent.append((time.clock_gettime_ns(time.CLOCK_REALTIME), size))
        end.sendto(struct.pack("<Q", number).ljust(size, b"\0"), to_address)
    Path(to).write_text("".join(f"{at} {size}\n" for at, size in sent))
    time.sleep(5)  # what waits in the queue comes meanwhile


def main() -> None:
    verb, *words = sys.argv[1:]
    if verb == "receive":
        receive(words[0])
    elif verb == "send":
        send(words[0])
    else:
        again(words[0], words[1], words[2])


main()
