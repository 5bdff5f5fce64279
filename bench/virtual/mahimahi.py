"""A link that follows a trace of deliveries, beside mahimahi's own: the same trace, and the same
datagrams at the same ns after its beginning.

    python -m bench.virtual.mahimahi MM_LINK TRACE [--queue BYTES]

as root, with an mm-link that was built from its sources (no current Debian has it). It is called in
a network namespace of its own, on behalf of `nobody`, since it wants an ordinary user, and with a
real-time priority: what it is late by would count against it. A program inside sends, one outside
notes what came. Then a run in virtual time sends at the moments that were noted. Prints the figures
of docs/fidelity.md, and ends with 1 if one is off: throughput by THROUGHPUT, the delay of one
datagram in a hundred by DELAY_MS, or which are lost.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine
from bench.virtual.aqm import carry_out

ENDS = Path(__file__).with_name("mahimahi_ends.py")
THROUGHPUT, DELAY_MS = 0.01, 2.0
AFTERWARDS_NS = 4 * 10**9  # so long after the last one was sent it counts what comes
HEADERS = 28  # of IP and UDP
CLOCK_NS = 946_684_800 * 10**9  # what clocks say at the beginning of a run
MM_LINK = """\
set -e
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
"$1" receive got & trap "kill $!" EXIT
while [ ! -e got ]; do sleep 0.1; done
chrt -f 20 setpriv --ruid nobody --rgid nogroup --clear-groups "$2" "$3" "$3" --uplink-log=up.log \\
    --uplink-queue=droptail --uplink-queue-args=bytes="$4" -- "$1" send sent
"""
OURS = """\
network ipv4
service rx exec="./ends.py receive got" files=ends.py
service tx exec="./ends.py again rx.0 planned sent" files=ends.py;planned
bridge s
link tx--s latency=0ms trace-up=cell.trace down=unlimited queue={queue}B
link rx--s latency=0ms
at 40s quit
"""
Sent = list[tuple[int, int]]  # ns since the trace began, bytes of payload
Came = dict[int, int]  # by number, ns since the trace began


def mahimahi(place: Path, mm_link: Path, trace: Path, queue: int) -> tuple[Sent, Came]:
    place.chmod(0o777)
    words = [str(ENDS), str(mm_link.resolve()), str(trace.resolve()), str(queue)]
    subprocess.run(["unshare", "-n", "sh", "-c", MM_LINK, "sh", *words], cwd=place, check=True)
    log = (place / "up.log").read_text()
    began_ms = sum(
        int(found[1]) for word in ("init", "base")
        if (found := re.search(rf"^# {word} timestamp: (\d+)$", log, re.M))
    )  # fmt: skip
    return _noted(place, began_ms * 10**6)


def ours(place: Path, sent: Sent, trace: Path, queue: int) -> tuple[Sent, Came]:
    (place / "ends.py").write_bytes(ENDS.read_bytes())
    (place / "ends.py").chmod(0o755)
    (place / "cell.trace").write_bytes(trace.read_bytes())
    (place / "planned").write_text("".join(f"{CLOCK_NS + at} {size}\n" for at, size in sent))
    run = carry_out(place, OURS.format(queue=queue), 1)
    both = place / "noted"
    both.mkdir()
    for name, instance in (("sent", "tx.0"), ("got", "rx.0")):
        (both / name).write_bytes((run / "instances" / instance / name).read_bytes())
    return _noted(both, CLOCK_NS)


def _noted(place: Path, began_ns: int) -> tuple[Sent, Came]:
    sent, got = (
        [(int(one), int(other)) for one, other in map(str.split, text.splitlines())]
        for text in ((place / name).read_text() for name in ("sent", "got"))
    )
    return [(at - began_ns, size) for at, size in sent], {n: at - began_ns for n, at in got}


def compared(theirs: tuple[Sent, Came], own: tuple[Sent, Came]) -> dict[str, float]:
    """Delays in ms: how much later than mahimahi's ours came, beyond when they were sent. What
    still waits after the last one counts neither as lost nor as come, by both."""
    until_ns = theirs[0][-1][0] + AFTERWARDS_NS
    theirs, own = (
        (sent, {n: at for n, at in came.items() if at < until_ns}) for sent, came in (theirs, own)
    )
    both = sorted(theirs[1].keys() & own[1].keys())
    later = sorted(
        ((own[1][n] - own[0][n][0]) - (theirs[1][n] - theirs[0][n][0])) / 1e6 for n in both
    )
    bytes_ = [sum(sent[n][1] + HEADERS for n in came) for sent, came in (theirs, own)]
    off = sorted(map(abs, later))
    return {
        "datagrams": len(theirs[0]),
        "not come to one only": len(theirs[1].keys() ^ own[1].keys()),
        "not come to both": len(theirs[0]) - len(theirs[1].keys() | own[1].keys()),
        "throughput": bytes_[1] / bytes_[0] - 1,
        "later_median_ms": later[len(later) // 2],
        "off_p90_ms": off[len(off) * 9 // 10],
        "off_p99_ms": off[len(off) * 99 // 100],
        "off_most_ms": off[-1],
        "delay_most_ms": max(theirs[1][n] - theirs[0][n][0] for n in both) / 1e6,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.virtual.mahimahi", description=__doc__)
    parser.add_argument("mm_link", type=Path)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--queue", type=int, default=60_000, metavar="BYTES")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ts-mm-") as name:
        places = [Path(name) / one for one in ("theirs", "ours")]
        Path(name).chmod(0o755)
        for place in places:
            place.mkdir()
        theirs = mahimahi(places[0], asked.mm_link, asked.trace, asked.queue)
        own = ours(places[1], theirs[0], asked.trace, asked.queue)
    found = compared(theirs, own)
    print(json.dumps({**found, "machine": machine.describe()}, indent=1))
    met = abs(found["throughput"]) <= THROUGHPUT and found["off_p99_ms"] <= DELAY_MS
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
