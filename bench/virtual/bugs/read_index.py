"""A new leader answers reads by what it knows to be committed, before it has committed anything.

Re-creation of an error of etcd, github.com/etcd-io/etcd/issues/7331: a leader confirms
by a majority that it still leads, and answers with its commit index. That of a new leader may be
behind what the one before has acknowledged, until an entry of its own term is committed.

read_index.py node: one of three. read_index.py client: writes 1, 2, 3, … and reads.
"""

import sys
import time

from datagrams import ME, asked, loop, send, state

NODES = ("node.0", "node.1", "node.2")
OTHERS = [name for name in NODES if name != ME]
PATIENCE = 0.35  # s without a leader, and a tenth more for each node


class Node:
    """Raft (D. Ongaro, J. Ousterhout, 2014) without a disk: nobody crashes here."""

    def __init__(self) -> None:
        self.term, self.voted, self.leader = 0, "", ""
        self.log: list[tuple[int, str]] = []  # terms and values
        self.commit = 0
        self.heard_at, self.votes = time.monotonic(), set[str]()
        self.match = dict.fromkeys(NODES, 0)
        self.writes: list[tuple[int, str, str]] = []  # place in the log, client, serial number
        self.reads: list[tuple[str, str, str]] = []  # value, client, serial number

    def last(self) -> tuple[int, int]:
        return (self.log[-1][0] if self.log else 0), len(self.log)

    def tick(self) -> None:
        patience = PATIENCE + int(ME[-1]) / 10
        if self.leader == ME:
            self.replicate()
        elif time.monotonic() - self.heard_at > patience:
            self.join(self.term + 1)
            self.voted, self.votes, self.heard_at = ME, {ME}, time.monotonic()
            state("candidate")
            for name in OTHERS:
                send(name, "vote", self.term, *self.last())

    def replicate(self) -> None:
        for name in OTHERS:
            at = self.match[name]
            before = self.log[at - 1][0] if at else 0
            new = [f"{term}:{value}" for term, value in self.log[at:][:20]]
            send(name, "append", self.term, at, before, self.commit, *new)

    def join(self, term: int) -> None:
        if term > self.term:
            self.term, self.voted, self.leader = term, "", ""
            self.writes, self.reads = [], []

    def handle(self, sender: str, word: str, *rest: str) -> None:
        if word in ("write", "read"):
            self.serve(sender, word, *rest)
            return
        term = int(rest[0])
        self.join(term)
        if word == "vote":
            newest = (int(rest[1]), int(rest[2])) >= self.last()
            if term == self.term and newest and self.voted in ("", sender):
                self.voted, self.heard_at = sender, time.monotonic()
                send(sender, "voted", term)
        elif term < self.term:
            send(sender, "late", self.term)
        elif word == "append":
            self.follow(sender, *(int(one) for one in rest[1:4]), new=rest[4:])
        elif word == "voted" and not self.leader:
            self.votes.add(sender)
            if len(self.votes) > 1:
                self.leader = ME
                self.match = dict.fromkeys(NODES, self.commit)
                state("leader")
                self.replicate()
        elif word == "appended" and self.leader == ME:
            self.match[sender] = int(rest[1])
            self.advance()

    def follow(
        self, sender: str, at: int, before: int, commit: int, *, new: tuple[str, ...]
    ) -> None:
        self.leader, self.heard_at = sender, time.monotonic()
        state("follower")
        if len(self.log) < at or (at and self.log[at - 1][0] != before):
            send(sender, "appended", self.term, self.commit)
            return
        entries = [one.split(":") for one in new]
        self.log = self.log[:at] + [(int(term), value) for term, value in entries]
        self.commit = max(self.commit, min(commit, len(self.log)))
        send(sender, "appended", self.term, len(self.log))

    def advance(self) -> None:
        """Somebody is with this leader: commits what a majority has, and answers reads."""
        place = max(self.match[name] for name in OTHERS)
        if place > self.commit and self.log[place - 1][0] == self.term:
            self.commit = place
        for place, client, serial in [one for one in self.writes if one[0] <= self.commit]:
            send(client, "written", place, serial)
        self.writes = [one for one in self.writes if one[0] > self.commit]
        for value, client, serial in self.reads:
            send(client, value, serial)
        self.reads = []

    def serve(self, sender: str, word: str, *rest: str) -> None:
        if self.leader != ME:
            send(sender, "elsewhere", rest[-1])
        elif word == "write":
            self.log.append((self.term, rest[0]))
            self.writes.append((len(self.log), sender, rest[1]))
            self.replicate()
        else:
            value = self.log[self.commit - 1][1] if self.commit else "0"
            self.reads.append((value, sender, rest[0]))
            self.replicate()


def work() -> None:
    place, acknowledged, value, step = 0, 0, 0, 0
    while True:
        value += step % 4 == 0
        words = ("read",) if step % 4 else ("write", value)
        answer = asked(NODES[place], 0.15, *words)
        if not answer or answer[0] == "elsewhere":
            place = (place + 1) % len(NODES)
            time.sleep(0.02)
            continue
        if words[0] == "write":
            acknowledged = value
        elif int(answer[0]) < acknowledged:
            print(f"stale: {acknowledged} was acknowledged, {answer[0]} is read", flush=True)
        step += 1
        time.sleep(0.03)


if sys.argv[1] == "node":
    node = Node()
    loop(node.handle, node.tick, 0.06)
else:
    work()
