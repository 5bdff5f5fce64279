"""The tables of bench.agents.sharing_model in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import Record
from bench.tables import machine_line, table

Rows = Sequence[Record]


def section(document: Record) -> str:
    rows = document["results"]["sharing-model"]
    parts = [
        "### Sharing model\n",
        machine_line(document["machine"]),
        _costs(rows),
        _outcomes(rows),
    ]
    return "\n".join(parts)


def _costs(rows: Rows) -> str:
    made = [
        (
            f"solver: {row['flows']} flows, {row['links']} links, {row['full']} of them full",
            f"{row['median_ms']:.2f} / {row['p99_ms']:.2f} ms",
        )
        for row in rows
        if row["part"] == "solver"
    ]
    made += [
        (
            f"tick: {row['flows']} own flows, {'steady' if row['steady'] else 'all changing'}",
            f"{row['median_ms']:.2f} / {row['p99_ms']:.2f} ms",
        )
        for row in rows
        if row["part"] == "tick"
    ]
    return table(("Cost in CPU time", "median / p99"), made)


def _outcomes(rows: Rows) -> str:
    made = []
    for row in rows:
        lost = f", {row['lost_metadata'] * 100:.0f} % of metadata lost" if "hosts" in row else ""
        if row["part"] == "shares":
            made.append(
                (
                    f"shares on {row['networks']} random networks, "
                    f"{row['lost_metadata'] * 100:.0f} % of metadata lost",
                    f"worst flow off by {row['worst_error'] * 100:.2f} %, median of networks "
                    f"{row['median_error'] * 100:.2f} %; {row['limits_set_afterwards']} limits set "
                    "after settling",
                )
            )
        elif row["part"] == "reaction":
            made.append(
                (
                    f"{row['newcomers']} newcomers, {row['hosts']} hosts{lost}",
                    f"shares in force after {row['median_ms']:.0f} ms (median), "
                    f"{row['p99_ms']:.0f} ms (p99), {row['max_ms']:.0f} ms (max)",
                )
            )
        elif row["part"] == "soak":
            made.append(
                (
                    f"{row['seconds'] / 3600:g} h soak in {row['took_s']} s, 4 hosts",
                    f"shares off by {row['worst_error'] * 100:.2f} % at worst, "
                    f"{row['last_error'] * 100:.2f} % at the end; objects {row['objects']} → "
                    f"{row['objects_at_end']}; {row['ticks']} ticks, {row['limits_set']} limits",
                )
            )
    return table(("Simulated", "result"), made)
