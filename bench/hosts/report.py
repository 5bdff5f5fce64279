"""The tables of bench/results/hosts.json in docs/performance.md, and bounds that were missed."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import Record
from bench.tables import machine_line, table

SHARE_BOUND = 0.05
RTT_BOUND_MS = 0.3
REACTION_BOUND_MS = 100


def section(document: Record) -> str:
    results = document["results"]
    text = ["### Hosts: `python -m bench.hosts`\n", machine_line(document["machine"])]
    for name, make in (
        ("shares", _shares),
        ("reaction", _reaction),
        ("agree", _agree),
        ("congestion", _congestion),
    ):
        if results.get(name):
            text.append(make(results[name]))
    return "\n".join(text)


def worst(wanted: Sequence[float], measured: Sequence[float]) -> float:
    """Largest relative deviation; 0 without any."""
    return max((abs(m - w) / w for w, m in zip(wanted, measured, strict=True) if w), default=0.0)


def missed(results: dict[str, list[Record]]) -> list[str]:
    found: list[str] = []
    for row in results.get("shares", ()):
        error = worst(row["model_mbps"], row["measured_mbps"])
        if error > SHARE_BOUND:
            found.append(
                f"{row['example']} over {row['hosts']} hosts, stage {row['stage']}: "
                f"{error * 100:.1f} % from the model"
            )
    for row in results.get("reaction", ()):
        if row["p99_ms"] > REACTION_BOUND_MS:
            found.append(f"reaction over {row['hosts']} hosts: p99 {row['p99_ms']} ms")
    for row in results.get("agree", ()):
        error = worst(row["exact_mbps"], row["hosts_mbps"])
        apart = abs(row["exact_rtt_ms"] - row["hosts_rtt_ms"])
        if error > SHARE_BOUND:
            found.append(f"random network {row['seed']}: {error * 100:.1f} % from hop-exact")
        if apart > RTT_BOUND_MS and not row["probe_waits"]:
            found.append(f"random network {row['seed']}: round trips {apart:.3f} ms apart")
    return found


def _cells(row: Record, names: Sequence[str]) -> list[str]:
    both = zip(row["clients"], row["measured_mbps"], row["model_mbps"], strict=True)
    cells = {client: f"{got:.2f} ({want:.2f})" for client, got, want in both}
    return [cells.get(name, "–") for name in names]


def _shares(rows: Sequence[Record]) -> str:
    names = sorted({client for row in rows for client in row["clients"]})
    head = ("Mb/s: measured (model)", "hosts", "stage", *names, "worst")
    return table(
        head,
        [
            (
                row["example"],
                row["hosts"],
                row["stage"],
                *_cells(row, names),
                f"{worst(row['model_mbps'], row['measured_mbps']) * 100:.1f} %",
            )
            for row in rows
        ],
    )


def _reaction(rows: Sequence[Record]) -> str:
    return table(
        ("Reaction to a new flow", "settled", "median", "p99", "max"),
        [
            (
                f"{row['hosts']} hosts",
                f"{row['settled']} of {row['rounds']}",
                *(f"{row[name]} ms" for name in ("median_ms", "p99_ms", "max_ms")),
            )
            for row in rows
        ],
    )


def _congestion(rows: Sequence[Record]) -> str:
    return table(
        ("20 Mb/s, 40 ms, 50 kB", "hosts", "Mb/s", "lost", "round trip", "window"),
        [
            (
                row["what"],
                row["hosts"] or "hop-exact",
                row["mbps"],
                f"{row['lost_percent']} %",
                f"{row['rtt_ms']} ms" if "rtt_ms" in row else "–",
                f"{row['cwnd']} packets" if "cwnd" in row else "–",
            )
            for row in rows
        ],
    )


def _agree(rows: Sequence[Record]) -> str:
    return table(
        (
            *("Random network", "hosts", "flows", "full links", "rates: worst from hop-exact"),
            *("from the model", "RTT hop-exact", "over hosts"),
        ),
        [
            (
                row["seed"],
                row["hosts"],
                len(row["flows"]),
                row["full_links"],
                f"{worst(row['exact_mbps'], row['hosts_mbps']) * 100:.2f} %",
                f"{worst(row['model_mbps'], row['hosts_mbps']) * 100:.2f} %",
                f"{row['exact_rtt_ms']:.3f} ms" + (" (waits)" if row["probe_waits"] else ""),
                f"{row['hosts_rtt_ms']:.3f} ms",
            )
            for row in rows
        ],
    )


_TABLES = {
    "shares": _shares,
    "reaction": _reaction,
    "agree": _agree,
    "congestion": _congestion,
}
