"""Queues that drop early beside the kernel's own, in virtual time: TCP flows through a link with
`aqm=`, and through the qdisc of that name in the kernel for virtual time, where an htb has the
link's rate and netem the delay. What is measured is the same program's (aqm_ends.py).

`python -m bench.virtual.aqm [--seeds N] [NAME …]` (codel-10-1-cubic: discipline, Mb/s, flows,
control) writes bench/results/virtual-aqm.json; what it has measured replaces what the file has of
it. Figures are means of runs with the first N of SEEDS (of one, and of less time, from LONG_MBPS
on, where a run takes minutes). It ends with 1 if a figure is further from the kernel's than WITHIN
of it, and than half the time of a packet: waits come in steps of that time. `python -m
bench.report` brings the table of docs/fidelity.md up to it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_grouped

from bench import RESULTS, ROOT, machine
from bench.tables import Record, Table

FILE = RESULTS / "virtual-aqm.json"
ENDS = Path(__file__).with_name("aqm_ends.py")
WITHIN = 0.1
PACKET_BYTES, SEGMENT_BYTES = 1500, 1448
ONE_WAY_MS = 10  # the kernel's scene has both ways in one
SEEDS = (1, 2, 3)  # where the flows meet is chance: one run tells little
LONG_MBPS = 100


@dataclass(frozen=True, slots=True)
class Span:
    """The runs of a row: seeds, and of each what is left out at the start, and what counts then."""

    seeds: tuple[int, ...]
    settle_s: int
    seconds: int

    @property
    def sending_s(self) -> int:
        return self.settle_s + self.seconds + 3


def span(mbps: int, seeds: int = len(SEEDS)) -> Span:
    return Span(SEEDS[:seeds], 10, 20) if mbps < LONG_MBPS else Span(SEEDS[:1], 5, 10)


KINDS = ("codel", "fq_codel", "pie")
NAMES = [
    f"{kind}-{mbps}-{n}-{control}"
    for control in ("cubic", "bbr")
    for mbps in (10, 100)
    for kind in KINDS
    for n in (1, 4, 16)
]
# Parameters that both are given: the kernel counts this one in ticks of 10 ms, of which its default
# of 15 ms is two.
GIVEN = {"pie": {"tupdate": "20ms"}}

OURS = """\
network ipv4
service sender exec="./aqm_ends.py send receiver.0 {flows} {seconds} {control}"
service receiver exec="./aqm_ends.py receive {seconds}"
bridge s
link sender--s latency={delay}ms
link s--receiver rate={rate} aqm={kind}
at 0s receiver join
at 1s sender join
at {end}s quit
"""
KERNEL = """\
service ends files=aqm_ends.py \\
    exec="unshare -n python3 aqm_ends.py kernel {flows} {seconds} {control} {bps} {rtt} {kind}"
