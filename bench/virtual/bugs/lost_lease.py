"""Who has waited for a lock gets it, also if its lease ran out while it waited.

Re-creation of the error of etcd 3.4, github.com/etcd-io/etcd/issues/11456: the server waits until
those before a client have let the lock go, and does not look whether the client's own key is still
there. The next one sees no key, and gets the lock as well.

lost_lease.py server: keeps the lock, and what is done under it. lost_lease.py client: one of two.
"""

import sys
import time

from datagrams import asked, heard, loop, send, state

LEASE, KEPT, PATIENCE = 0.4, 0.1, 0.25  # s
STEPS = 10  # questions that a holder asks under its lock


class Server:
    def __init__(self) -> None:
        self.queue: list[str] = []  # whose keys are there, in the order in which they came
        self.waiting: dict[str, tuple[str, str]] = {}  # for whose key each waits, serial number
        self.until: dict[str, float] = {}
        self.keyless: set[str] = set()  # who was told that the lock is its own, without a key

    def tick(self) -> None:
        for name in [one for one in self.queue if time.monotonic() > self.until[one]]:
            self.gone(name)
            state(f"{name}-expired")

    def gone(self, name: str) -> None:
        """Its key is. Who waited for that is told that the lock is its own."""
        if name in self.queue:
            self.queue.remove(name)
        for client, (before, serial) in list(self.waiting.items()):
            if before == name:
                del self.waiting[client]
                self.keyless |= set() if client in self.queue else {client}
                send(client, "yours", serial)

    def handle(self, sender: str, word: str, serial: str) -> None:
        if word == "lock":
            self.until[sender] = time.monotonic() + LEASE
            self.keyless.discard(sender)
            self.queue += [] if sender in self.queue else [sender]
            place = self.queue.index(sender)
            if place:
                self.waiting[sender] = (self.queue[place - 1], serial)
                state(f"{sender}-waits")
            else:
                send(sender, "yours", serial)
        elif word == "alive" and sender in self.queue:
            self.until[sender] = time.monotonic() + LEASE
        elif word == "unlock":
            self.gone(sender)
            send(sender, "done", serial)
        elif word == "work":
            if sender in self.queue:
                self.until[sender] = time.monotonic() + LEASE
            elif self.queue and sender in self.keyless:
                print(f"two holders: {sender} works, {self.queue[0]} has the lock", flush=True)
            send(sender, "done", serial)


def held(attempt: int) -> bool:
    """Waits for the lock, and keeps its lease alive meanwhile."""
    until = time.monotonic() + 4
    send("server.0", "lock", attempt)
    while time.monotonic() < until:
        words = heard(KEPT)
        if words[1:] == ["yours", str(attempt)]:
            return True
        if not words:
            send("server.0", "alive", 0)
    return False


def work() -> None:
    for attempt in range(sys.maxsize):
        if held(-attempt):
            state("holder")
            for _ in range(STEPS):
                while not asked("server.0", PATIENCE, "work"):
                    pass
                time.sleep(0.05)
            while not asked("server.0", PATIENCE, "unlock"):
                pass
            state("idle")
        time.sleep(0.02)


if sys.argv[1] == "server":
    server = Server()
    loop(server.handle, server.tick, 0.05)
else:
    work()
