"""A stand-in for pktd: speaks docs/pktd.md, makes a device, carries no packet.

Commits take effect at their time; what was staged for them goes to $FAKE_PKTD_TRACE, if set, as
one JSON array of lines a commit. `FAKE_PKTD_REFUSE=WORD` refuses that command.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time

STAGED = {"node", "bind", "unbind", "link", "set", "route", "routes"}


class Fake:
    def __init__(self) -> None:
        self.staged: list[str] = []
        self.waiting: list[tuple[int, int, list[str]]] = []
        self.commits = 0
        self.refused = os.environ.get("FAKE_PKTD_REFUSE", "")
        self.trace = os.environ.get("FAKE_PKTD_TRACE", "")

    def answer(self, line: str) -> str:
        word = line.split(" ")[0]
        if word == self.refused:
            return f"err EINVAL cannot {word}: refused on request"
        if word in STAGED:
            self.staged.append(line)
            return "ok"
        return getattr(self, f"do_{word}", self.unknown)(line)

    def unknown(self, line: str) -> str:
        return f"err EPROTO no such command: {line[:40]}"

    def do_hello(self, _line: str) -> str:
        return "ok pktd 1 version=fake sched=other stamp=read lock=0 spin_ns=0"

    def do_open(self, line: str) -> str:
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        command = ["nsenter", f"--net={words['netns']}", "ip", "link", "add", words["if"]]
        command += ["type", "veth", "peer", "name", "far0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"err EIO cannot make {words['if']}: {done.stderr.strip()}"
        return "ok kind=packet mac=02:00:00:00:00:01 stamp=read"

    def do_close(self, _line: str) -> str:
        return "ok"

    def do_commit(self, line: str) -> str:
        self.waiting.append((int(line.split()[1]), self.commits, self.staged))
        self.staged = []
        self.commits += 1
        return f"ok {self.commits - 1}"

    def do_stats(self, line: str) -> str:
        return "ok 0" if line != "stats engine" else f"ok rx=0 tx=0 commits={self.commits}"

    def do_quit(self, _line: str) -> str:
        sys.exit(0)

    def due(self) -> list[str]:
        """Lines for the commits whose time has come."""
        now = time.monotonic_ns()
        ready = [entry for entry in self.waiting if entry[0] <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for _, _, lines in ready:
            if self.trace:
                with open(self.trace, "a", encoding="ascii") as file:  # noqa: PTH123
                    file.write(json.dumps(lines) + "\n")
        return [f"! applied {number} {at} {max(at, now)}" for at, number, _ in ready]

    def timeout(self) -> float | None:
        if not self.waiting:
            return None
        return max(min(entry[0] for entry in self.waiting) - time.monotonic_ns(), 0) / 1e9


def main() -> None:
    fake, rest = Fake(), b""
    while True:
        readable, _, _ = select.select([0], [], [], fake.timeout())
        out = fake.due()
        if readable:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            out = [fake.answer(line.decode()) for line in lines] + fake.due() + out
        for line in out:
            os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main()
