"""Engine throughput without a limit: one TCP flow at 0 and 20 ms, and small packets.

Beside each figure stands that of a plain veth pair in the same run (0 ms: a veth has no delay).
"""

from __future__ import annotations

from bench.engine.netns import privilege
from bench.engine.probing import (
    finish,
    goodput_bps,
    probe,
    program,
    serving,
    start,
    stream_words,
)
from bench.engine.wiring import Ends, Pipe, address, change, engine, plain_veth
from bench.tables import Record, Table, percent
from tests.datapath.client import Client

LOSSLESS_PPS = {"root": (200_000, 250_000), "user": (50_000, 120_000)}
THREADS = (1, 2)
_CONTROLS = ("cubic", "bbr")

TABLES = (
    Table(
        {
            "Throughput": "{what}",
            "through": "{through}",
            "threads": "{threads}",
            "one-way delay": "{delay_ms} ms",
            "measured": "{value} {unit}",
            "of plain veth": "{ratio_to_veth:.2f}",
            "lost": percent("lost_share", 2),
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """Rows of {what, value, unit, veth, ratio} and more per row."""
    rows = _on_veth(quick)
    veth = {str(row["what"]): float(row["value"]) for row in rows}
    with Client.start(program("pktd")) as pktd:
        ends = engine(pktd, 1, Pipe())
        with serving(ends.spaces[1]):
            for delay_ms in (0, 20):
                change(pktd, 1, Pipe(delay_ns=delay_ms * 1_000_000))
                for control in _CONTROLS:
                    row = _tcp(ends, f"tcp {control}", _seconds(quick, delay_ms))
                    rows.append({**row, "through": "pktd", "delay_ms": delay_ms})
        ends.close()
    for threads in THREADS:
        rows += _by_threads(threads, quick)
    for row in rows:
        limit = veth.get(str(row["what"]), 0.0)
        if row["through"] != "veth" and limit:
            row["ratio_to_veth"] = round(float(row["value"]) / limit, 4)
    return rows


def _seconds(quick: bool, delay_ms: int) -> tuple[float, float]:
    """(how long, of which left out): a long path takes seconds to fill."""
    if quick:
        return (3.0, 1.5) if delay_ms else (1.5, 0.5)
    return (8.0, 4.0) if delay_ms else (5.0, 1.0)


def _on_veth(quick: bool) -> list[Record]:
    ends = plain_veth()
    with serving(ends.spaces[1]):
        rows = [_tcp(ends, f"tcp {control}", _seconds(quick, 0)) for control in _CONTROLS]
        rows += _small(ends, quick)
    ends.close()
    return [{**row, "through": "veth", "delay_ms": 0} for row in rows]


def _tcp(ends: Ends, what: str, length: tuple[float, float]) -> Record:
    seconds, skip = length
    words = stream_words(1, seconds, skip=skip, cc=what.split()[1])
    summary = probe(ends.spaces[0], *words)
    return {
        "what": what,
        "value": round(goodput_bps(summary) / 1e9, 3),
        "unit": "Gb/s",
        "retransmits": summary["retransmits"],
    }


def _small(ends: Ends, quick: bool) -> list[Record]:
    """64-byte IP packets as fast as one sender can; what arrives counts."""
    summary = probe(ends.spaces[0], "blast", address(1), "--seconds", "1" if quick else "4")
    lost = summary["lost"] / summary["sent"]
    return [
        {
            "what": "udp 64 B",
            "value": round(summary["pps"] / 1000, 1),
            "unit": "kpps",
            "lost_share": round(lost, 5),
        }
    ]


def _by_threads(threads: int, quick: bool) -> list[Record]:
    """Small packets through an engine with so many threads, as many as there are and so many."""
    through = {"through": "pktd", "threads": threads, "delay_ms": 0}
    with Client.start(program("pktd"), f"--engine-threads={threads}") as pktd:
        ends = engine(pktd, 1, Pipe())
        with serving(ends.spaces[1]):
            rows = _small(ends, quick)
            rows += [_lossless(ends, pktd, pps, quick) for pps in LOSSLESS_PPS[privilege()]]
        ends.close()
    return [{**row, **through} for row in rows]


def _lossless(ends: Ends, pktd: Client, pps: int, quick: bool) -> Record:
    """The same at a given rate, at which nothing should be lost."""
    seconds = 1 if quick else 4
    cpu = pktd.cpu_seconds()
    words = ["blast", address(1), "--seconds", str(seconds), "--pps", str(pps)]
    summary = finish(start(ends.spaces[0], words))
    return {
        "what": f"udp 64 B, offered {pps // 1000} kpps",
        "value": round(summary["pps"] / 1000, 1),
        "unit": "kpps",
        "sent_kpps": round(summary["sent"] / seconds / 1000, 1),
        "lost_share": round(summary["lost"] / summary["sent"], 5),
        "engine_cpu_share": round((pktd.cpu_seconds() - cpu) / seconds, 2),
    }
