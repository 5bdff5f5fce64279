"""Queues that drop early beside the kernel's own, in virtual time: TCP flows through a link with
`aqm=`, and through the qdisc of that name in the kernel for virtual time, where an htb has the
link's rate and netem the delay. What is measured is the same program's (aqm_ends.py).

`python -m bench.virtual.aqm [--seeds N] [NAME …]` (codel-10-1-cubic: discipline, Mb/s, flows,
control) writes bench/results/virtual-aqm.json; what it has measured replaces what the file has of
it. Figures are means of runs with the seeds 1 to N (RUNS; LONG_RUNS of less time from LONG_MBPS on,
where a run takes minutes). It ends with 1 if a figure is further from the kernel's than WITHIN of
it, and than half the time of a packet: waits come in steps of that time. Where chance alone may be
what is beyond that (CHANCE standard errors of the difference, by the runs), the row says so.
`python -m bench.report` brings the table of docs/fidelity.md up to it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_grouped, variance

from bench import RESULTS, ROOT, machine
from bench.tables import Record, Table

FILE = RESULTS / "virtual-aqm.json"
ENDS = Path(__file__).with_name("aqm_ends.py")
WITHIN = 0.1
PACKET_BYTES, SEGMENT_BYTES = 1500, 1448
ONE_WAY_MS = 10
RUNS = 3  # where the flows meet is chance: one run tells little
LONG_MBPS, LONG_RUNS = 100, 1
CHANCE = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Of each run of a row: what is left out at the start, and what counts then."""

    settle_s: int
    seconds: int

    @property
    def sending_s(self) -> int:
        return self.settle_s + self.seconds + 3


def span(mbps: int) -> Span:
    return Span(10, 20) if mbps < LONG_MBPS else Span(5, 10)


PLAIN = "pfifo"  # drops its tail: what both scenes differ in by themselves, whatever the queue
KINDS = ("codel", "fq_codel", "pie", PLAIN)
NAMES = [
    f"{kind}-{mbps}-{n}-{control}"
    for control in ("cubic", "bbr")
    for mbps in (10, 100)
    for kind in KINDS
    for n in (1, 4, 16)
]
# Parameters that each is given. The kernel counts this one in ticks of 10 ms, and its timers take
# one more than they are set to.
GIVEN = {"pie": ({"tupdate": "20ms"}, {"tupdate": "10ms"}), PLAIN: ({}, {"limit": "1000"})}
_PLAIN_QUEUE = "queue=1000pkt"

OURS = """\
network ipv4
service sender exec="./aqm_ends.py send receiver.0 {flows} {seconds} {control}"
service receiver exec="./aqm_ends.py receive {seconds}"
bridge s
link sender--s latency={delay}ms
link s--receiver rate={rate} {queue}
at 0s receiver join
at 1s sender join
at {end}s quit
"""
KERNEL = """\
service ends files=aqm_ends.py \\
    exec="unshare -n python3 aqm_ends.py kernel {flows} {seconds} {control} {bps} {delay} {kind}"
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
                queue=_queue(kind),
                end=seconds + 3,
            ),
            seed,
        )
        sent, received = run / "instances/sender.0/sent", run / "instances/receiver.0/received"
        found = judge(sent, received, *_measured(mbps))
        links = json.loads((run / "summary.json").read_text())["links"]
        return {**found, "dropped": sum(row["drop_queue"] for row in links)}


def _queue(kind: str) -> str:
    if kind == PLAIN:
        return _PLAIN_QUEUE
    return "aqm=" + ";".join([kind, *map(":".join, _given(kind, 0))])


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
                delay=ONE_WAY_MS,
                kind=" ".join([kind, *map(" ".join, _given(kind, 1))]),
                end=seconds + 6,
            ),
            seed,
        )
        own = run / "instances/ends.0"
        found = judge(own / "sent", own / "received", *_measured(mbps))
        said = (run / "logs/ends.0.log").read_text()
        dropped = re.search(rf"qdisc {kind} .*?dropped (\d+)", said)
        return {**found, "dropped": int(dropped[1]) if dropped else 0}


def _given(kind: str, to: int) -> Iterable[tuple[str, str]]:
    """`to` ours, 0, or the kernel's, 1."""
    return GIVEN[kind][to].items() if kind in GIVEN else ()


def _measured(mbps: int) -> tuple[Span, int, int]:
    """What judge() has to know of a run at this rate."""
    return span(mbps), mbps * 10**6, ONE_WAY_MS * 10**6 + _service_ns(mbps)


def _service_ns(mbps: int) -> int:
    return PACKET_BYTES * 8 * 1000 // mbps


def measure(name: str, runs: int) -> Record:
    kind, mbps, flows, control = name.split("-")
    seeds = range(1, runs + 1)
    ours, kernel = (
        [one(kind, int(mbps), int(flows), control, seed) for seed in seeds]
        for one in (_ours, _kernel)
    )
    row: Record = {"name": name, "kind": kind, "mbps": int(mbps), "flows": int(flows)}
    row |= {"control": control, "runs": runs, "seconds": span(int(mbps)).seconds}
    for key in ours[0]:
        row |= {f"{key}_ours": _mean(ours, key), f"{key}_kernel": _mean(kernel, key)}
    return {**row, "outcome": _outcome(ours, kernel, _service_ns(int(mbps)) / 2e6)}


def _mean(runs: Sequence[Record], key: str) -> float:
    return sum(run[key] for run in runs) / len(runs)


def _outcome(ours: Sequence[Record], kernel: Sequence[Record], half_packet_ms: float) -> str:
    """yes, or which figures are too far from the kernel's, and which perhaps."""
    far, open_ = [], []
    for key, step in (("used", 0.0), ("median", half_packet_ms), ("p99", half_packet_ms)):
        theirs = _mean(kernel, key)
        beyond = abs(_mean(ours, key) - theirs) - max(WITHIN * abs(theirs), step)
        if beyond > 0:
            chance = CHANCE * _error(ours, kernel, key)
            (far if beyond > chance else open_).append(key)
    said = [f"not: {', '.join(far)}"] if far else []
    said += [f"open: {', '.join(open_)}"] if open_ else []
    return "; ".join(said) or "yes"


def _error(ours: Sequence[Record], kernel: Sequence[Record], key: str) -> float:
    """The standard error of the difference of both means; 0 where one run tells nothing of it."""
    if len(ours) == 1:
        return 0.0
    return math.sqrt(sum(variance(run[key] for run in runs) / len(runs) for runs in (ours, kernel)))


def _kept(measured: Sequence[str]) -> list[Record]:
    """What the file has of others."""
    rows = json.loads(FILE.read_text())["results"]["aqm"] if FILE.exists() else []
    return [row for row in rows if row["name"] not in measured]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.virtual.aqm", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, choices=range(1, 100), metavar="N")
    options, rows = parser.parse_args(), list[Record]()
    for name in options.names or NAMES:
        usual = RUNS if int(name.split("-")[1]) < LONG_MBPS else LONG_RUNS
        rows.append(measure(name, options.seeds or usual))
        print(rows[-1], flush=True)
        kept = _kept([row["name"] for row in rows])
        results = {"aqm": sorted(kept + rows, key=lambda row: str(row["name"]))}
        document = {"machine": machine.describe(), "results": results}
        FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return int(any("not" in row["outcome"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
