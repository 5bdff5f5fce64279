"""A mirror that has started anew, and has only what came since, becomes the master of a queue.

Re-creation of what mirrored queues of RabbitMQ do where no mirror is synchronised,
rabbitmq.com/ha.html (ha-promote-on-failure=always): a mirror that comes back is empty, and is
given new messages only. If the master fails before the older ones are read, they are gone.

unsynced_mirror.py node: one of two. unsynced_mirror.py client: writes 1, 2, 3, … and reads them
some time later.
"""

import sys
import time
from pathlib import Path

from datagrams import ME, asked, loop, send, state

NODES = ("node.0", "node.1")
OTHER = NODES[NODES[0] == ME]
LOST, FRESH, DEPTH = 0.3, 1.0, 8  # s without a master, s of a node that begins; messages
BEGUN = Path("begun")


class Node:
    def __init__(self) -> None:
        self.queue: list[int] = []
        self.is_master = NODES[0] == ME and not BEGUN.exists()
        self.epoch = int(self.is_master)
        self.seen = self.led = self.began = self.ticked = (
            time.monotonic()
        )  # `led`: when the other was master
        BEGUN.touch()
        self.waiting: dict[int, tuple[str, str]] = {}

    def tick(self) -> None:
        now = time.monotonic()
        if now - self.ticked > LOST:  # it stood still itself
            self.led = self.seen = now
        self.ticked = now
        has_led = self.epoch and now - self.led > LOST  # the other one, which is gone
        if not self.is_master and has_led and now - self.began > FRESH:
            self.is_master, self.epoch = True, self.epoch + 1
            state("promoted")
        if now - self.seen > LOST:
            self.confirm(list(self.waiting))
        send(OTHER, "alive", int(self.is_master), self.epoch)

    def confirm(self, values: list[int]) -> None:
        for value in values:
            if value in self.waiting:
                client, serial = self.waiting.pop(value)
                send(client, "written", serial)

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if sender == OTHER:
            self.seen = time.monotonic()
        if word == "alive" and rest[0] == "1":
            self.meet(int(rest[1]))
        elif word == "copy" and not self.is_master:
            self.queue += [int(rest[0])] if int(rest[0]) not in self.queue else []
            send(sender, "copied", rest[0])
        elif word == "copied":
            self.confirm([int(rest[0])])
        elif word == "drop" and int(rest[0]) in self.queue:
            self.queue.remove(int(rest[0]))
        elif word in ("write", "read") and not self.is_master:
            send(sender, "elsewhere", rest[-1])
        elif word == "write":
            value = int(rest[0])
            self.queue += [value] if value not in self.queue else []
            self.waiting[value] = (sender, rest[1])
            send(OTHER, "copy", value)
        elif word == "read":
            value = self.queue.pop(0) if self.queue else 0
            send(OTHER, "drop", value)
            send(sender, "message", value, rest[0])

    def meet(self, epoch: int) -> None:
        """The other one is a master. Of two the younger one stays, and the older one is empty."""
        if self.is_master and (epoch, OTHER) > (self.epoch, ME):
            self.is_master, self.queue, self.waiting = False, [], {}
            self.epoch, self.led = epoch, time.monotonic()
            state("restarted")
        elif not self.is_master:
            self.epoch, self.led = epoch, time.monotonic()
            state("mirror")


def work() -> None:
    place, value, expected = 0, 1, 1
    while True:
        is_read = value - expected >= DEPTH
        answer = asked(NODES[place], 0.2, *(("read",) if is_read else ("write", value)))
        if not answer or answer[0] == "elsewhere":
            place = 1 - place
            time.sleep(0.02)
        elif answer[0] == "written":
            value += 1
            time.sleep(0.05)
        else:
            if int(answer[1]) > expected + 1 or not int(
                answer[1]
            ):  # one may be lost with its answer
                print(f"LOST: {expected} was acknowledged, {answer[1]} is next", flush=True)
            expected = max(int(answer[1]), expected) + 1
            time.sleep(0.05)


if sys.argv[1] == "node":
    node = Node()
    loop(node.handle, node.tick, 0.08)
else:
    work()
