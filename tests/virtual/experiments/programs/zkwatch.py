#!/usr/bin/env python3
"""zkwatch.py HOST …: each half second what each ZooKeeper says of itself."""

import socket
import sys
import time


def state(host: str) -> str:
    try:
        with socket.create_connection((host, 2181), timeout=0.4) as server:
            server.sendall(b"srvr")
            words = server.makefile().read().split("\n")
    except OSError as error:
        return str(error)
    kept = ("Mode", "Zxid", "Latency", "Received")
    return " ".join(word for word in words if word.startswith(kept)) or words[0]


while True:
    for name in sys.argv[1:]:
        print(f"{time.time():.6f}", name, state(name), flush=True)
    time.sleep(0.5)
