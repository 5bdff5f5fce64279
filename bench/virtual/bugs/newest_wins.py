"""A write that is acknowledged is dropped, since an earlier one has a later date.

Re-creation of what Apache Cassandra and ScyllaDB do with dates of their servers,
github.com/scylladb/scylladb/issues/10966, aphyr.com/posts/294-call-me-maybe-cassandra: the
coordinator of a write dates it by its own clock, and each replica keeps the value with the latest
date. If a client goes from one whose clock is ahead to another one, its writes have no effect.

newest_wins.py node: one of three, each a coordinator. newest_wins.py client: writes and reads.
"""

import sys
import time

from datagrams import ME, asked, loop, send, state

NODES = ("node.0", "node.1", "node.2")
OTHERS = [name for name in NODES if name != ME]
PREFERRED = 1.5  # s after which a client tries the first node again


class Node:
    def __init__(self) -> None:
        self.date, self.value, self.dated = 0, 0, 0
        self.going: dict[
            str, tuple[str, int, int]
        ] = {}  # client, and the newest of reads, by number

    def tick(self) -> None:
        state("idle" if not self.going else "waiting")
        self.going = dict(list(self.going.items())[-8:])

    def keep(self, date: int, value: int) -> None:
        if date > self.date:
            self.date, self.value = date, value

    def handle(self, sender: str, word: str, *rest: str) -> None:
        serial = rest[-1]
        if word == "write":
            self.dated = max(int(time.time() * 1000), self.dated + 1)
            self.keep(self.dated, int(rest[0]))
            self.going[serial] = (sender, 0, 0)
            for name in OTHERS:
                send(name, "keep", self.dated, rest[0], serial)
        elif word == "read":
            self.going[serial] = (sender, self.date, self.value)
            for name in OTHERS:
                send(name, "get", serial)
        elif word == "keep":
            self.keep(int(rest[0]), int(rest[1]))
            send(sender, "kept", 0, 0, serial)
        elif word == "get":
            send(sender, "got", self.date, self.value, serial)
        elif serial in self.going:  # two of three have it
            client, *mine = self.going.pop(serial)
            send(client, max(mine, [int(rest[0]), int(rest[1])])[1], serial)


def work() -> None:
    place, since, acknowledged, value, step = 0, 0.0, 0, 0, 0
    unknown: set[int] = set()  # written without an answer: they may come to be at any time
    while True:
        if place and time.monotonic() - since > PREFERRED:
            place = 0
        value += step % 2 == 0
        words = ("read",) if step % 2 else ("write", value)
        answer = asked(NODES[place], 0.15, *words)
        if not answer:
            unknown |= {value} if words[0] == "write" else set()
            place, since = (place + 1) % len(NODES), time.monotonic()
            state(f"at-{place}")
            continue
        if words[0] == "write":
            acknowledged = value
        elif int(answer[0]) < acknowledged and int(answer[0]) not in unknown:
            print(f"LOST: {acknowledged} was acknowledged, {answer[0]} is read", flush=True)
        step += 1
        time.sleep(0.05)


if sys.argv[1] == "node":
    node = Node()
    loop(node.handle, node.tick, 0.2)
else:
    work()
