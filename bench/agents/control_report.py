"""The tables of bench.agents.control, for docs/performance.md. Input: a result document."""

from __future__ import annotations

from bench.engine.probing import Record
from bench.tables import machine_line, table


def section(document: Record) -> str:
    rows: list[Record] = document["results"]["control"]
    parts = [_requests(rows), _gathering(rows)]
    return "\n".join(["### Control of agents\n", machine_line(document["machine"]), *parts])


def _of(rows: list[Record], part: str) -> list[Record]:
    return [row for row in rows if row["part"] == part]


def _requests(rows: list[Record]) -> str:
    found = [
        (f"request and answer, {row['what']}", f"{row['median_us']} / {row['p99_us']} µs", row)
        for row in _of(rows, "request")
    ]
    cells = [(what, took, f"{row['cpu_us']} µs") for what, took, row in found]
    cells += [
        (f"sample of {row['rows']} rows", "–", f"{row['cpu_ms']} ms") for row in _of(rows, "sample")
    ]
    cells += [
        (f"a stranger: {row['what']}", "–", f"{row['cpu_us']} µs") for row in _of(rows, "stranger")
    ]
    return table(("One channel", "median / p99", "CPU time, both sides"), cells)


def _gathering(rows: list[Record]) -> str:
    found = [
        (
            row["agents"],
            *(f"{row[f'{name}_ms']} ms" for name in ("connect", "prepare", "measure", "start")),
            f"{row['cpu_percent']} %",
            f"{row['bound_median_us']} / {row['bound_max_us']} µs",
        )
        for row in _of(rows, "gathering")
    ]
    head = ("connect", "prepare", "measure", "start", "afterwards, of a core", "clock's bound")
    return table(("Agents", *head), found)
