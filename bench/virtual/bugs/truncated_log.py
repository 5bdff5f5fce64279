"""A follower cuts its log to the high watermark that it knows, which is behind the leader's.

Re-creation of an error of Apache Kafka, issues.apache.org/jira/browse/KAFKA-1211
(KIP-101): a broker that starts drops what it does not know to be committed, and fetches it again
from the leader. If that one fails first, the broker leads, and what was acknowledged is gone.

truncated_log.py broker: one of two. truncated_log.py control: says who leads, and writes.
"""

import sys
import time
from pathlib import Path

from datagrams import ME, loop, send, state

BROKERS = ("broker.0", "broker.1")
ALIVE, IN_SYNC = 0.4, 2.5  # s without a word after which a broker is gone, or out of sync
POLL, PAUSE = 0.3, 0.15  # s that a follower waits for entries, and a writer for its next one


class Broker:
    def __init__(self) -> None:
        self.other = BROKERS[BROKERS[0] == ME]
        self.file, self.mark_file = Path("log"), Path("mark")
        self.log = self.file.read_text().split() if self.file.exists() else []
        self.mark = int(self.mark_file.read_text()) if self.mark_file.exists() else 0
        self.leader, self.fetched_at = "", time.monotonic()
        self.waiting: list[tuple[int, str, str]] = []  # offset, who wrote it, serial number
        self.is_polled = False  # the follower has all, and waits for more

    def keep(self) -> None:
        self.file.write_text(" ".join(self.log))
        self.mark_file.write_text(str(self.mark))

    def tick(self) -> None:
        alone = self.leader == ME and time.monotonic() - self.fetched_at > IN_SYNC
        if alone:
            self.commit(len(self.log))
        send("control.0", "alive", int(alone))
        if self.leader == self.other and time.monotonic() - self.fetched_at > POLL:
            self.fetch()

    def fetch(self) -> None:
        self.fetched_at = time.monotonic()
        send(self.other, "fetch", len(self.log))

    def answer(self, at: int) -> None:
        send(self.other, "entries", at, self.mark, *self.log[at:][:50])
        self.is_polled = False

    def commit(self, mark: int) -> None:
        self.mark = max(self.mark, mark)
        for offset, writer, serial in [one for one in self.waiting if one[0] < self.mark]:
            send(writer, "acknowledged", self.before(offset), serial)
        self.waiting = [one for one in self.waiting if one[0] >= self.mark]
        self.keep()

    def before(self, offset: int) -> str:
        """The newest value there that is another one: a writer may have said one twice."""
        values = [one for one in self.log[:offset] if one != self.log[offset]]
        return values[-1] if values else "0"

    def follow(self, leader: str) -> None:
        self.leader, self.fetched_at = leader, time.monotonic()
        self.waiting, self.is_polled = [], False
        if leader == ME:
            state("leader")
        elif len(self.log) > self.mark:
            self.log = self.log[: self.mark]
            state("truncated")
        self.keep()
        if leader != ME:
            self.fetch()

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if word == "leader" and rest[0] != self.leader:
            self.follow(rest[0])
        elif word == "write" and self.leader == ME:
            self.log.append(rest[0])
            self.waiting.append((len(self.log) - 1, sender, rest[1]))
            self.keep()
            if self.is_polled:
                self.answer(len(self.log) - 1)
        elif word == "fetch" and self.leader == ME:
            self.fetched_at = time.monotonic()
            self.commit(min(int(rest[0]), len(self.log)))
            if int(rest[0]) < len(self.log):
                self.answer(int(rest[0]))
            else:
                self.is_polled = True  # it hears of the new mark with the next entry
        elif word == "entries" and sender == self.leader and int(rest[0]) == len(self.log):
            self.log += rest[2:]
            self.mark = max(self.mark, min(int(rest[1]), len(self.log)))
            self.keep()
            state("follower")
            self.fetch()


class Control:
    def __init__(self) -> None:
        self.leader, self.alone = BROKERS[0], False
        self.seen = dict.fromkeys(BROKERS, time.monotonic())
        self.serial, self.value, self.next_at = 0, 1, 0.0

    def tick(self) -> None:
        now = time.monotonic()
        other = BROKERS[self.leader == BROKERS[0]]
        is_gone = now - self.seen[self.leader] > ALIVE
        if is_gone and not self.alone and now - self.seen[other] < ALIVE:
            self.leader = other
            state(f"{other}-leads")
        if now >= self.next_at:
            self.write()

    def write(self) -> None:
        self.serial, self.next_at = self.serial + 1, time.monotonic() + 2 * PAUSE
        send(self.leader, "write", self.value, self.serial)

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if word == "alive":
            self.seen[sender] = time.monotonic()
            if sender == self.leader:
                self.alone = rest[0] == "1"
            send(sender, "leader", self.leader)
        elif int(rest[1]) == self.serial:
            if int(rest[0]) < self.value - 1:
                print(f"LOST: {self.value - 1} was acknowledged, {rest[0]} is there", flush=True)
            self.value += 1
            self.serial, self.next_at = self.serial + 1, time.monotonic() + PAUSE


program: Broker | Control = Broker() if sys.argv[1] == "broker" else Control()
loop(program.handle, program.tick, 0.05)
