"""`python -m bench.papers.destinations pktd|u32 quick|whole COUNT…`: what they cost a packet.

Output: a JSON list of texts, each the JSON of {destinations, rtt_us, kpps}, for filters.py.
Destinations are 10.77.1.0 and after; all of them are addresses of the second end.
"""

from __future__ import annotations

import ipaddress
import json
import sys
from collections.abc import Sequence

from bench.engine.netns import isolate, run
from bench.engine.paths import PREFIX, attach
from bench.engine.probing import probe, program, serving
from bench.engine.wiring import Ends, Pipe, bridged
from bench.errors import BenchError
from bench.tables import Record
from tests.datapath.client import Client

FIRST = int(ipaddress.IPv4Address("10.77.1.0"))
MOST = 255 * 256
_STEP = 4096  # lines in one message to pktd
_RATE_BPS = 10_000_000_000  # of each htb class: nothing is shaped


def destination(number: int) -> str:
    return str(ipaddress.IPv4Address(FIRST + number))


def reachable(ends: Ends) -> None:
    """Every destination is an address of the second end; the first one needs no ARP for each."""
    sender, receiver = ends.spaces
    networks = [f"{destination(first)}/24" for first in range(0, MOST, 256)]
    receiver.ip_batch([f"route add local {network} dev lo" for network in networks])
    sender.ip_batch([f"route add {network} via {ends.address(1)}" for network in networks])


def costs(ends: Ends, count: int, quick: bool) -> Record:
    """Median of round trips, and datagrams a second that came there, at the last destination."""
    to = destination(count - 1)
    probes = "100" if quick else "2000"
    seconds = "1" if quick else "3"
    rtt = probe(ends.spaces[0], "rtt", to, "-4", "--count", probes, "--interval", "1ms")
    with serving(ends.spaces[1], "--bind", to):
        blast = probe(ends.spaces[0], "blast", to, "-4", "--seconds", seconds)
    return {
        "destinations": count,
        "rtt_us": float(rtt["p50_us"]),
        "kpps": round(float(blast["pps"]) / 1000, 1),
    }


def by_pktd(counts: Sequence[int], quick: bool) -> list[Record]:
    found: list[Record] = []
    with Client.start(program("pktd")) as pktd:
        ends = bridged(2)
        reachable(ends)
        attach(pktd, ends.spaces)
        declared = 0
        for count in counts:
            declare(pktd, declared, count)
            declared = count
            found.append(costs(ends, count, quick))
        ends.close()
    return found


def declare(pktd: Client, first: int, after: int) -> None:
    """Nodes 2 and up are the destinations; a path from the sender to each and back."""
    lines: list[str] = []
    for number in range(first, after):
        lines.append(f"node {2 + number} ip={destination(number)}")
        lines.append(f"path 0 {2 + number} {Pipe().words()} seed={number} up=1")
    for begin in range(0, len(lines), _STEP):
        pktd.all(lines[begin : begin + _STEP])
    pktd.commit()


def by_u32(counts: Sequence[int], quick: bool) -> list[Record]:
    found: list[Record] = []
    for count in counts:
        ends = bridged(2)
        reachable(ends)
        run(ends.spaces[0].argv(["tc", "-batch", "-"]), "".join(filters(count)))
        found.append(costs(ends, count, quick))
        ends.close()
    return found


def filters(count: int) -> list[str]:
    """Lines for tc: an htb class for each destination, found by a hash of the third byte of its
    address, whose every bucket leads to one of the fourth byte."""
    rate = f"rate {_RATE_BPS}bit burst 1m cburst 1m quantum 60000"
    lines = ["qdisc add dev eth0 root handle 1: htb default 0\n"]
    base = "filter add dev eth0 parent 1: protocol ip prio 1"
    lines.append(f"{base} handle 1: u32 divisor 256\n")
    link = f"u32 ht 800:: match ip dst {PREFIX} link 1: hashkey mask 0x0000ff00 at 16"
    lines.append(f"{base} {link}\n")
    tables = -(-count // 256)
    for table in range(tables):
        lines.append(f"{base} handle {table + 2:x}: u32 divisor 256\n")
        third = f"ht 1:{table + 1:x}: match ip dst {destination(table * 256)}/24"
        lines.append(f"{base} u32 {third} link {table + 2:x}: hashkey mask 0x000000ff at 16\n")
    for number in range(count):
        lines.append(f"class add dev eth0 parent 1: classid 1:{number + 1:x} htb {rate}\n")
        bucket = f"ht {number // 256 + 2:x}:{number & 255:x}:"
        match = f"match ip dst {destination(number)}/32 flowid 1:{number + 1:x}"
        lines.append(f"{base} u32 {bucket} {match}\n")
    return lines


def main() -> int:
    isolate("bench.papers.destinations")
    kind, extent, *counts = sys.argv[1:]
    measure = {"pktd": by_pktd, "u32": by_u32}[kind]
    try:
        found = measure([int(count) for count in counts], extent == "quick")
        print(json.dumps([json.dumps(one) for one in found]))
    except (BenchError, OSError, KeyError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
