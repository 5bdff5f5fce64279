#!/usr/bin/env python3
"""client.py SERVER …: writes and reads numbers in a cache of several servers, each key on one.

A server that is gone is a miss, and so is what a server lost in a crash; a value that was never
written is an error (status 1), and so is a cache that has nothing at all.
"""

import random
import socket
import sys
import time
import zlib

SECONDS = 6
KEYS = 200


class Server:
    def __init__(self, name):
        self.name = name
        self.lines = None

    def ask(self, text):
        """The lines of the reply; none where the server is gone."""
        try:
            if self.lines is None:
                address = socket.gethostbyname(self.name), 11211
                self.lines = socket.create_connection(address, timeout=0.3).makefile("rwb")
            self.lines.write(text.encode())
            self.lines.flush()
            reply = []
            while not reply or reply[-1] not in ("STORED", "END"):
                line = self.lines.readline().decode().strip()
                if not line:
                    raise ConnectionError("closed")
                reply.append(line)
        except OSError as error:
            print(f"{self.name}: {error}", flush=True)
            self.lines = None
            return []
        return reply


servers = [Server(name) for name in sys.argv[1:]]
written = {}
hits = misses = wrong = 0
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    key = f"key{random.randrange(KEYS)}"
    server = servers[zlib.crc32(key.encode()) % len(servers)]
    reply = server.ask(f"get {key}\r\n")
    if len(reply) == 3:
        hits += 1
        wrong += reply[1] not in written.get(key, ())
    else:
        misses += 1
        value = str(random.getrandbits(32))
        written.setdefault(key, set()).add(value)
        server.ask(f"set {key} 0 0 {len(value)}\r\n{value}\r\n")
    time.sleep(0.005)
print(f"{hits} hits, {misses} misses, {wrong} wrong")
sys.exit(wrong > 0 or hits == 0)
