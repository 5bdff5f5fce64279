"""The same programs in the kernel's own network: `python -m bench.papers.kernel TASK`.

TASK (JSON): {"ends": N, "links": [[end, rate_bps, netem], …], "programs": [{"end", "argv",
"at_s", "for_s", "serves"}, …]}. Output: a JSON list of what each program wrote to stdout. Ends
stand at one bridge; a link's rate (of IP bytes; 0: none) is a tbf with the queue that TDL gives
it, in both directions, its netem (words of tc(8)) one behind it on the way to the bridge. Or
"between": [htb|tbf, b/s as the qdisc counts] in place of links: two ends with that between them
(bench.engine.wiring.qdisc), or [Mininet, b/s]: two of its hosts with a link of its own.

In argv `{N}` is the address of end N. A program with `for_s` is ended (SIGTERM) after so long; one
that `serves` when the others have ended. Everything is in namespaces that end with this process.
Status 1 with one line where it cannot.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from bench.engine.netns import Namespace, isolate
from bench.engine.wiring import (
    FRAME_BYTES,
    GSO_BYTES,
    Ends,
    address,
    bridged,
    qdisc,
    smooth_burst_bytes,
)
from bench.errors import BenchError
from bench.papers.mininet_ends import MininetEnds
from bench.papers.theory import ethernet_bps
from bench.tables import Record

MININET = "Mininet"
_QUEUE_MS = 50
_LEAST_QUEUE = 30_000


def shape(rate_bps: int, netem: str) -> list[str]:
    """Arguments of `tc qdisc add dev DEV` for one direction of a link."""
    lines: list[str] = []
    if rate_bps:
        rate = ethernet_bps(rate_bps)
        burst = smooth_burst_bytes(rate)
        limit = max(rate_bps // 8 * _QUEUE_MS // 1000, _LEAST_QUEUE)
        lines.append(f"root handle 1: tbf rate {rate}bit burst {burst} limit {limit}")
    if netem:
        place = "parent 1:1" if rate_bps else "root"
        lines.append(f"{place} netem limit 100000 {netem}")
    return lines


def small_gso_arguments(rate_bps: int) -> list[str]:
    """Arguments of `ip link set DEV`, so that an end makes no GSO packet that is larger than the
    smooth burst of its tbf (bench.engine.wiring.burst_bytes tells what cutting up costs). Fig. 6
    asks for 64 KiB at a time: with a burst of one GSO packet the whole answer left at once, as if
    there were no link."""
    burst = smooth_burst_bytes(ethernet_bps(rate_bps))
    segments = burst // FRAME_BYTES
    return [] if burst >= GSO_BYTES else ["gso_max_segs", str(segments)]


def carry_out(task: Record) -> list[str]:
    """What each of the programs wrote to stdout, in their order."""
    if "between" in task:
        kind, rate_bps = task["between"]
        ends = MininetEnds(rate_bps) if kind == MININET else qdisc(kind, rate_bps)
        try:
            return _programs(ends, task["programs"])
        finally:
            ends.close()
    ends = bridged(task["ends"])
    try:
        for end, rate_bps, netem in task["links"]:
            if rate_bps and (found := small_gso_arguments(rate_bps)):
                ends.spaces[end].run(["ip", "link", "set", "eth0", *found])
            for words in shape(rate_bps, netem):
                ends.spaces[end].run(["tc", "qdisc", "add", "dev", "eth0", *words.split()])
            for words in shape(rate_bps, ""):
                ends.kept[0].run(["tc", "qdisc", "add", "dev", f"end{end}", *words.split()])
        return _programs(ends, task["programs"])
    finally:
        ends.close()


def _programs(ends: Ends, programs: Sequence[Record]) -> list[str]:
    """Their working directory, which is TMPDIR, too, is gone afterwards."""
    addresses = [address(number) for number in range(len(ends.spaces))]
    with tempfile.TemporaryDirectory(prefix="ts-kernel-") as folder:
        files = [(Path(folder) / str(number)).open("w+") for number in range(len(programs))]
        try:
            _play(ends.spaces, programs, addresses, files, folder)
            for file in files:
                file.seek(0)
            return [file.read() for file in files]
        finally:
            for file in files:
                file.close()


def _play(
    spaces: Sequence[Namespace],
    programs: Sequence[Record],
    addresses: Sequence[str],
    files: Sequence[IO[str]],
    folder: str,
) -> None:
    """Starts and ends programs at their times; returns when those without an end have ended."""
    began = time.monotonic()
    steps = [(one["at_s"], 0, number) for number, one in enumerate(programs)]
    steps += [
        (one["at_s"] + one["for_s"], 1, n) for n, one in enumerate(programs) if "for_s" in one
    ]
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for at_s, ends_it, number in sorted(steps):
            _wait_free(running, programs, until=began + at_s)
            if ends_it:
                running[number].send_signal(signal.SIGTERM)
                continue
            one = programs[number]
            argv = [word.format(*addresses) for word in one["argv"]]
            running[number] = subprocess.Popen(
                spaces[one["end"]].argv(argv),
                stdout=files[number],
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={**os.environ, "TMPDIR": folder},
            )
        for number, process in running.items():
            if not programs[number].get("serves"):
                process.wait(timeout=600)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _wait_free(
    running: dict[int, subprocess.Popen[bytes]], programs: Sequence[Record], until: float
) -> None:
    """Until that moment; a program that ends too early with an error ends the task."""
    while (left := until - time.monotonic()) > 0:
        for number, process in running.items():
            if process.poll() not in (None, 0):
                raise BenchError(f"{programs[number]['argv'][0]} ended with {process.returncode}")
        time.sleep(min(left, 0.05))


def main() -> int:
    isolate("bench.papers.kernel")
    try:
        print(json.dumps(carry_out(json.loads(sys.argv[1]))))
    except (BenchError, OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
