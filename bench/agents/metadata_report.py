"""The tables of bench.agents.metadata, for docs/performance.md. Input: a result document."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import Record
from bench.tables import machine_line, table


def section(document: Record) -> str:
    rows: list[Record] = document["results"]["metadata"]
    text = ["### Metadata between agents\n", machine_line(document["machine"])]
    text += [_targets(rows), _growth(rows, False), _growth(rows, True), _refusals(rows)]
    text.append(_interest(rows))
    return "\n".join(text)


def wrong(rows: Sequence[Record]) -> list[str]:
    """Targets that were missed."""
    return [
        f"{row['what']}: {row['with_headers_bytes_s']} bytes/s, the bound is {row['bound_bytes_s']}"
        for row in _of(rows, "target")
        if not row["met"]
    ]


def _of(rows: Sequence[Record], part: str) -> list[Record]:
    return [row for row in rows if row["part"] == part]


def amount(per_second: float) -> str:
    """Three digits, in kB/s or MB/s."""
    value, unit = (per_second / 1e6, "MB/s") if per_second >= 1e6 else (per_second / 1e3, "kB/s")
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _targets(rows: Sequence[Record]) -> str:
    found = [
        (
            f"{row['instances']}, {row['flows']}, {row['hosts']}: {row['what']}",
            amount(row["payload_bytes_s"]),
            amount(row["with_headers_bytes_s"]),
            f"{row['datagrams_s']:.0f}",
            amount(row["bound_bytes_s"]),
            "yes" if row["met"] else "**no**",
        )
        for row in _of(rows, "target")
    ]
    head = (
        "Instances, flows, agents",
        "UDP payload",
        "with headers",
        "datagrams/s",
        "bound",
        "met",
    )
    return table(head, found)


def _growth(rows: Sequence[Record], change: bool) -> str:
    found = [row for row in _of(rows, "growth") if row["change"] == change]
    what = "every flow told anew in every tick" if change else "nothing changes"
    head = (
        f"Agents, flows: {what}",
        "all agents",
        "with headers",
        "each agent",
        "datagrams/s",
        "CPU a tick: in / asked / out",
        "all, mean / max",
    )
    return table(
        head,
        [
            (
                f"{row['hosts']}, {row['flows']}",
                amount(row["payload_bytes_s"]),
                amount(row["with_headers_bytes_s"]),
                amount(row["agent_bytes_s"]),
                row["datagrams_s"],
                f"{row['in_ms']:.2f} / {row['remote_ms']:.2f} / {row['out_ms']:.2f} ms",
                f"{row['tick_ms_mean']:.2f} / {row['tick_ms_max']:.2f} ms",
            )
            for row in found
        ],
    )


def _refusals(rows: Sequence[Record]) -> str:
    found = [(row["what"], f"{row['us']:.1f} µs") for row in _of(rows, "refusal")]
    return table(("Datagram that is refused", "CPU time"), found)


def _interest(rows: Sequence[Record]) -> str:
    found = [
        (
            row["size"],
            f"{row['first_ms']:.1f} ms",
            f"{row['epoch_ms']:.1f} ms",
            f"{row['flows_10000_ms']:.1f} ms",
        )
        for row in _of(rows, "interest")
    ]
    head = ("Who shares which links, 64 hosts: elements", "first", "next epoch", "of 10,000 flows")
    return table(head, found)
