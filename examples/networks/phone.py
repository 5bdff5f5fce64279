"""Asks a server ten times a second, over the first of several networks that answers.

phone.py SERVER NAME…   the NAMEs are its own interfaces, the best one first
phone.py                the server: answers whatever comes

Whenever another network is in use it says which, and how long the answer took.
"""

import select
import socket
import sys
import time

PORT, EVERY_S, PATIENCE_S = 7777, 0.1, 0.2


def serve():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
        answering.bind(("", PORT))
        while True:
            data, asker = answering.recvfrom(2048)
            answering.sendto(data, asker)


class Network:
    """A socket that is bound to one interface's address: what it sends leaves by that one."""

    def __init__(self, name, server):
        self.name = name
        self.number = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((name, 0))
        self.socket.connect((server, PORT))

    def ask(self):
        """How long the answer took in s; None: there was none in time."""
        self.number += 1
        question = str(self.number).encode()
        began = time.monotonic()
        self.socket.send(question)
        while (left := began + PATIENCE_S - time.monotonic()) > 0:
            if select.select([self.socket], [], [], left)[0] and self.socket.recv(64) == question:
                return time.monotonic() - began
        return None


def use(server, names):
    networks = [Network(name, server) for name in names]
    before = None
    while True:
        for network in networks:
            took = network.ask()
            if took is not None:
                break
        else:
            network = None
        if network is not before:
            before = network
            if network is None:
                print("nobody answers", flush=True)
            else:
                print(f"over {network.name}: {took * 1000:.0f} ms", flush=True)
        time.sleep(EVERY_S)


if len(sys.argv) > 1:
    use(sys.argv[1], sys.argv[2:])
else:
    serve()
