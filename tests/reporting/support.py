"""A recorded run with everything that a report tells of: expectations, failures, paths, samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.runtime import recorded

LAG = {"count": 1, "p50_ns": 1000, "p99_ns": 2000, "max_ns": 3000}


def expectation(**said: Any) -> dict[str, Any]:
    """As a summary has it: every key is there."""
    empty = dict.fromkeys(("figure", "threshold", "at_ns"))
    words = {"kind": "run", "file": "", "unit": "", "subject": "", "message": ""}
    return {"line": 1, "log": [], **empty, **words, **said}


EXPECTATIONS = [
    expectation(**one)
    for one in (
        {
            "text": "expect rtt a b below 50ms",
            "line": 7,
            "file": "exp.tdl",
            "kind": "rtt",
            "state": "failed",
            "message": "rtt was 61 ms at 4 s",
            "figure": 61_000_000,
            "threshold": 50_000_000,
            "unit": "ns",
            "at_ns": 4_000_000_000,
            "subject": "a.0 -> b.0",
            "log": [{"instance": "a.0", "at_ns": None, "line": "late <again> & again"}],
        },
        {"text": 'expect no log "panic"', "state": "passed", "message": "no line", "log": []},
        {"text": "expect run", "state": "not_measured", "message": "it was cut short"},
    )
]
FAILURES: list[dict[str, Any]] = [
    {"target": "a.0", "last_log_line": "boom", "status": 3, "signal": 0, "applied_ns": 10**9}
]
PATHS: list[dict[str, Any]] = [
    {
        "from": "a.0",
        "to": "b.0",
        "epoch": {"from_ns": 0, "to_ns": 10**9},
        "measure": "one-way",
        "planned": {"delay_ns": 2_000_000, "jitter_ns": 0, "loss_ppb": 0, "rate_bps": 10**8},
        "measured": {"probes": 10, "lost": 1, "delay_p50_ns": 2_030_000, "delay_p99_ns": 2_400_000},
    },
    {
        "from": "b.0",
        "to": "a.0",
        "epoch": {"from_ns": 0, "to_ns": 10**9},
        "measure": "one-way",
        "planned": None,
        "measured": None,
    },
]
PROBES: list[dict[str, Any]] = [
    {
        "kind": "header",
        "format": "tstorm-probes",
        "version": 1,
        "start_monotonic_ns": 5,
        "clock": "one",
        "measure": "one-way",
        "pairs": [["a.0", "b.0"]],
        "interval_ns": 10**8,
        "intervals_ns": [10**8],
        "of": 2,
    },
    {"at_ns": 10**9, "probes": [[0, 1000, 2_030_000], [0, 2000, None]]},
]
VERDICT: dict[str, Any] = {
    "state": "degraded",
    "reasons": [{"what": "path_late", "text": "the path a.0 to b.0 was late", "state": "degraded"}],
    "judged": [],
    "measured": {"pairs": 1, "of_pairs": 1, "probes": 10},
}


def summary() -> dict[str, Any]:
    lags = dict.fromkeys(("lag", "network_lag", "process_lag", "start_lag"), LAG)
    events = {**recorded.SUMMARY["events"], **lags}
    own = {"events": events, "failures": FAILURES, "expectations": EXPECTATIONS}
    return {**recorded.SUMMARY, **own, "verdict": VERDICT}


def certificate() -> dict[str, Any]:
    return {"format": "tstorm-certificate", "version": 1, "pairs": PATHS}


def put(run: Path, name: str, value: object) -> None:
    (run / name).write_text(json.dumps(value), encoding="utf-8")


def make(run: Path) -> Path:
    """The whole of it."""
    recorded.make(run)
    put(run, "summary.json", summary())
    put(run, "certificate.json", certificate())
    (run / "probes.jsonl").write_bytes(recorded.lines(PROBES))
    return run
