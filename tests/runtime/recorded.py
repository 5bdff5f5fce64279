"""A recorded run as it lies on disk, made by hand: for tests of who reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write

TDL = b'service a img=x exec="sleep 9"\nbridge s1\nlink a--s1 latency=1ms\nat 1s quit\n'

# What there is from the start: the run has no outcome yet.
BEGUN: dict[str, Any] = {
    "format": "thunderstorm-run",
    "version": 1,
    "run_id": "a",
    "experiment": "exp",
    "plan_digest": "0" * 64,
    "seed": 0,
    "options": {"pace": 1},
}
MANIFEST: dict[str, Any] = {
    "format": "thunderstorm-run",
    "version": 1,
    "run_id": "exp-20260301T120000Z",
    "experiment": "exp",
    "plan_digest": "0" * 64,
    "seed": 0,
    "started": "20260301T120000Z",
    "options": {"until_ns": None, "start_at_ns": 0, "pace": 1, "datapath": "auto", "hosts": 0},
    "machine": {"cpu": "x", "cores": 2, "kernel": "6"},
    "outcome": "completed",
    "message": "",
}

_LAG = {"count": 1, "p50_ns": 1, "p99_ns": 1, "max_ns": 1}
_LINK = {
    "link": "a.0->s1",
    "pkts": 1,
    "out_pkts": 1,
    "drop_queue": 0,
    "drop_loss": 0,
    "drop_down": 0,
    "backlog_bytes": 0,
}
_PAIR = {
    "src": "a.0",
    "dst": "a.0",
    "offered_pkts": 1,
    "delivered_pkts": 1,
    "drop_queue": 0,
    "drop_loss": 0,
    "drop_down": 0,
}
SUMMARY: dict[str, Any] = {
    "outcome": "completed",
    "message": "",
    "plan_digest": "0" * 64,
    "seed": 0,
    "events": {"applied": 1, "planned": 1, "by_kind": {"join": 1}, "lag": _LAG},
    "exits": [],
    "engine": {},
    "links": [_LINK],
    "pairs": [_PAIR],
}

EVENTS: list[dict[str, Any]] = [
    {
        "seq": 0,
        "kind": "join",
        "target": "a.0",
        "args": {},
        "line": 1,
        "planned_ns": 0,
        "due_ns": 0,
        "applied_ns": 9,
        "lag_ns": 9,
        "network_ns": 5,
        "started_ns": 7,
    },
    {"kind": "exit", "target": "a.0", "applied_ns": 10, "status": 1, "signal": 0, "asked": False},
    {"kind": "exit", "target": "a.0", "applied_ns": 11, "error": "No such file"},
    {
        "seq": 1,
        "kind": "quit",
        "target": "",
        "args": {"x_ns": 1},
        "line": 4,
        "planned_ns": 10**9,
        "due_ns": 10**9,
        "applied_ns": 10**9 + 1,
        "lag_ns": 1,
    },
]

SAMPLES: list[dict[str, Any]] = [
    {"columns": {"links": ["link", "pkts"], "pairs": ["src", "dst", "pkts"]}, "interval_ns": 1},
    {"at_ns": 1, "elapsed_ns": 1, "links": [[0, 1], [1, 1]], "pairs": [[0, 0, 3]]},
]


def lines(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in records)


def files() -> dict[str, bytes]:
    """All but the plan."""
    return {
        "manifest.json": json.dumps(MANIFEST, indent=2).encode() + b"\n",
        "summary.json": json.dumps(SUMMARY, indent=2).encode() + b"\n",
        "events.jsonl": lines(EVENTS),
        "samples.jsonl": lines(SAMPLES),
    }


def make(directory: Path) -> Path:
    """The whole of it, with a plan that runs."""
    directory.mkdir()
    for name, data in files().items():
        (directory / name).write_bytes(data)
    write(compile_source(TDL, filename="exp.tdl", seed=None), directory / "plan")
    return directory
