"""Many slow flows at once, and the round trip of a pair that has nothing to do with them: through
one pktd, and through the kernel's own bridge with a tbf at each of its ports, in the same run.

Every end is at one bridge. Its link from the bridge has a rate, and that is where the kernel has
its tbf; pktd delays each link, too, which the kernel (without netem) does not. What costs is how
many packets there are, not how many bits: docs/performance.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.engine.netns import Namespace
from bench.engine.probing import finish, goodput_bps, program, serving, start, stream_words
from bench.engine.wiring import (
    MSS_BYTES,
    MTU_BYTES,
    Ends,
    Pipe,
    address,
    bridged,
    burst_bytes,
    tune,
)
from bench.tables import Cell, Record, Table, percent, rate_text
from tests.datapath.client import Client

DELAY_NS = 2_500_000  # of each link; a round trip crosses four
QUEUE_S = 0.1  # of the rate
SKIP_S = 2.0
PING_INTERVAL_MS = 5
IDLE_FIELDS = (3, 4, 7)  # of /proc/stat: idle, iowait, steal


@dataclass(frozen=True, slots=True)
class Load:
    """`pairs` TCP connections, each over a link of `rate_bps`."""

    pairs: int
    rate_bps: int

    def pipe(self) -> Pipe:
        return Pipe(self.rate_bps, DELAY_NS, round(self.rate_bps * QUEUE_S / 8))

    def theory_bps(self) -> float:
        return self.pairs * self.rate_bps * MSS_BYTES / MTU_BYTES


LOADS = (Load(50, 20_000_000), Load(32, 100_000_000))

RTT: dict[str, Cell] = {
    "planned RTT": "{planned_rtt_ms:g} ms",
    "RTT p50": "{rtt_p50_ms:.2f} ms",
    "p99": "{rtt_p99_ms:.2f} ms",
    "max": "{rtt_max_ms:.2f} ms",
}
TABLES = (
    Table(
        {
            "Flows": lambda row: f"{row['pairs']} × {rate_text(row['rate_bps'])}",
            "through": "{through}",
            "of theory": percent("share_of_theory", 1),
            "CPU, of one core": percent("cpu_cores", 0),
            "of which pktd": percent("engine_cores", 0),
            **RTT,
            "class left": "{class_left}",
            "coalesced": percent("coalesced_share", 0),
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """A row for each load through each of both: goodput, CPU of the whole machine and of all that
    runs here, and the round trips of an idle pair."""
    seconds = 5.0 if quick else 10.0
    rows = []
    for load in LOADS[:1] if quick else LOADS:
        rows += [_kernel(load, seconds), _pktd(load, seconds)]
    return rows


def _kernel(load: Load, seconds: float) -> Record:
    ends = bridged(2 * load.pairs + 2)
    pipe = load.pipe()
    burst = burst_bytes(load.rate_bps)
    shape = f"root tbf rate {load.rate_bps}bit burst {burst} limit {pipe.queue_bytes}"
    for index in range(2 * load.pairs + 2):
        ends.kept[0].run(f"tc qdisc add dev end{index} {shape}".split())
    try:
        return {**_flows(load, ends, seconds), "through": "tbf + bridge", "planned_rtt_ms": 0.0}
    finally:
        ends.close()


def _pktd(load: Load, seconds: float) -> Record:
    with Client.start(program("pktd")) as pktd:
        ends = _star(pktd, 2 * load.pairs + 2, load.pipe())
        before, began = pktd.cpu_seconds(), time.monotonic()
        try:
            row = _flows(load, ends, seconds)
        finally:
            ends.close()
        cores = (pktd.cpu_seconds() - before) / (time.monotonic() - began)
        stats = pktd.engine()
    coalesced = stats.get("coalesced_frames", 0) / max(stats["tx_frames"], 1)
    return {
        **row,
        "through": "pktd",
        "planned_rtt_ms": 4 * DELAY_NS / 1e6,
        "engine_cores": round(cores, 3),
        "late_p99_us": stats["late_p99_ns"] / 1000,
        "frames": stats["tx_frames"],
        "class_left": stats.get("class_left", 0),
        "coalesced_share": round(coalesced, 3),
        "coalesced_max_us": stats.get("coalesced_max_ns", 0) / 1000,
    }


def _star(pktd: Client, count: int, pipe: Pipe) -> Ends:
    """Ends at one bridge, node `count`: link 2k leads there from end k, 2k + 1 back to it."""
    spaces = [Namespace() for _ in range(count)]
    lines = [f"node {count}"]
    for index, space in enumerate(spaces):
        pktd(f"open {index} netns={space.path} if=eth0")
        space.ip_batch([f"addr add {address(index)}/16 dev eth0", "link set eth0 up"])
        tune(space)
        lines += [f"node {index} ip={address(index)}", f"bind {index} {index}"]
    free = Pipe(delay_ns=pipe.delay_ns)
    for index in range(count):
        up, down = 2 * index, 2 * index + 1
        lines += [
            f"link {up} {index} {count} {free.words()} seed={up} up=1",
            f"link {down} {count} {index} {pipe.words()} seed={down} up=1",
            f"routes {index} {up} 0-{count - 1}",
            f"route {count} {down} {index}",
        ]
    pktd.all(lines)
    pktd.commit()
    return Ends(spaces)


def _flows(load: Load, ends: Ends, seconds: float) -> Record:
    """The flows of pair 0, 1, …; the last pair of ends has only the ping."""
    idle = 2 * load.pairs
    pings = round((seconds - SKIP_S) * 1000 / PING_INTERVAL_MS)
    words = ["rtt", address(idle + 1), "--mode", "icmp", "--count", str(pings)]
    with ExitStack() as stack:
        for index in range(load.pairs):
            stack.enter_context(serving(ends.spaces[2 * index + 1]))
        running = [
            start(ends.spaces[2 * index], stream_words(2 * index + 1, seconds, skip=SKIP_S))
            for index in range(load.pairs)
        ]
        time.sleep(SKIP_S)
        with _cpu() as used:
            rtt = finish(start(ends.spaces[idle], [*words, "--interval", f"{PING_INTERVAL_MS}ms"]))
        rates = [goodput_bps(finish(each)) for each in running]
    return {
        "pairs": load.pairs,
        "rate_bps": load.rate_bps,
        "share_of_theory": round(sum(rates) / load.theory_bps(), 4),
        "slowest_share": round(min(rates) * load.pairs / load.theory_bps(), 4),
        **used,
        "rtt_p50_ms": rtt["p50_us"] / 1000,
        "rtt_p99_ms": rtt["p99_us"] / 1000,
        "rtt_max_ms": rtt["max_us"] / 1000,
        "rtt_lost": rtt["lost"],
    }


@contextmanager
def _cpu() -> Iterator[dict[str, float]]:
    """Cores' worth of CPU time meanwhile: of the machine, and of the processes of the benchmark
    alone, which is what can be compared where others use the machine, too."""
    found: dict[str, float] = {}
    idle, own, began = _idle_seconds(), _own_seconds(), time.monotonic()
    yield found
    elapsed = time.monotonic() - began
    found["cpu_cores"] = round((os.cpu_count() or 1) - (_idle_seconds() - idle) / elapsed, 3)
    found["cpu_own_cores"] = round((_own_seconds() - own) / elapsed, 3)


def _idle_seconds() -> float:
    """Of all processors. The kernel measures it; what it was busy with it only counts in ticks, of
    which timers, such as those of tbf, take more than their share."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(ticks[field] for field in IDLE_FIELDS) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Of all processes that this one's /proc shows: those of its own process namespace."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