service other
bridge s
link ends--s
link other--s
at 0s ends join
at {end}s quit
"""
_OLDER = "3 of 20 s, beside a tbf"  # docs/fidelity.md says what that does
TABLES = (
    Table(
        {
            "Queue": "{kind}",
            "Rate": "{mbps} Mb/s",
            "Flows": "{flows} {control}",
            "Runs": lambda row: (
                _OLDER if "runs" not in row else "{runs} of {seconds} s".format(**row)
            ),
            "Used: ours, kernel": "{used_ours:.1%}, {used_kernel:.1%}",
            "Median wait, ms": "{median_ours:.2f}, {median_kernel:.2f}",
            "p99, ms": "{p99_ours:.2f}, {p99_kernel:.2f}",
            "Dropped": "{dropped_ours:.0f}, {dropped_kernel:.0f}",
            "Within 10 %": "{outcome}",
        }
    ),
)


def carry_out(place: Path, text: str, seed: int) -> Path:
    """A run of it, in virtual time."""
    shutil.copy(ENDS, place)
    (place / ENDS.name).chmod(0o755)
    (place / "scene.tdl").write_text(text)
    command = [sys.executable, "-m", "tstorm", "run", "scene.tdl", "--quiet", "--time", "virtual"]
    command += ["--seed", str(seed)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--out", "run"], cwd=place, env=env, check=True, stdout=2)
    return place / "run"


def _packets(file: Path) -> Iterator[list[int]]:
    for line in file.read_text().splitlines():
        yield [int(word) for word in line.split()]


def judge(sent: Path, received: Path, of: Span, bps: int, least_ns: int) -> Record:
    """Of the time that counts: the share of the rate that was used, and how long packets waited,
    beside `least_ns`. Segments that come together have left the queue one by one.

    The median is that of grouped data: within a round trip flows send when packets have come, so
    waits are a number of packets long, and half of them is between two such numbers."""
    sends: dict[tuple[int, int], list[int]] = {}  # times, by flow and first byte of a segment
    for at_ns, port, first, count in _packets(sent):
        for byte in range(first, first + count, SEGMENT_BYTES):
            sends.setdefault((port, byte), []).append(at_ns)
    service_ns = PACKET_BYTES * 8 * 10**9 // bps
    waits, total, begin_ns = [], 0, 0
    for at_ns, port, first, count in _packets(received):
        begin_ns = begin_ns or at_ns + of.settle_s * 10**9
        if not begin_ns <= at_ns < begin_ns + of.seconds * 10**9:
            continue
        for behind, byte in enumerate(reversed(range(first, first + count, SEGMENT_BYTES))):
            times, left_ns = sends.get((port, byte), ()), at_ns - behind * service_ns
            total += min(SEGMENT_BYTES, first + count - byte) + PACKET_BYTES - SEGMENT_BYTES
            if before := bisect_right(times, left_ns):
                waits.append((left_ns - times[before - 1] - least_ns) / 1e6)
    waits.sort()
    step = service_ns / 1e6
    return {
        "used": total * 8 / of.seconds / bps,
        "median": median_grouped([step * round(wait / step) for wait in waits], step),
        "p99": waits[len(waits) * 99 // 100],
    }


def _ours(kind: str, mbps: int, flows: int, control: str, seed: int) -> Record:
    with tempfile.TemporaryDirectory(prefix="ts-aqm-") as folder:
        seconds = span(mbps).sending_s
        run = carry_out(
            Path(folder),
            OURS.format(
                flows=flows,
                seconds=seconds,
                control=control,
                delay=ONE_WAY_MS,
                rate=f"{mbps}Mb",
                kind=";".join([kind, *map(":".join, GIVEN.get(kind, {}).items())]),
                end=seconds + 3,
            ),
            seed,
        )
        found = judge(
            run / "instances/sender.0/sent", run / "instances/receiver.0/received", span(mbps),
            mbps * 10**6, ONE_WAY_MS * 10**6 + _service_ns(mbps),
        )  # fmt: skip
        links = json.loads((run / "summary.json").read_text())["links"]
        return {**found, "dropped": sum(row["drop_queue"] for row in links)}


def _kernel(kind: str, mbps: int, flows: int, control: str, seed: int) -> Record:
    with tempfile.TemporaryDirectory(prefix="ts-aqm-") as folder:
        seconds = span(mbps).sending_s
        run = carry_out(
            Path(folder),
            KERNEL.format(
                flows=flows,
                seconds=seconds,
                control=control,
                bps=mbps * 10**6,
                # A packet passes as soon as the link is free for it; here it is sent first.
                rtt=2 * ONE_WAY_MS + _service_ns(mbps) / 1e6,
                kind=" ".join([kind, *map(" ".join, GIVEN.get(kind, {}).items())]),
                end=seconds + 6,
            ),
            seed,
        )
        own = run / "instances/ends.0"
        found = judge(own / "sent", own / "received", span(mbps), mbps * 10**6, 0)
        said = (run / "logs/ends.0.log").read_text()
        dropped = re.search(rf"qdisc {kind} .*?dropped (\d+)", said)
        return {**found, "dropped": int(dropped[1]) if dropped else 0}


def _service_ns(mbps: int) -> int:
    return PACKET_BYTES * 8 * 1000 // mbps


def _mean(runs: Sequence[Record]) -> Record:
    return {key: sum(run[key] for run in runs) / len(runs) for key in runs[0]}


def measure(name: str, seeds: int) -> Record:
    kind, mbps, flows, control = name.split("-")
    of = span(int(mbps), seeds)
    ours, kernel = (
        _mean([one(kind, int(mbps), int(flows), control, seed) for seed in of.seeds])
        for one in (_ours, _kernel)
    )
    row: Record = {"name": name, "kind": kind, "mbps": int(mbps), "flows": int(flows)}
    row |= {"control": control, "runs": len(of.seeds), "seconds": of.seconds}
    for key in ours:
        row |= {f"{key}_ours": ours[key], f"{key}_kernel": kernel[key]}
    steps = {
        "used": 0.0,
        "median": _service_ns(int(mbps)) / 2e6,
        "p99": _service_ns(int(mbps)) / 2e6,
    }
    far = [
        key
        for key, step in steps.items()
        if abs(ours[key] - kernel[key]) > max(WITHIN * abs(kernel[key]), step)
    ]
    return {**row, "outcome": f"not: {', '.join(far)}" if far else "yes"}


def _kept(measured: Sequence[str]) -> list[Record]:
    """What the file has of others."""
    rows = json.loads(FILE.read_text())["results"]["aqm"] if FILE.exists() else []
    return [row for row in rows if row["name"] not in measured]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.virtual.aqm", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, choices=range(1, len(SEEDS) + 1), default=len(SEEDS))
    options, rows = parser.parse_args(), list[Record]()
    for name in options.names or NAMES:
        rows.append(measure(name, options.seeds))
        print(rows[-1], flush=True)
        kept = _kept([row["name"] for row in rows])
        results = {"aqm": sorted(kept + rows, key=lambda row: str(row["name"]))}
        document = {"machine": machine.describe(), "results": results}
        FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return int(any(row["outcome"] != "yes" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
