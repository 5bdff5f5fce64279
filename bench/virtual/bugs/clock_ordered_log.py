"""Of two logs the one whose last entry has the later date wins.

Re-creation of the error of MongoDB's replication protocol v0, jepsen.io/analyses/mongodb-3-4-0-rc3:
who has the newest operation by its clock leads, and the others roll back to what it has. A primary
that was cut off with a clock that is ahead beats the majority, whose acknowledged writes are gone.

clock_ordered_log.py node: one of three. clock_ordered_log.py client: writes 1, 2, 3, …
"""

import sys
import time

from datagrams import ME, asked, loop, send, state

NODES = ("node.0", "node.1", "node.2")
OTHERS = [name for name in NODES if name != ME]
LOST, NEWER = 0.6, 100  # s without a word after which a node is lost; ms that a log is newer by
NOTED = 0.1  # s after which a primary writes an entry that changes nothing


class Node:
    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = [(0, 0)]  # date in ms, value
        self.seen = dict.fromkeys(OTHERS, time.monotonic())
        self.newest = dict.fromkeys(OTHERS, 0)  # the date of each one's last entry
        self.primary, self.noted_at = NODES[0], 0.0
        self.waiting: dict[
            int, tuple[str, str]
        ] = {}  # client and serial number by the entry's date

    def tick(self) -> None:
        now = time.monotonic()
        near = [name for name in OTHERS if now - self.seen[name] < LOST]
        is_lost = self.primary not in (ME, *near)
        if not near:
            self.primary = ""
        elif is_lost and (self.log[-1][0], ME) >= max((self.newest[one], one) for one in near):
            self.primary = ME
        elif is_lost:
            self.primary = ""
        if self.primary == ME and now - self.noted_at > NOTED:
            self.noted_at = now
            self.append(self.log[-1][1])
        state("primary" if self.primary == ME else "secondary" if self.primary else "alone")
        for name in OTHERS:
            self.tell(name)

    def append(self, value: int) -> int:
        date = max(int(time.time() * 1000), self.log[-1][0] + 1)
        self.log.append((date, value))
        return date

    def tell(self, name: str) -> None:
        entries = [f"{date}:{value}" for date, value in self.log[-8:]]
        send(name, "log", int(self.primary == ME), *entries)

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if word == "write" and self.primary == ME:
            self.waiting[self.append(int(rest[0]))] = (sender, rest[1])
            for name in OTHERS:
                self.tell(name)
        elif word == "write":
            send(sender, "elsewhere", rest[1])
        elif word == "log":
            entries = [
                (int(date), int(value))
                for date, _, value in (one.partition(":") for one in rest[1:])
            ]
            self.seen[sender], self.newest[sender] = time.monotonic(), entries[-1][0]
            if self.primary == ME and entries[-1][0] > self.log[-1][0] + NEWER:
                self.primary = ""
                state("stepped-down")
            if rest[0] == "1":
                self.follow(sender, entries)
        elif word == "have" and self.primary == ME:
            for date in [one for one in self.waiting if one <= int(rest[0])]:
                client, serial = self.waiting.pop(date)
                before = self.log[[one[0] for one in self.log].index(date) - 1][1]
                send(client, "written", before, serial)

    def follow(self, sender: str, entries: list[tuple[int, int]]) -> None:
        if self.primary == ME and (self.log[-1][0], ME) > (entries[-1][0], sender):
            return  # that one will follow
        if self.log[-1][0] > entries[-1][0] + NEWER:
            self.primary = ""  # there is nothing to have of it, and it will step down
            return
        if self.primary == ME:
            state("stepped-down")
        self.primary = sender
        if self.log[-1] not in entries and self.log[-1][0] > entries[0][0]:
            state("rollback")
        self.log = [one for one in self.log if one[0] < entries[0][0]] + entries
        self.waiting = {}
        send(sender, "have", self.log[-1][0])


def work() -> None:
    place, value = 0, 1
    while True:
        answer = asked(NODES[place], 0.2, "write", value)
        if not answer or answer[0] == "elsewhere":
            place = (place + 1) % len(NODES)
            time.sleep(0.02)
            continue
        if int(answer[1]) < value - 1:
            print(f"LOST: {value - 1} was acknowledged, {answer[1]} is there", flush=True)
        value += 1
        time.sleep(0.05)


if sys.argv[1] == "node":
    node = Node()
    loop(node.handle, node.tick, 0.08)
else:
    work()
