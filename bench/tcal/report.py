"""The table of bench.tcal.timings, for docs/performance.md. Input: a result document."""

from __future__ import annotations

from bench.engine.probing import Record
from bench.tables import machine_line, table


def section(document: Record) -> str:
    rows: list[Record] = document["results"]["tcal"]
    head = ("tcald", "target", "in force after", "staged before", "`tc -batch`", "pyroute2")
    cells = [
        (
            row["what"],
            f"{row['target_ms']} ms",
            f"{row['tcald_ms']} ms",
            f"{row['staged_ms']} ms" if "staged_ms" in row else "–",
            _peer(row, "tc_batch"),
            _peer(row, "pyroute2"),
        )
        for row in rows
    ]
    kernel = f"Under {rows[0]['kernel']}; the machine: {machine_line(document['machine'])}"
    return "\n".join(["### The kernel's datapath\n", kernel, table(head, cells)])


def _peer(row: Record, name: str) -> str:
    if f"{name}_ms" not in row:
        return "–"
    return f"{row[f'{name}_ms']:g} ms ({row[f'{name}_ratio']:g} ×)"


def wrong(rows: list[Record]) -> list[str]:
    """Targets that were missed, each with what was measured."""
    return [
        f"{row['what']}: {row['tcald_ms']} ms, not {row['target_ms']}"
        for row in rows
        if row["tcald_ms"] > row["target_ms"]
    ]
