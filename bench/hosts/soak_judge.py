"""What of a soak is judged and by which bound, and its tables. Input: bench.hosts.soak's row."""

from __future__ import annotations

from collections.abc import Sequence

from bench.tables import Record, table

# A leak of one small object a tick (40 a second, 56 bytes at least) is 1.3 MiB in the 10 minutes
# between the two quarters of a soak of 20.
MEMORY_BOUND_KIB = 1024  # growth of one process, median against median
SHARE_BOUND = 0.05
LATE_BOUND_MS = 1.0  # growth of the median lateness of steps


def _pair(values: Sequence[float]) -> str:
    return " → ".join(f"{value:g}" for value in values)


def _parts(rows: Sequence[Record]) -> str:
    row = rows[0]
    head = (f"{row['minutes']} minutes, {row['hosts']} hosts", "RSS KiB", "descriptors", "threads")
    columns = ("rss_kib", "descriptors", "threads")
    return table(
        head,
        [
            (name, *(_pair(part[column]) for column in columns))
            for name, part in row["parts"].items()
        ],
    )


def _others(rows: Sequence[Record]) -> str:
    row = rows[0]
    drift = max(abs(host["drift_ppb"] or 0) for host in row["clock"])
    errors = row["share_errors"]
    return table(
        ("Of the whole run", ""),
        [
            *((name, _pair(values)) for name, values in row["counts"].items()),
            ("steps, events, said late", f"{row['steps']}, {row['events']}, {row['said_late']}"),
            ("steps late by: median", f"{_pair(row['late_ms_median'])} ms"),
            ("steps late by: p99", f"{_pair(row['late_ms_p99'])} ms"),
            ("hosts apart at a step: p99", f"{row['spread_ms_p99']} ms"),
            ("clocks' drift", f"{drift} ppb at most"),
            ("shares off the model: median, worst minute", _errors(errors)),
        ],
    )


def _errors(errors: Sequence[float]) -> str:
    middle = sorted(errors)[len(errors) // 2]
    return f"{middle * 100:.1f} %, {max(errors) * 100:.1f} %"


TABLES = (_parts, _others)


def missed(rows: Sequence[Record]) -> list[str]:
    """What has grown or drifted beyond its bound."""
    return [text for row in rows for text in (*_grown(row), *_drifted(row))]


def _grown(row: Record) -> list[str]:
    found = []
    for name, part in row["parts"].items():
        grown = part["rss_kib"][1] - part["rss_kib"][0]
        if grown > MEMORY_BOUND_KIB:
            found.append(f"soak: {name} has grown by {grown} KiB")
        for what in ("descriptors", "threads"):
            if part[what][1] > part[what][0]:
                found.append(f"soak: {name} had {part[what][0]} {what}, then {part[what][1]}")
    for name, (before, after) in row["counts"].items():
        if after > before:
            found.append(f"soak: {before} {name}, then {after}")
    return found


def _drifted(row: Record) -> list[str]:
    found = []
    before, after = row["late_ms_median"]
    if after - before > LATE_BOUND_MS:
        found.append(f"soak: steps were {before} ms late, then {after} ms")
    bad = [minute for minute, error in enumerate(row["share_errors"]) if error > SHARE_BOUND]
    if bad:
        found.append(f"soak: shares off by more than 5 % in minutes {bad}")
    return found
