#!/usr/bin/env python3
"""natsclient.py publish HOST … | listen HOST …: numbers from one to all, in NATS' text protocol."""

import json
import socket
import sys
import threading
import time


def connect(host: str) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection((host, 4222), timeout=30)
        except OSError as error:
            print(f"{time.time():.6f}", host, error, flush=True)
            time.sleep(0.2)
            continue
        connection.sendall(b"CONNECT {}\r\n")
        return connection


def publish(host: str) -> None:
    with connect(host) as connection:
        for number in range(600):
            word = str(number).encode()
            connection.sendall(b"PUB storm %d\r\n%s\r\n" % (len(word), word))
            time.sleep(0.02)


def listen(host: str) -> None:
    with connect(host) as connection:
        lines = connection.makefile("rb")
        connection.sendall(b"SUB storm 1\r\n")
        for line in lines:
            if line.startswith(b"PING"):
                connection.sendall(b"PONG\r\n")
            elif line.startswith(b"INFO"):
                info = json.loads(line[5:])
                print(host, info["server_id"], info.get("connect_urls"), flush=True)
            elif line[:1].isdigit():
                print(f"{time.time():.6f}", host, line.decode().strip(), flush=True)


role = {"publish": publish, "listen": listen}[sys.argv[1]]
threads = [threading.Thread(target=role, args=(host,)) for host in sys.argv[2:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
