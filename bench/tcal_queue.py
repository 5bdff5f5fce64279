"""Where the queue is: what TCP and UDP see at structures of tc, beside a real bottleneck router.

    tests/netem/with_netem.py -- python -m bench.tcal_queue [--structures …] > LINES
    python -m bench.tcal_queue --table        renews the tables of docs/tcal.md from bench/results

Each row is one structure (bench/tcal_structures.py) on one path with one kind of traffic: bulk TCP
with cubic or reno, 1 or 4 flows, or datagrams at 1.5 times the rate. A user-mode kernel under load
loses rate to late timers; the figures of the document are from a machine with virtual time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BenchError
from bench.netns import Namespace
from bench.probing import Record
from bench.report import RESULTS
from bench.tables import table
from bench.tcal_structures import FAR, STRUCTURES, Bottleneck
from bench.wiring import MTU_BYTES

PATHS = (
    Bottleneck(20_000_000, 10_000_000, 50_000),
    Bottleneck(100_000_000, 10_000_000, 62_500),
)
TRAFFIC = ("cubic:1", "cubic:4", "reno:1", "reno:4", "udp")
UDP_SECONDS = 5
DOCUMENT = Path(__file__).resolve().parent.parent / "docs/tcal.md"
TITLES = {
    "router": "**router** (reference)",
    "pktd": "pktd, hop by hop",
    "pktd_path": "pktd, path mode",
    "tcald": "**tcald**",
    "sender_nested": "sender: htb → netem → bfifo",
    "receiver_nested": "receiver: htb → netem → bfifo",
    "sender_super": "sender: the same, with super-packets",
    "sender_netem": "sender: htb → netem, its limit the queue",
    "receiver_netem": "receiver: htb → netem, its limit the queue",
    "sender_rate": "sender: netem with a rate, its limit the queue",
    "sender_fifo": "sender: htb → bfifo, the delay behind it",
}


@contextmanager
def sinking(space: Namespace) -> Iterator[None]:
    """The far end of the traffic, listening when the body starts."""
    argv = space.argv([sys.executable, "-m", "bench.tcal_flows", "sink"])
    sink = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert sink.stdout is not None
        if sink.stdout.readline() != "ready\n":
            raise BenchError("the sink did not start")
        yield
    finally:
        sink.kill()
        sink.wait()


def flows(space: Namespace, *words: str) -> Record:
    """Traffic from a namespace to its end; its figures."""
    argv = space.argv([sys.executable, "-m", "bench.tcal_flows", *words])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"traffic failed: {done.stderr.strip()}")
    record: Record = json.loads(done.stdout)
    return record


def words_of(traffic: str, path: Bottleneck, seconds: float) -> list[str]:
    """Arguments of bench.tcal_flows."""
    if traffic == "udp":
        rate = str(path.rate_bps * 3 // 2)
        return ["udp", FAR, "--rate", rate, "--seconds", str(UDP_SECONDS)]
    cc, count = traffic.split(":")
    length = ["--seconds", str(seconds), "--skip", str(seconds / 4)]
    return ["tcp", FAR, "--cc", cc, "--flows", count, *length]


def measure(name: str, path: Bottleneck, seconds: float, kinds: Sequence[str]) -> Iterator[Record]:
    """Rows for one structure, each as soon as it is there."""
    made = STRUCTURES[name](path)
    facts = {"structure": name, "rate_bps": path.rate_bps}
    facts |= {"delay_ns": path.delay_ns, "queue_bytes": path.queue_bytes}
    try:
        with sinking(made.b):
            for traffic in kinds:
                found = flows(made.a, *words_of(traffic, path, seconds))
                yield {**facts, "traffic": traffic, **found}
    finally:
        made.close()


def tables(rows: Sequence[Record]) -> str:
    """One table a path; structures in the order of TITLES, only those that were measured."""
    parts = []
    for path in PATHS:
        found = {
            (row["structure"], row["traffic"]): row
            for row in rows
            if (row["rate_bps"], row["queue_bytes"]) == (path.rate_bps, path.queue_bytes)
        }
        head = f"{path.rate_bps // 1_000_000} Mb/s, {path.queue_bytes / 1000:g} kB"
        names = [name for name in TITLES if any(key[0] == name for key in found)]
        columns = ("cubic × 1", "cubic × 4", "reno × 1", "reno × 4", "UDP: lost")
        lines = [
            (TITLES[name], *(_cell(found.get((name, traffic))) for traffic in TRAFFIC))
            for name in names
        ]
        if lines:
            parts.append(table((head, *columns), lines))
    return "\n".join(parts)


def update(made: str, document: Path = DOCUMENT) -> None:
    """Puts the tables between the document's two marker lines."""
    text = document.read_text()
    begin, end = "<!-- begin queue -->\n", "<!-- end queue -->"
    if begin not in text or end not in text:
        raise BenchError(f"{document} has no '{begin.strip()}' … '{end}'")
    head, rest = text.split(begin, 1)
    document.write_text(f"{head}{begin}{made}{end}{rest.split(end, 1)[1]}")


def _cell(row: Record | None) -> str:
    if row is None:
        return "–"
    if row["traffic"] == "udp":
        meant = row["rate_bps"] * 1.5 * UDP_SECONDS / 8 / MTU_BYTES
        if row["sent"] < 0.95 * meant:
            return "–"  # the sender was short of the processor: not what was to be offered
        return f"{row['loss_percent']:.1f} %"
    return f"{row['cwnd_mean']:.0f} · {row['rtt_ms_mean']:.1f} · {row['loss_percent']:.2f} %"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--structures", nargs="*", default=list(TITLES), choices=list(STRUCTURES))
    parser.add_argument("--traffic", nargs="*", default=TRAFFIC, choices=TRAFFIC)
    parser.add_argument("--seconds", type=float, default=12, help="of each TCP measurement")
    parser.add_argument("--paths", type=int, nargs="*", default=range(len(PATHS)))
    parser.add_argument("--table", action="store_true", help="measure nothing, renew the tables")
    given = parser.parse_args()
    if given.table:
        document = json.loads((RESULTS / "tcal_queue.json").read_text())
        update(tables(document["results"]["tcal_queue"]))
        return 0
    for index in given.paths:
        for name in given.structures:
            for row in measure(name, PATHS[index], given.seconds, given.traffic):
                print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
