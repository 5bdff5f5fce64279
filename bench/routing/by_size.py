"""The tables of bench.routing.measure, for docs/performance.md and for whoever runs it.

Input: a result document. A figure of a library that was given fewer sources, and so extrapolated,
has a ≈ in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.tables import Record, table

_OVER = {"bridges": "bridges, then extended", "whole": "the whole graph"}


def _of(rows: Sequence[Record], part: str) -> list[Record]:
    return [row for row in rows if row["part"] == part]


def _sizes(rows: Sequence[Record]) -> list[int]:
    return sorted({row["size"] for row in rows if "size" in row})


def _growth(rows: Sequence[Record], what: str) -> str:
    found = [row["exponent"] for row in _of(rows, "growth") if row["what"] == what]
    return f"{found[0]:.2f}" if found else "–"


def _targets(rows: Sequence[Record]) -> str:
    found = [
        (row["what"], row["bound"], row["measured"], "yes" if row["met"] else "**no**")
        for row in _of(rows, "target")
    ]
    return table(("Target", "bound", "measured", "met"), found)


def seconds(value: float) -> str:
    """Three digits, in the unit that suits."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def _by_size(
    rows: Sequence[Record], sizes: Sequence[int], show: Callable[[Record], str]
) -> list[str]:
    """One cell per size; a dash where it was not measured."""
    cells = {row["size"]: show(row) for row in rows}
    return [cells.get(size, "–") for size in sizes]


def _tools(rows: Sequence[Record]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["tool"], row["over"]) for row in rows))


def _only(rows: Sequence[Record], tool: str, over: str) -> list[Record]:
    return [row for row in rows if (row["tool"], row["over"]) == (tool, over)]


def _pairs(rows: Sequence[Record]) -> str:
    sizes, all_pairs = _sizes(rows), _of(rows, "all-pairs")

    def shown(row: Record) -> str:
        sign = "≈ " if row["sources"] < row["of"] else ""
        return f"{sign}{seconds(row['all_wall_s'])}, {row['peak_mib']:.0f} MiB"

    made = []
    for tool, over in _tools(all_pairs):
        cells = _by_size(_only(all_pairs, tool, over), sizes, shown)
        growth = _growth(rows, f"all pairs: {tool}, {over}")
        made.append((tool, _OVER[over], *cells, growth))
    head = ("All pairs composed", "over", *(f"{size:,}" for size in sizes), "exponent")
    return table(head, made)


def _events(rows: Sequence[Record]) -> str:
    sizes, again = _sizes(rows), _of(rows, "recompute")
    growth = _growth(rows, "one event: tstorm")
    repaired = _by_size(_of(rows, "repair"), sizes, lambda row: seconds(row["mean_ms"] / 1e3))
    made = [("tstorm", "repaired, mean", *repaired, growth)]
    for name, what in (("median_ms", "repaired, median"), ("max_ms", "repaired, largest")):
        cells = _by_size(_of(rows, "repair"), sizes, _in_seconds(name))
        made.append(("tstorm", what, *cells, "–"))
    for tool, over in _tools(again):
        cells = _by_size(_only(again, tool, over), sizes, _in_seconds("mean_ms"))
        growth = _growth(rows, f"one event: {tool}, {over}")
        made.append((tool, f"anew, {'bridges' if over == 'bridges' else 'whole'}", *cells, growth))
    ratios = _of(rows, "ratio")
    for name, what in (
        ("ratio", "every epoch"),
        ("ratio_if_needed", "only where a length changes"),
    ):
        cells = _by_size(ratios, sizes, _ratio_of(name))
        made.append(("best library / tstorm", what, *cells, "–"))
    return table(("Routes after one event", "", *(f"{size:,}" for size in sizes), "exponent"), made)


def _in_seconds(name: str) -> Callable[[Record], str]:
    return lambda row: seconds(row[name] / 1e3)


def _ratio_of(name: str) -> Callable[[Record], str]:
    return lambda row: f"{row[name]:.0f} ×"


def _commands(rows: Sequence[Record]) -> str:
    sizes, compiled, asked = _sizes(rows), _of(rows, "compile"), _of(rows, "query")
    repaired = _of(rows, "repair")
    lines: list[tuple[str, list[Record], Callable[[Record], str], str]] = [
        ("compile: time", compiled, lambda row: seconds(row["wall_s"]), "tstorm compile: time"),
        ("compile: CPU time", compiled, lambda row: seconds(row["cpu_s"]), ""),
        (
            *("compile: peak memory", compiled),
            lambda row: f"{row['peak_mib']:.0f} MiB",
            "tstorm compile: peak memory",
        ),
        (
            *("plan", compiled),
            lambda row: f"{row['plan_bytes'] / 1e6:.1f} MB",
            "plan: size",
        ),
        (
            *("compile --no-manifests: time", compiled),
            lambda row: seconds(row["without_manifests"]["wall_s"]),
            "tstorm compile --no-manifests: time",
        ),
        ("states and routes of all epochs", repaired, lambda row: seconds(row["wall_s"]), ""),
        ("paths --at: time", asked, lambda row: seconds(row["wall_s"]), "tstorm paths: time"),
    ]
    made = [
        (what, *_by_size(found, sizes, show), _growth(rows, name))
        for what, found, show, name in lines
    ]
    return table(("tstorm", *(f"{size:,}" for size in sizes), "exponent"), made)


def _agreement(rows: Sequence[Record]) -> str:
    head = ("Agreement with networkx", "epochs", "pairs", "links of paths", "ties", "differences")
    return table(
        head,
        [
            (
                f"{row['size']:,} elements",
                row["epochs"],
                f"{row['pairs']:,}",
                f"{row['paths']:,}",
                row["tied"],
                len(row["differences"]),
            )
            for row in _of(rows, "agreement")
        ],
    )


TABLES = (_targets, _pairs, _events, _commands, _agreement)
