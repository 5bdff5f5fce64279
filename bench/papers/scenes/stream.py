#!/usr/bin/env python3
"""stream.py OTHER FLOWS SECONDS [WINDOW]: so many TCP flows to another instance at once, cubic
whatever the machine's default is, and takes those that come, in windows of WINDOW bytes where that
is given. Says how many bytes of payload came within the time, as JSON. OTHER is - for who only
takes."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

PORT = 5000
JOINED_S = 1  # by then everybody listens


def main() -> None:
    other, flows, seconds, window = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), 0
    if len(sys.argv) > 4:
        window = int(sys.argv[4])
    received: list[int] = []
    threading.Thread(target=serve, args=(received, window), daemon=True).start()
    time.sleep(JOINED_S)
    for _ in range(0 if other == "-" else flows):
        end = socket.socket()
        # Before the connection is made: BBR would leave its pacing behind.
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        end.connect((other, PORT))
        threading.Thread(target=send, args=(end,), daemon=True).start()
    time.sleep(seconds)
    print(json.dumps({"bytes": sum(received), "seconds": seconds}), flush=True)
    os._exit(0)


def serve(received: list[int], window: int) -> None:
    listener = socket.create_server(("", PORT), backlog=64)
    if window:
        if 4 * window <= most_buffer():  # one that is set does not grow; else it has to
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * window)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window)
    while True:
        end, _ = listener.accept()
        threading.Thread(target=take, args=(end, received, window), daemon=True).start()


def most_buffer() -> int:
    """What may be asked for, which the kernel doubles."""
    return 2 * int(Path("/proc/sys/net/core/rmem_max").read_text())


def take(end: socket.socket, received: list[int], window: int) -> None:
    while data := end.recv(1 << 14):
        received.append(len(data))
        if window:  # the kernel takes it back whenever it finds that buffers hold more
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window)


def send(end: socket.socket) -> None:
    while True:
        end.sendall(bytes(1 << 15))


main()
