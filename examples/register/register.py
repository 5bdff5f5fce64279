"""A register in memory. `register.py serve [COPY]` keeps it, and sends each new value to COPY after
it has answered. `register.py work PRIMARY STANDBY yes` reads and writes it for ever, asks the
standby where the primary does not answer within 0.3 s, and writes down each operation."""

import json
import os
import random
import socket
import sys
import time
from pathlib import Path

PORT, PATIENCE, PAUSE = 7000, 0.3, 0.1


def serve(copy: str = "") -> None:
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind(("", PORT))
    value = None
    while True:
        data, client = here.recvfrom(1000)
        number, f, written = json.loads(data)
        if f != "read":
            value = written
        if f != "copy":
            here.sendto(json.dumps([number, value]).encode(), client)
        if f == "write" and copy:
            here.sendto(json.dumps([number, "copy", value]).encode(), (copy, PORT))


def work(primary: str, standby: str, failover: str) -> None:
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.settimeout(PATIENCE)
    index = int(os.environ["TSTORM_INDEX"])
    draw = random.Random(index)
    with Path("history.jsonl").open("a", buffering=1) as history:

        def record(kind: str, f: str, value: object) -> None:
            line = {"process": index, "type": kind, "f": f, "value": value}
            print(json.dumps({**line, "time": time.monotonic_ns()}), file=history)

        for number in range(sys.maxsize):
            f = draw.choice(["read", "write"])
            value = f"{index}-{number}" if f == "write" else None
            record("invoke", f, value)
            kind = "info"
            for server in [primary, standby] if failover == "yes" else [primary]:
                try:
                    here.sendto(json.dumps([number, f, value]).encode(), (server, PORT))
                    while (answer := json.loads(here.recv(1000)))[0] != number:
                        pass  # an answer to what was asked before
                    kind, value = "ok", answer[1] if f == "read" else value
                    break
                except OSError:  # none in time, or none there: nobody knows whether it was done
                    continue
            record(kind, f, value)
            time.sleep(PAUSE)


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    work(*sys.argv[2:])
