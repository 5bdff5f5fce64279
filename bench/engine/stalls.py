"""How long programs did not run because of the run itself: a program that does nothing but look at
the clock, on one processor, notes when it was away. In a run on one machine without traffic, beside
a flow without a limit, and over four hosts with events. Then the same runs with a program instead
that receives datagrams, and tells how long after the kernel had each (bench.hosts.received).

What is away is anything: of a machine that others use, too, these are not our figures. So our own
stand beside them: the longest piece in the real-time class of driver and agents, by CPU time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.errors import BenchError
from bench.hosts.carry_out import carry_out
from bench.tables import Record, Table

SECONDS = 10
NOTED_NS = 200_000  # and more
LONG_NS = 500_000
PORT = 7600
LEAST = 100  # datagrams of some 4,000
_SPIN = """import gc, os, sys, time
gc.disable()
os.sched_setaffinity(0, {int(sys.argv[1])})
now = time.monotonic_ns
end = now() + int(sys.argv[2]) * 10**9
before = now()
while before < end:
    after = now()
    if after - before > int(sys.argv[3]):
        print(after - before)
        after = now()
    before = after
"""
_EVENTS = "".join(f"at {second}s b1--b2 set latency={5 + second}\n" for second in range(1, SECONDS))
# Hosts; what runs beside the spinning program; events.
SCENES: Mapping[str, tuple[int, str, str]] = {
    "nothing": (0, "service s replicas=2\n", ""),
    "an unlimited flow": (
        0,
        f'service s exec="iperf3 -s"\nservice c exec="{{retry}} iperf3 -c s.0 -t {SECONDS}"\n'
        "link c--b1 latency=1\n",
        "",
    ),
    "events over 4 hosts": (4, "service s replicas=12\n", _EVENTS),
}

TABLES = (
    Table(
        {
            "Beside": "{beside}",
            "away for more than 0.5 ms, a second": "{long_a_second:.1f}",
            "away: p99 / longest": "{p99_ms:.2f} / {longest_ms:.2f} ms",
            "of its time": lambda row: f"{row['away'] * 100:.2f} %",
            "our longest piece: driver / agents": "{driver_ms:.2f} / {agents_ms:.2f} ms",
            "engine: longest round": "{slice_ms:.2f} ms",
            "received after the kernel had it: median / p99 / longest": (
                "{received_ms:.2f} / {received_p99_ms:.2f} / {received_max_ms:.2f} ms"
            ),
        }
    ),
)


def measure(folder: Path) -> list[Record]:
    """One row a scene. The spinning program has the last processor; it would be in the way of the
    one that receives, which has a run of its own."""
    spin = folder / "spin.py"
    spin.write_text(_SPIN, encoding="utf-8")
    words = f"{max(os.sched_getaffinity(0))} {SECONDS} {NOTED_NS}"
    spinning = f'service spin exec="python3 {spin} {words}"\nlink spin--b1 latency=1\n'
    program = ROOT / "bench/hosts/received.py"
    receiving = (
        f'service gets exec="python3 {program} {PORT} {SECONDS}"\nlink gets--b1 latency=1\n'
        f'service gives exec="python3 {program} to gets.0 {PORT} {SECONDS}"\n'
        "link gives--b2 latency=1\n"
    )
    rows = []
    for number, (beside, (hosts, services, events)) in enumerate(SCENES.items()):
        runs = []
        for name, ours in (("spin", spinning), ("receive", receiving)):
            source = folder / f"stalls{number}-{name}.tdl"
            source.write_text(_text(ours, services, events), encoding="utf-8")
            runs.append(carry_out(source, source.with_suffix(""), hosts))
        rows.append({"beside": beside, **_row(runs[0]), **received(runs[1])})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _text(ours: str, services: str, events: str) -> str:
    # Ports of a server are open some time after its program has begun.
    retry = "sh -c 'sleep 0.5; exec \\\"$@\\\"' sh"
    return (
        f"bridge b1\nbridge b2\n{services.replace('{retry}', retry)}{ours}"
        f"link b1--b2 latency=5\nlink s--b2 latency=1\n{events}at {SECONDS + 2}s quit\n"
    )


def received(run: Path) -> Record:
    """Of a run with the receiving program. BenchError if it has received next to nothing."""
    waited_ns = sorted(map(int, (run / "logs" / "gets.0.log").read_text().split()))
    if len(waited_ns) < LEAST:
        raise BenchError(f"{run.name}: {len(waited_ns)} datagrams were received")
    return {
        "received": len(waited_ns),
        "received_ms": waited_ns[len(waited_ns) // 2] / 1e6,
        "received_p99_ms": waited_ns[len(waited_ns) * 99 // 100] / 1e6,
        "received_max_ms": waited_ns[-1] / 1e6,
    }


def _row(run: Path) -> Record:
    gaps_ns = sorted(map(int, (run / "logs" / "spin.0.log").read_text().split()))
    summary = json.loads((run / "summary.json").read_text())
    hosts: Sequence[Mapping[str, Any]] = summary.get("hosts", ())
    pieces_ns = [host["process"]["longest_piece_ns"] for host in hosts]
    return {
        "away": sum(gaps_ns) / (SECONDS * 1e9),
        "noted": len(gaps_ns),
        "long_a_second": sum(gap > LONG_NS for gap in gaps_ns) / SECONDS,
        "p99_ms": gaps_ns[len(gaps_ns) * 99 // 100] / 1e6 if gaps_ns else 0.0,
        "longest_ms": gaps_ns[-1] / 1e6 if gaps_ns else 0.0,
        "driver_ms": summary["driver"]["longest_piece_ns"] / 1e6,
        "agents_ms": max(pieces_ns, default=0) / 1e6,
        "slice_ms": int(summary["engine"]["longest_slice_ns"]) / 1e6,
    }
