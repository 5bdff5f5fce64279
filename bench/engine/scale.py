"""32 pairs of namespaces at 100 Mb/s each on one engine: what arrives, how late packets leave."""

from __future__ import annotations

import time
from contextlib import ExitStack

from bench.engine.probing import finish, goodput_bps, program, serving, start, stream_words
from bench.engine.wiring import MSS_BYTES, MTU_BYTES, Pipe, engine
from bench.tables import Record, Table, percent, rate_text
from tests.datapath.client import Client

PAIRS = 32
RATE_BPS = 100_000_000

TABLES = (
    Table(
        {
            "Scale": lambda row: f"{row['pairs']} pairs × {rate_text(row['rate_bps'])}",
            "theory": "{theory_mbps} Mb/s",
            "measured": "{measured_mbps} Mb/s",
            "share": percent("share_of_theory", 1),
            "slowest pair": percent("slowest_share", 1),
            "late p50 / p99 / max": "{late_p50_us:.0f} / {late_p99_us:.0f} / {late_max_us:.0f} µs",
            "CPU": percent("engine_cpu_share", 0),
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """One row: the sum of all goodputs against theory, the engine's lateness and CPU time."""
    seconds, skip = (3.0, 1.0) if quick else (10.0, 2.0)
    pipe = Pipe(RATE_BPS, 5_000_000, 625_000)
    with Client.start(program("pktd")) as pktd, ExitStack() as stack:
        ends = engine(pktd, PAIRS, pipe)
        stack.callback(ends.close)
        for index in range(PAIRS):
            stack.enter_context(serving(ends.spaces[2 * index + 1]))
        cpu, began = pktd.cpu_seconds(), time.monotonic()
        running = [
            start(ends.spaces[2 * index], stream_words(2 * index + 1, seconds, skip=skip))
            for index in range(PAIRS)
        ]
        rates = [goodput_bps(finish(each)) for each in running]
        share = (pktd.cpu_seconds() - cpu) / (time.monotonic() - began)
        stats = pktd.engine()
    theory = PAIRS * RATE_BPS * MSS_BYTES / MTU_BYTES
    return [
        {
            "pairs": PAIRS,
            "rate_bps": RATE_BPS,
            "theory_mbps": round(theory / 1e6, 1),
            "measured_mbps": round(sum(rates) / 1e6, 1),
            "share_of_theory": round(sum(rates) / theory, 4),
            "slowest_share": round(min(rates) * PAIRS / theory, 4),
            "late_p50_us": stats["late_p50_ns"] / 1000,
            "late_p99_us": stats["late_p99_ns"] / 1000,
            "late_max_us": stats["late_max_ns"] / 1000,
            "engine_cpu_share": round(share, 3),
        }
    ]
