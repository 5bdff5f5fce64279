"""What a run came to, from the files it wrote: summary.json. Integers only, names for numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.plan.reader import Plan
from runtime.records import EVENTS, SAMPLES, read_lines

PROCESS_KINDS = frozenset({"join", "leave", "crash"})


def percentile(values: Sequence[int], percent: int) -> int:
    """Nearest rank of sorted values; 0 without any."""
    if not values:
        return 0
    rank = -(-len(values) * percent // 100)
    return values[max(rank, 1) - 1]


def _lags(values: Iterable[int]) -> dict[str, int]:
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50_ns": percentile(ordered, 50),
        "p99_ns": percentile(ordered, 99),
        "max_ns": ordered[-1] if ordered else 0,
    }


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        return list(read_lines(path))
    except FileNotFoundError:
        return []  # the run ended before it began


def _counters(directory: Path) -> tuple[dict[int, list[int]], dict[tuple[int, int], list[int]]]:
    """The last counters of each link and pair: they are cumulative."""
    links: dict[int, list[int]] = {}
    pairs: dict[tuple[int, int], list[int]] = {}
    if not (directory / SAMPLES).exists():
        return links, pairs
    for record in read_lines(directory / SAMPLES):
        if "columns" in record:
            continue
        links.update((row[0], row) for row in record["links"])
        pairs.update(((row[0], row[1]), row) for row in record["pairs"])
    return links, pairs


def _columns(directory: Path) -> dict[str, list[str]]:
    if (directory / SAMPLES).exists():
        for record in read_lines(directory / SAMPLES):
            return dict(record["columns"])
    return {"links": [], "pairs": []}


def _events(records: list[dict[str, Any]]) -> dict[str, object]:
    done = [record for record in records if record.get("seq") is not None]
    kinds: dict[str, int] = {}
    for record in done:
        kinds[record["kind"]] = kinds.get(record["kind"], 0) + 1
    network = (r["network_ns"] - r["due_ns"] for r in done if "network_ns" in r)
    process = (r["lag_ns"] for r in done if r["kind"] in PROCESS_KINDS)
    return {
        "applied": len(done),
        "by_kind": kinds,
        "lag": _lags(record["lag_ns"] for record in done),
        "network_lag": _lags(network),
        "process_lag": _lags(process),
        "start_lag": _lags(r["started_ns"] - r["due_ns"] for r in done if "started_ns" in r),
    }


def _exits(records: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Programs that ended, or did not start, without the timeline asking for it."""
    found = [r for r in records if r["kind"] == "exit" and not r.get("asked")]
    keys = ("target", "applied_ns", "status", "signal", "error")
    return [{key: record[key] for key in keys if key in record} for record in found]


def summarise(
    directory: Path, plan: Plan, planned: int, final: Mapping[str, object]
) -> dict[str, object]:
    """`planned` events were to be applied; `final` is what the driver said at the end."""
    records = _records(directory / EVENTS)
    links, pairs = _counters(directory)
    columns = _columns(directory)
    topology = plan.topology
    facts = final.get("facts")
    totals = facts.get("totals", {}) if isinstance(facts, dict) else {}
    hosts = {"hosts": facts["counters"]} if isinstance(facts, dict) and "counters" in facts else {}
    return {
        **hosts,
        "outcome": final["outcome"],
        "message": final.get("message", ""),
        "plan_digest": plan.digest,
        "seed": plan.seed,
        "events": {"planned": planned, **_events(records)},
        "exits": _exits(records),
        "engine": {key: int(value) for key, value in totals.items() if value.isdecimal()},
        "links": [
            {**dict(zip(columns["links"], row, strict=True)), "link": topology.links[number].name}
            for number, row in sorted(links.items())
        ],
        "pairs": [
            {
                **dict(zip(columns["pairs"], row, strict=True)),
                "src": topology.nodes[ends[0]].name,
                "dst": topology.nodes[ends[1]].name,
            }
            for ends, row in sorted(pairs.items())
        ],
    }
