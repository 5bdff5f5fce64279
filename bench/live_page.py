"""What the server of a running experiment's page takes, and how late events are at who listens.

    python -m bench.live_page RUN LINK [--listeners 10] [--seconds 30]

RUN is the run's folder, LINK what `tstorm ui RUN` has printed. Delays are from when a change by
`tstorm do` was applied (events.jsonl) to when a listener has the whole message, by the clock of
this machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def server_of(port: int) -> int:
    """The process that listens there."""
    wanted = f":{port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(row[9] for row in rows if row[1].endswith(wanted) and row[3] == "0A")
    for path in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if path.readlink().name == f"socket:[{inode}]":
                return int(path.parts[2])
        except OSError:
            continue
    raise SystemExit(f"no process of yours listens on {port}")


class Hearing(threading.Thread):
    """One listener. `late` has the ms of each event, `size` the bytes of all messages."""

    def __init__(self, host: str, token: str, start_ns: int) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection(host)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._start_ns = start_ns
        self._began_ns = time.monotonic_ns() - start_ns
        self.late: list[float] = []
        self.size = 0

    def run(self) -> None:
        self._connection.request("GET", "/api/v1/stream", headers=self._headers)
        answer = self._connection.getresponse()
        name = b""
        while line := answer.readline():
            self.size += len(line)
            if line.startswith(b"event: "):
                name = line[7:].strip()
            elif line.startswith(b"data: ") and name == b"update" and b'"events"' in line:
                self._note(json.loads(line[6:]), time.monotonic_ns())

    def _note(self, update: dict[str, Any], now_ns: int) -> None:
        told = update["events"]
        for row in told["rows"]:
            is_new = row[4] is not None and row[4] > self._began_ns
            if is_new and told["kinds"][row[1]] == "set":  # what the run notices of itself is late
                self.late.append((now_ns - self._start_ns - row[4]) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("link")
    parser.add_argument("--listeners", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30)
    asked = parser.parse_args()
    place = urlsplit(asked.link)
    with (asked.run / "events.jsonl").open() as file:
        start_ns = json.loads(file.readline())["start_monotonic_ns"]
    heard = [Hearing(place.netloc, place.fragment, start_ns) for _ in range(asked.listeners)]
    for one in heard:
        one.start()
    time.sleep(5)
    pid = server_of(place.port or 80)
    size = [one.size for one in heard]
    began, used = time.monotonic(), processor_seconds(pid)
    time.sleep(asked.seconds)
    share = (processor_seconds(pid) - used) / (time.monotonic() - began)
    rate = sum(one.size - before for one, before in zip(heard, size, strict=True))
    print(f"{asked.listeners} listeners, {asked.seconds:g} s: {100 * share:.1f} % of a core,")
    print(f"{rate / asked.listeners / asked.seconds / 1000:.1f} kB/s to each")
    late = sorted(value for one in heard for value in one.late)
    if late:
        worst = late[min(len(late) * 99 // 100, len(late) - 1)]
        middle = statistics.median(late)
        print(f"{len(late)} events: {middle:.0f} ms at p50, {worst:.0f} ms at p99")


if __name__ == "__main__":
    main()
