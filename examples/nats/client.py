#!/usr/bin/env python3
"""client.py SERVER: publishes to a stream that three servers keep, then reads what the stream has.

A message counts as acknowledged when a majority of the servers has it. Ends with 1 if one of those
is not in the stream, or if none was acknowledged.
"""

import base64
import json
import socket
import sys
import time

SECONDS = 18
STREAM = {"name": "orders", "subjects": ["orders"], "num_replicas": 3}
INBOX = "_INBOX.client"


class Client:
    def __init__(self, host):
        self.server = socket.create_connection((host, 4222))
        self.server.sendall(f"CONNECT {{}}\r\nSUB {INBOX}.* 1\r\n".encode())
        self.received = b""
        self.asked = 0

    def request(self, subject, text):
        """The answer as a dictionary; {"error": …} where none came within a second."""
        self.asked += 1
        reply = f"{INBOX}.{self.asked}"
        self.server.sendall(f"PUB {subject} {reply} {len(text)}\r\n{text}\r\n".encode())
        deadline = time.monotonic() + 1
        try:
            while True:
                words = self.read(deadline).split()
                if words[:1] == ["MSG"]:
                    answer = json.loads(self.read(deadline, int(words[-1])))
                    if words[1] == reply:  # else it is late, of an earlier request
                        return answer
                elif words == ["PING"]:
                    self.server.sendall(b"PONG\r\n")
        except TimeoutError:
            return {"error": "no answer"}

    def read(self, deadline, size=None):
        """A line, or `size` bytes and the end of their line."""
        while True:
            end = self.received.find(b"\r\n", size)
            if end >= 0:
                text, self.received = self.received[:end], self.received[end + 2 :]
                return text.decode()
            self.server.settimeout(max(deadline - time.monotonic(), 0.001))
            more = self.server.recv(65536)
            if not more:
                sys.exit("the server is gone")
            self.received += more


client = Client(sys.argv[1])
while "error" in (made := client.request("$JS.API.STREAM.CREATE.orders", json.dumps(STREAM))):
    print("making the stream:", made["error"], flush=True)
    time.sleep(0.2)

acknowledged = {}  # number of an order: its place in the stream
began = last = time.monotonic()
pause = 0.0
number = 0
while time.monotonic() < began + SECONDS:
    number += 1
    answer = client.request("orders", str(number))
    now = time.monotonic()
    if "error" in answer:
        print(f"{now - began:6.3f} s: order {number}: {answer['error']}", flush=True)
    else:
        acknowledged[number] = answer["seq"]
        pause, last = max(pause, now - last), now
    time.sleep(0.02)

missing = 0
for order, place in acknowledged.items():
    patience = time.monotonic() + 30  # they may still be electing one that answers
    while True:
        answer = client.request("$JS.API.STREAM.MSG.GET.orders", json.dumps({"seq": place}))
        if "error" not in answer or time.monotonic() > patience:
            break
        time.sleep(0.2)
    data = answer.get("message", {}).get("data", "")
    if base64.b64decode(data).decode() != str(order):
        missing += 1
        print(f"order {order}: {answer.get('error', data)}")
print(
    f"{number} orders, {len(acknowledged)} acknowledged, {missing} missing,"
    f" longest pause {pause:.1f} s"
)
sys.exit(missing > 0 or not acknowledged)
