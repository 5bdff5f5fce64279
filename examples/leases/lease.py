"""A lease that one client at a time has. `lease.py serve` gives it; `lease.py hold SERVER date`
asks for it and works until the date that the server has named, by its own clock; with `length` for
as long as the lease lasts, which no wrong clock changes."""

import os
import socket
import sys
import time

SECONDS, PORT = 2.0, 7000


def serve() -> None:
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind(("", PORT))
    holder, until = "", 0.0
    while True:
        data, client = here.recvfrom(100)
        word, name = data.decode().split()
        if word == "ask":
            if holder != name and time.time() >= until:
                holder, until = name, time.time() + SECONDS
                print(f"{name} has the lease until {time.ctime(until)}", flush=True)
                here.sendto(str(until).encode(), client)
            else:
                here.sendto(b"0", client)
        elif name != holder:
            print(f"two holders: {name} works, and {holder} has the lease", flush=True)


def hold(server: str, by_date: bool) -> None:
    there, name = (server, PORT), os.environ["TSTORM_INSTANCE"]
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.settimeout(1)
    while True:
        asked = time.monotonic()
        here.sendto(f"ask {name}".encode(), there)
        until = float(here.recv(100))
        while time.time() < until if by_date else until and time.monotonic() < asked + SECONDS:
            here.sendto(f"work {name}".encode(), there)
            time.sleep(0.1)
        time.sleep(0.05)


if sys.argv[1] == "serve":
    serve()
else:
    hold(sys.argv[2], sys.argv[3] == "date")
