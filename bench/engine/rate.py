"""Rate error from 128 kb/s to 4 Gb/s: the engine beside htb and tbf of the same kernel.

Above 1 Mb/s one TCP connection whose window is larger than the path and smaller than the queue: the
link is never idle and nothing is lost, so that goodput is the rate times payload over packet size,
without the steps of loss and repair. Up to 1 Mb/s datagrams at 1.3 times the rate, whose arrivals
are timed one by one. Each shaper is held against its own definition: the engine counts IP bytes,
htb and tbf count the 14 bytes of the Ethernet header too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import goodput_bps, probe, program, serving, stream_words
from bench.engine.wiring import (
    ETHERNET_BYTES,
    MSS_BYTES,
    MTU_BYTES,
    Ends,
    Pipe,
    address,
    change,
    engine,
    qdisc,
)
from bench.tables import Record, rate_text, table
from tests.datapath.client import Client

RATES_BPS = (128_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000, 1_000_000_000, 4_000_000_000)
QUICK_BPS = (10_000_000, 1_000_000_000)
_BY_DATAGRAMS_BPS = 1_000_000
_QUEUE_BYTES = 64 << 20


def _errors(rows: Sequence[Record]) -> str:
    """A line for each rate, a column for each shaper."""
    shapers = ("pktd", "htb", "tbf")
    errors = {(row["rate_bps"], row["shaper"]): f"{row['error_percent']:+.3f} %" for row in rows}
    rates = sorted({int(row["rate_bps"]) for row in rows})
    return table(
        ("Rate", *(f"{shaper}: error" for shaper in shapers)),
        [
            (rate_text(rate), *(errors.get((rate, shaper), "–") for shaper in shapers))
            for rate in rates
        ],
    )


TABLES = (_errors,)


def measure(quick: bool) -> list[Record]:
    """Rows of {shaper, rate_bps, theory_bps, measured_bps, error_percent}."""
    rates = QUICK_BPS if quick else RATES_BPS
    rows: list[Record] = []
    with Client.start(program("pktd")) as pktd:
        ends = engine(pktd, 1, Pipe())
        with serving(ends.spaces[1]):
            for rate_bps in rates:
                queue = 30_000 if rate_bps <= _BY_DATAGRAMS_BPS else _QUEUE_BYTES
                change(pktd, 1, Pipe(rate_bps, 1_000_000, queue))
                rows.append(_one(ends, "pktd", rate_bps, quick))
        ends.close()
    for kind in ("htb", "tbf"):
        for rate_bps in rates:
            ends = qdisc(kind, rate_bps)
            with serving(ends.spaces[1]):
                rows.append(_one(ends, kind, rate_bps, quick))
            ends.close()
    return rows


def _one(ends: Ends, shaper: str, rate_bps: int, quick: bool) -> Record:
    counted = MTU_BYTES if shaper == "pktd" else MTU_BYTES + ETHERNET_BYTES
    if rate_bps <= _BY_DATAGRAMS_BPS:
        measured, theory = _datagrams(ends, rate_bps), rate_bps * MTU_BYTES / counted
    else:
        measured, theory = _tcp(ends, rate_bps, quick), rate_bps * MSS_BYTES / counted
    return {
        "shaper": shaper,
        "rate_bps": rate_bps,
        "theory_bps": round(theory),
        "measured_bps": round(measured),
        "error_percent": round((measured / theory - 1) * 100, 4),
        "by": "udp" if rate_bps <= _BY_DATAGRAMS_BPS else "tcp",
    }


def _tcp(ends: Ends, rate_bps: int, quick: bool) -> float:
    # Twice 50 ms of the rate, as the kernel counts each byte of a buffer about twice.
    window = max(rate_bps // 8 * 100 // 1000, 262_144)
    ends.spaces[0].sysctl("net.ipv4.tcp_wmem", f"4096 16384 {window}")
    seconds, skip = (1.5, 0.5) if quick else (4.0, 1.0)
    return goodput_bps(probe(ends.spaces[0], *stream_words(1, seconds, skip=skip)))


def _datagrams(ends: Ends, rate_bps: int) -> float:
    # The slowest rate has a packet each 94 ms and, at the start, an empty queue: 10 s.
    seconds = "10" if rate_bps < 500_000 else "4"
    words = ["stream", address(1), "--udp", str(rate_bps * 13 // 10), "--seconds", seconds]
    summary = probe(ends.spaces[0], *words, "--interval", seconds, "--skip", "1s")
    return float(summary["bps"])
