"""Brings the tables of docs/performance.md up to the JSON under bench/results.

The document holds two marker lines, `<!-- begin figures -->` and `<!-- end figures -->`. Between
them everything is generated, the rest is written by hand. `python -m bench.report` does only this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.agents import control_report, metadata_report, sharing_model_report
from bench.engine import paths_report
from bench.engine.probing import Record
from bench.errors import BenchError
from bench.hosts import report as hosts_report
from bench.hosts import soak_report
from bench.routing import report as routing_report
from bench.tables import machine_line, table
from bench.tcal import report as tcal_report

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results"
KINDS = ("root", "user")
_TITLES = {"root": "As root", "user": "As an ordinary user, in a user namespace"}


def update(results: Path, document: Path = DOCUMENT) -> None:
    """Rewrites the generated part of `document`. Raises BenchError when its markers are missing."""
    text = document.read_text()
    pattern = re.compile(r"(<!-- begin figures -->\n).*?(<!-- end figures -->)", re.DOTALL)
    if not pattern.search(text):
        raise BenchError(f"{document} has no '<!-- begin figures -->' … '<!-- end figures -->'")
    made = figures(results)
    document.write_text(pattern.sub(lambda found: found.group(1) + made + found.group(2), text))


def figures(results: Path) -> str:
    """The generated text for every result file that is there."""
    parts: list[str] = []
    for kind in KINDS:
        path = results / f"{kind}.json"
        if path.exists():
            parts.append(section(_TITLES[kind], json.loads(path.read_text())))
    for name, make in _SECTIONS.items():
        path = results / f"{name}.json"
        if path.exists():
            parts.append(make(json.loads(path.read_text())))
    return "\n".join(parts) if parts else "No figures yet: run `make bench`.\n"


def section(title: str, document: Record) -> str:
    results = document["results"]
    text = [f"### {title}\n", machine_line(document["machine"])]
    for name, make in _TABLES.items():
        if results.get(name):
            text.append(make(results[name]))
    return "\n".join(text)


def _throughput(rows: Sequence[Record]) -> str:
    return table(
        ("Throughput", "through", "one-way delay", "measured", "of plain veth", "lost"),
        [
            (
                row["what"],
                row["through"],
                f"{row['delay_ms']} ms",
                f"{row['value']} {row['unit']}",
                f"{row['ratio_to_veth']:.2f}" if "ratio_to_veth" in row else "–",
                f"{row['lost_share'] * 100:.2f} %" if "lost_share" in row else "–",
            )
            for row in rows
        ],
    )


def _delay(rows: Sequence[Record]) -> str:
    return table(
        ("One-way delay", "through", "beside", "error: mean µs", "p50", "p99", "max", "lost"),
        [
            (
                f"{row['delay_ms']} ms",
                row["through"],
                row["beside"],
                *(f"{row[name]:.1f}" for name in ("mean_us", "p50_us", "p99_us", "max_us")),
                row["lost"],
            )
            for row in rows
        ],
    )


def _rate(rows: Sequence[Record]) -> str:
    shapers = ("pktd", "htb", "tbf")
    errors = {(row["rate_bps"], row["shaper"]): row["error_percent"] for row in rows}
    rates = sorted({int(row["rate_bps"]) for row in rows})
    return table(
        ("Rate", *(f"{shaper}: error" for shaper in shapers)),
        [
            (_rate_text(rate), *(_percent(errors.get((rate, shaper))) for shaper in shapers))
            for rate in rates
        ],
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f} %"


def _rate_text(rate_bps: int) -> str:
    for unit, name in ((1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1000, "kb/s")):
        if rate_bps >= unit:
            return f"{rate_bps / unit:g} {name}"
    return f"{rate_bps} b/s"


def _scale(rows: Sequence[Record]) -> str:
    return table(
        ("Scale", "theory", "measured", "share", "slowest pair", "late p50 / p99 / max", "CPU"),
        [
            (
                f"{row['pairs']} pairs × {_rate_text(row['rate_bps'])}",
                f"{row['theory_mbps']} Mb/s",
                f"{row['measured_mbps']} Mb/s",
                f"{row['share_of_theory'] * 100:.1f} %",
                f"{row['slowest_share'] * 100:.1f} %",
                " / ".join(f"{row[f'late_{name}_us']:.0f}" for name in ("p50", "p99", "max"))
                + " µs",
                f"{row['engine_cpu_share'] * 100:.0f} %",
            )
            for row in rows
        ],
    )


def _commit(rows: Sequence[Record]) -> str:
    return table(
        ("Epoch", "staged: median / max", "in force late by", "probes beside: p50 / p99 / max"),
        [
            (
                f"{row['route_changes']} route changes",
                f"{row['stage_ms_median']:.2f} / {row['stage_ms_max']:.2f} ms",
                f"{row['applied_ms_median']:.3f} / {row['applied_ms_max']:.3f} ms",
                " / ".join(f"{row[f'beside_{name}_us']:.1f}" for name in ("p50", "p99", "max"))
                + " µs",
            )
            for row in rows
        ],
    )


def _compiling(rows: Sequence[Record]) -> str:
    return table(("Compiler", "time"), [(row["what"], f"{row['seconds']:.3f} s") for row in rows])


def _sharing(document: Record) -> str:
    # Here, not at the top: bench.sharing runs experiments and brings this document up itself.
    from bench.sharing import SHARED, table_rows
    from tests.runs.stages import CLIENTS

    head = ("Mb/s: measured (model)", *CLIENTS, *(f"{link} used" for link in SHARED))
    title = "### Sharing: examples/sixclients.tdl"
    return f"{title}\n\n{table(head, table_rows(document['results']['sharing']))}"


_TABLES = {
    "throughput": _throughput,
    "delay": _delay,
    "rate": _rate,
    "paths": paths_report.tables,
    "scale": _scale,
    "commit": _commit,
    "compiling": _compiling,
}
# Results with a file of their own, in the document's order.
_SECTIONS: dict[str, Callable[[Record], str]] = {
    "routing": routing_report.section,
    "metadata": metadata_report.section,
    "control": control_report.section,
    "sharing-model": sharing_model_report.section,
    "tcal": tcal_report.section,
    "hosts": hosts_report.section,
    "soak": soak_report.section,
    "sharing": _sharing,
}

if __name__ == "__main__":
    update(RESULTS)
    sys.exit(0)
