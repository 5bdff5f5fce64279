#!/usr/bin/env python3
"""memclient.py HOST: eight threads set and get keys of a memcached; at the end its statistics."""

import random
import socket
import sys
import threading
import time

KEPT = ("STAT cmd_", "STAT get_", "STAT curr_items", "STAT total_", "STAT bytes", "STAT time")


def talk(number: int) -> None:
    with socket.create_connection((sys.argv[1], 11211)) as connection:
        server = connection.makefile("rwb")
        for _ in range(60):
            key, value = random.randrange(50), random.randbytes(random.randrange(1, 200)).hex()
            began = time.perf_counter_ns()
            server.write(f"set key{key} 0 0 {len(value)}\r\n{value}\r\n".encode())
            server.flush()
            stored = server.readline().decode().strip()
            server.write(f"get key{key}\r\n".encode())
            server.flush()
            size = 0
            while (line := server.readline().strip()) != b"END":
                size += len(line)
            print(number, key, stored, size, time.perf_counter_ns() - began, flush=True)
            time.sleep(random.random() / 50)


def statistics() -> None:
    with socket.create_connection((sys.argv[1], 11211)) as connection:
        server = connection.makefile("rwb")
        server.write(b"stats\r\n")
        server.flush()
        while (line := server.readline().decode().strip()) != "END":
            if line.startswith(KEPT):
                print(line)


threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
statistics()
