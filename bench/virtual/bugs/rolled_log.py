"""A server that is taken for dead begins a new log, which nobody reads any more.

Re-creation of an error of Apache HBase, issues.apache.org/jira/browse/HBASE-2312: the
session of a server that stood still is over, its logs were read and given to another server. It
wakes up, rolls its log, and acknowledges writes that are in the new one only.

rolled_log.py server: one of two. rolled_log.py master: sessions, and the files of the logs.
rolled_log.py client: writes 1, 2, 3, …, each until it is acknowledged.
"""

import sys
import time

from datagrams import asked, loop, send, state

SERVERS = ("server.0", "server.1")
SESSION, PATIENCE, ROLL = 0.6, 1.5, 1.5  # s


class Server:
    def __init__(self) -> None:
        self.last = -1  # what was written last; -1: the region is elsewhere
        self.log, self.rolling = 0, False
        self.rolled_at = self.said_at = time.monotonic()
        self.waiting: tuple[int, str, str] | None = None  # value, client, serial number

    def tick(self) -> None:
        """One thing at a time."""
        now = time.monotonic()
        if now - self.rolled_at > ROLL:
            self.rolled_at, self.rolling = now, True
            send("master.0", "roll", self.log + 1)
        elif now - self.said_at > 0.1:
            self.said_at = now
            send("master.0", "alive")

    def append(self) -> None:
        """Waits while the log is rolled."""
        if self.waiting is not None and not self.rolling:
            send("master.0", "append", self.log, self.waiting[0])

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if word == "open":
            self.last, self.log, self.rolling = int(rest[0]), 0, False
            state("open")
        elif word in ("expired", "gone"):
            self.last, self.waiting, self.rolling = -1, None, False
            state("aborted")
        elif word == "rolled":
            self.log, self.rolling = int(rest[0]), False
            state(f"rolled-{self.log % 2}")
            self.append()
        elif word == "write" and self.last < 0:
            send(sender, "elsewhere", rest[1])
        elif word == "write":
            self.waiting = (int(rest[0]), sender, rest[1])
            self.append()
        elif word == "appended" and self.waiting and self.waiting[0] == int(rest[0]):
            value, client, serial = self.waiting
            before, self.last = min(self.last, value - 1), value
            self.waiting = None
            send(client, "written", before, serial)


class Master:
    def __init__(self) -> None:
        self.owner = SERVERS[0]
        self.seen = dict.fromkeys(SERVERS, time.monotonic())
        self.files: dict[tuple[str, int], int] = {(name, 0): 0 for name in SERVERS}
        self.expired: set[str] = set()
        send(self.owner, "open", 0)

    def tick(self) -> None:
        for name in SERVERS:
            if name not in self.expired and time.monotonic() - self.seen[name] > SESSION:
                self.expired.add(name)
                state(f"{name}-expired")
                self.recover(name)

    def recover(self, name: str) -> None:
        """Reads its logs, which are gone then, and gives the region to the other one."""
        logs = [self.files.pop(key) for key in sorted(self.files) if key[0] == name]
        other = SERVERS[name == SERVERS[0]]
        if name == self.owner and other not in self.expired:
            self.owner = other
            self.files[other, 0] = max(logs, default=0)
            send(other, "open", self.files[other, 0])

    def handle(self, sender: str, word: str, *rest: str) -> None:
        key = (sender, int(rest[0])) if rest else (sender, 0)
        if word == "alive":
            self.seen[sender] = time.monotonic()
            if sender in self.expired:
                self.expired.remove(sender)
                send(sender, "expired")
        elif word == "roll":
            self.files[key] = self.files.get((sender, key[1] - 1), 0)  # also if that one is over
            send(sender, "rolled", key[1])
        elif word == "who":
            send(sender, self.owner, rest[0])
        elif word == "append" and key in self.files:
            self.files[key] = int(rest[1])
            send(sender, "appended", rest[1])
        elif word == "append":
            send(sender, "gone")


def write() -> None:
    value, server, since = 1, SERVERS[0], time.monotonic()
    while True:
        answer = asked(server, 0.2, "write", value)
        if answer and answer[0] == "written":
            if int(answer[1]) < value - 1:
                print(f"LOST: {value - 1} was acknowledged, {answer[1]} is there", flush=True)
            value, since = value + 1, time.monotonic()
            time.sleep(0.05)
        elif answer or time.monotonic() - since > PATIENCE:
            found = asked("master.0", 0.2, "who")
            server, since = found[0] if found else server, time.monotonic()
            time.sleep(0.05)


if sys.argv[1] == "client":
    write()
else:
    program: Server | Master = Server() if sys.argv[1] == "server" else Master()
    loop(program.handle, program.tick, 0.02)
