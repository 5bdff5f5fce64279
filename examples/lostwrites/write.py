#!/usr/bin/env python3
"""Appends 1, 2, 3, … to the list `writes`; prints when which of them was acknowledged.

With --wait a write counts as acknowledged only when a replica has it, too.
"""

import socket
import sys
import time

WAIT = "--wait" in sys.argv


def connect(host, port):
    return socket.create_connection((host, port), timeout=2).makefile("rwb")


def ask(server, command):
    """The first line of the reply. An error, or no reply within 2 s, raises OSError."""
    server.write(command.encode() + b"\r\n")
    server.flush()
    reply = server.readline().decode().strip()
    if not reply or reply[0] == "-":
        raise OSError(reply or "connection closed")
    return reply


def primary():
    """A connection to the server that the Sentinel of this site calls the primary."""
    with connect("sentinel1", 26379) as sentinel:
        ask(sentinel, "SENTINEL get-master-addr-by-name shop")
        _, host, _, port = (sentinel.readline().decode().strip() for _ in range(4))
    return connect(host, int(port))


server = None
number = 0
while True:
    number += 1
    try:
        server = server or primary()
        ask(server, f"RPUSH writes {number}")
        if WAIT and ask(server, "WAIT 1 500") == ":0":
            outcome = "failed: no replica has it"
        else:
            outcome = "acknowledged"
    except OSError as error:
        server, outcome = None, f"failed: {error}"
    print(time.monotonic_ns(), number, outcome, flush=True)
    time.sleep(0.05)
