"""The tables of pktd's path mode for docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import Record
from bench.tables import table

_QUANTILES = ("mean_us", "p50_us", "p99_us", "max_us")


def tables(rows: Sequence[Record]) -> str:
    """From the rows of bench.engine.paths."""
    flows = [row for row in rows if row["group"] == "throughput"]
    delays = [row for row in rows if row["group"] == "delay"]
    commands = [row for row in rows if row["group"] == "commands"]
    parts = (
        table(
            ("Path mode", "through", "measured"),
            [(row["what"], row["through"], f"{row['value']} {row['unit']}") for row in flows],
        ),
        table(
            ("Path mode: delay", "through", "error: mean µs", "p50", "p99", "max", "lost"),
            [
                (
                    f"{row['delay_ms']} ms",
                    row["through"],
                    *(f"{row[name]:.1f}" for name in _QUANTILES),
                    row["lost"],
                )
                for row in delays
            ],
        ),
        table(
            ("Path mode: command", "median"),
            [(row["what"], f"{row['value']} {row['unit']}") for row in commands],
        ),
    )
    return "\n".join(parts)
