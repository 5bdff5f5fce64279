"""A counter with a write-ahead log of its own, as it is often written and as it should be.

log.py serve: a server on port 7000; each line is a number to add, the answer is the sum. It has two
mistakes: it answers before a record is synced, and takes what stands at the end of its log for a
whole record. log.py serve safe: with fsync, with checksums, and what is torn is cut off.
log.py add: adds 1 five times a second, and says when something that it was told is gone.
"""

import os
import socket
import sys
import time
import zlib
from pathlib import Path

LOG = Path("counter.log")
RECORD = 600  # bytes, the number at the end


def record(value: int) -> bytes:
    number = b"%020d\n" % value
    return (b"%010d" % zlib.crc32(number)).ljust(RECORD - len(number), b"x") + number


def whole(data: bytes) -> bytes:
    """The records before the first one that is not what it was."""
    good = 0
    while good + RECORD <= len(data):
        one, number = data[good : good + RECORD], data[good + RECORD - 21 : good + RECORD]
        if not number.strip().isdigit() or one != record(int(number)):
            break
        good += RECORD
    return data[:good]


def serve(safe: bool) -> None:
    data = LOG.read_bytes() if LOG.exists() else b""
    data = whole(data) if safe else data
    value = int(data[-21:] or b"0")
    print("recovered", value, flush=True)
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if safe:
        os.ftruncate(log, len(data))
        os.fsync(log)
        os.fsync(os.open(".", os.O_RDONLY))  # the name of the log, too
    server = socket.create_server(("", 7000))
    while True:
        peer, _ = server.accept()
        for line in peer.makefile("rb"):
            value += int(line)
            os.write(log, record(value))
            if safe:
                os.fdatasync(log)
            peer.sendall(b"%d\n" % value)


def add() -> None:
    told = 0
    while True:
        try:
            with socket.create_connection(("db", 7000), 1) as server:
                answers = server.makefile("rb")
                while True:
                    server.sendall(b"1\n")
                    value = int(answers.readline())
                    if value <= told:
                        print(f"LOST: {told} was acknowledged, and then came {value}", flush=True)
                    told = value
                    time.sleep(0.2)
        except (OSError, ValueError):
            time.sleep(0.5)


if sys.argv[1] == "add":
    add()
else:
    serve("safe" in sys.argv)
