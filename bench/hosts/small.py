"""64-byte IP packets from one sender at a constant rate: on one machine without hosts, and from one
host of two to the other. Who loses them, if anybody does, stands beside what was lost.

The sender is `tprobe blast`, in C, a batch of datagrams a system call; what it could not send is
told apart from what was lost: then the rate is its limit, or that of the processors, and not ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BenchError
from bench.hosts.carry_out import carry_out
from bench.tables import Record, Table, percent

SECONDS = 4
OFFERED_PPS = (50_000, 100_000, 150_000, 200_000)
HOSTS = (0, 2)
TARGET_PPS = 150_000  # without loss, over two hosts
SENT = 0.98  # of what was to be sent; with less the sender is the limit

TABLES = (
    Table(
        {
            "64 B UDP, offered": lambda row: f"{row['offered_pps'] / 1000:g} kpps",
            "hosts": lambda row: str(row["hosts"] or "none"),
            "sent": "{sent_kpps:.1f} kpps",
            "received": "{kpps:.1f} kpps",
            "lost": percent("lost_share", 3),
            "of these by the engine / the receiver's stack": "{engine} / {stack}",
        }
    ),
)


def text(pps: int) -> str:
    return f"""service server img=x exec="tprobe serve"
service client img=x exec="tprobe blast server.0 --seconds {SECONDS} --pps {pps}"
bridge b1
link client--b1 latency=1ms
link server--b1 latency=1ms
at 0s server join
at 1s client join
at {SECONDS + 3}s quit
"""


def measure(folder: Path) -> list[Record]:
    rows = []
    for hosts in HOSTS:
        for pps in OFFERED_PPS:
            source = folder / f"small{pps}.tdl"
            source.write_text(text(pps), encoding="utf-8")
            run = carry_out(source, folder / f"small{pps}-{hosts}", hosts)
            rows.append({"hosts": hosts, "offered_pps": pps, **read(run)})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def read(run: Path) -> Record:
    """What the sender says at its end, and the run's counters of what was dropped."""
    lines = (run / "logs/client.0.log").read_text().splitlines()
    said = [json.loads(line) for line in lines if line.startswith('{"summary"')]
    if not said or said[-1]["received"] is None:
        raise BenchError(f"{run.name}: the receiver gave no answer")
    [sender] = said
    summary = json.loads((run / "summary.json").read_text())
    engine = summary["engine"]
    return {
        "sent_kpps": round(sender["sent"] / SECONDS / 1000, 1),
        "kpps": round(sender["pps"] / 1000, 1),
        "lost_share": round(sender["lost"] / sender["sent"], 6),
        "engine": sum(int(count) for name, count in engine.items() if name.startswith("drop_")),
        "stack": summary.get("stacks", {}).get("server.0", {}).get("UdpRcvbufErrors", 0),
    }


def missed(rows: Sequence[Record]) -> list[str]:
    """The target's row, if it lost anything, or if too little was sent to know."""
    found = []
    for row in rows:
        if not row["hosts"] or row["offered_pps"] != TARGET_PPS:
            continue
        name = f"{TARGET_PPS // 1000} kpps of 64 B over {row['hosts']} hosts"
        if row["sent_kpps"] * 1000 < SENT * TARGET_PPS:
            found.append(f"{name}: only {row['sent_kpps']} kpps could be sent")
        if row["lost_share"] > 0:
            found.append(f"{name}: {row['lost_share'] * 100:.3f} % lost")
    return found
