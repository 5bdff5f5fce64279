"""What a program sees at a link that is too small: over hosts, against the real queue of hop-exact.

Input: one trunk of 20 Mb/s, round trip 40 ms, a queue of 50 kB, and one or four flows of TCP, or
datagrams at 150 % of it. Output: rate, round trip, window and loss as tprobe reports them from the
kernel (TCP_INFO of tcp(7)), means over the second half. A hop-exact run has one queue that all
flows share; over hosts every flow has a queue of its own with its share of both rate and length.
Beside them a program asks ten times a second and waits for the answer: the mean of its round trips
in the second half is to be that of the hop-exact run, within BOUND.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BenchError
from bench.hosts.carry_out import carry_out
from bench.tables import Record, Table
from tests.runs.delivered import Delivered
from tests.runs.runlog import RunLog

SECONDS = 24
WINDOW_S = (SECONDS / 2, SECONDS - 1.0)
TRUNK_MBPS = 20
ASKS = (SECONDS // 2 - 2) * 10
BOUND = 0.1
SCENES = {
    "1 × cubic": ("--cc cubic", 1),
    "1 × reno": ("--cc reno", 1),
    "4 × cubic": ("--cc cubic", 4),
    "datagrams, 150 %": (f"--udp {TRUNK_MBPS * 3 // 2}Mb", 1),
}


def text(how: str, flows: int) -> str:
    lines = ["seed 5", "bridges b1 b2"]
    lines.append(f"link b1--b2 latency=16ms up={TRUNK_MBPS}Mb symmetric queue=50kB")
    for number in range(flows):
        lines += [
            f'service s{number} img=x exec="tprobe serve"',
            f'service c{number} img=x exec="tprobe stream s{number}.0 {how} --seconds {SECONDS}"',
            f"link c{number}--b1 latency=2ms",
            f"link s{number}--b2 latency=2ms",
        ]
    lines += [
        'service answers img=x exec="tprobe serve"',
        f'service asks img=x exec="tprobe rtt answers.0 --mode udp --count {ASKS}"',
        "link asks--b1 latency=2ms",
        "link answers--b2 latency=2ms",
        "at 0s answers join",
        f"at {SECONDS // 2}s asks join",
    ]
    lines += [f"at 0s s{number} join" for number in range(flows)]
    lines += [f"at 500ms c{number} join" for number in range(flows)]
    return "\n".join([*lines, f"at {SECONDS}s quit", ""])


TABLES = (
    Table(
        {
            "20 Mb/s, 40 ms, 50 kB": "{what}",
            "hosts": lambda row: row["hosts"] or "hop-exact",
            "Mb/s": "{mbps}",
            "lost": "{lost_percent} %",
            "round trip": "{rtt_ms} ms",
            "window": "{cwnd} packets",
            "beside them": "{asked_ms} ms",
        }
    ),
)


def measure(folder: Path) -> list[Record]:
    rows: list[Record] = []
    for number, (name, (how, flows)) in enumerate(SCENES.items()):
        source = folder / f"congestion-{number}.tdl"
        source.write_text(text(how, flows))
        for hosts in (0, 2):
            run = carry_out(source, folder / f"congestion-{number}-{hosts}", hosts)
            rows.append({"what": name, "hosts": hosts, **_row(run, flows, "--udp" in how)})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _row(run: Path, flows: int, datagrams: bool) -> Record:
    delivered, offered = Delivered(run), Delivered(run, "offered_bytes")
    pairs = [(f"c{number}.0", f"s{number}.0") for number in range(flows)]
    got, sent = (
        sum(counted.mean_bps(pair, *WINDOW_S) for pair in pairs) for counted in (delivered, offered)
    )
    row: Record = {
        "mbps": round(got / 1e6, 2),
        "lost_percent": round(max(1 - got / sent, 0.0) * 100, 3),
    }
    row["asked_ms"] = _asked(run)
    return row if datagrams else {**row, **_seen_by_tcp(run, flows)}


def _asked(run: Path) -> float:
    """The mean round trip of who wants little."""
    for line in (run / "logs/asks.0.log").read_text().splitlines():
        if line.startswith('{"summary"'):
            return round(json.loads(line)["mean_us"] / 1e3, 1)
    raise BenchError(f"{run.name}: nobody answered who was asked")


def missed(rows: Sequence[Record]) -> list[str]:
    """Round trips beside full links that are not those of a hop-exact run."""
    exact = {row["what"]: row["asked_ms"] for row in rows if not row["hosts"]}
    return [
        f"{row['what']} over {row['hosts']} hosts: {row['asked_ms']} ms beside it, hop-exact"
        f" {exact[row['what']]} ms"
        for row in rows
        if row["hosts"] and abs(row["asked_ms"] / exact[row["what"]] - 1) > BOUND
    ]


def _seen_by_tcp(run: Path, flows: int) -> Record:
    log, low_high = RunLog(run), WINDOW_S
    lines = [
        line
        for number in range(flows)
        for line in log.reports(f"c{number}.0")
        if "cwnd" in line and low_high[0] <= line["t_s"] <= low_high[1]
    ]
    if not lines:
        raise BenchError(f"{run.name}: no flow reported its window")
    return {
        "rtt_ms": round(statistics.mean(line["rtt_us"] for line in lines) / 1e3, 1),
        "cwnd": round(statistics.mean(line["cwnd"] for line in lines), 1),
    }
