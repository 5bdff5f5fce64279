#!/usr/bin/python3
"""Asks one of the other machines after the other for an answer, over whatever way routes lead, and
logs who was asked when and how long an answer took."""

import os
import select
import socket
import struct
import time
from contextlib import suppress

COUNT = int(os.environ["COUNT"])  # of machines
OWN = int(os.environ["TSTORM_MACHINE"].rpartition(".")[2])
PORT, EVERY = 5001, 0.2

end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
end.bind((f"fd00::{OWN + 1:x}", PORT))
due, turn = time.monotonic() + 0.5 + EVERY * OWN / COUNT, 0
while True:
    now = time.monotonic()
    if now >= due:
        to = (OWN + 1 + turn % (COUNT - 1)) % COUNT
        try:
            end.sendto(struct.pack("<cid", b"?", to, now), (f"fd00::{to + 1:x}", PORT))
            print(f"{now:.3f} {to} asked", flush=True)
        except OSError:  # there is no route
            print(f"{now:.3f} {to} no way", flush=True)
        due, turn = due + EVERY, turn + 1
    elif select.select([end], [], [], due - now)[0]:
        words, source = end.recvfrom(100)
        kind, to, sent = struct.unpack("<cid", words)
        if kind == b"?":
            with suppress(OSError):  # there is no route back
                end.sendto(struct.pack("<cid", b"!", to, sent), source)
        else:
            print(f"{sent:.3f} {to} {(time.monotonic() - sent) * 1e3:.3f} ms", flush=True)
