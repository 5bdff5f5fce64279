"""What lines of events.jsonl, and programs that failed, say to people, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.rundir.eventlog import how_ended


def seconds(value_ns: int) -> str:
    return f"{value_ns / 1e9:.3f}"


def details(record: Mapping[str, Any]) -> str:
    """Of a line of events.jsonl, in words, what its kind and target do not say."""
    if record.get("kind") == "stall":
        return f"{seconds(record['stalled_ns'])} s"
    if record.get("kind") == "do":
        return str(record.get("text", ""))
    if record.get("kind") == "when":
        return _reaction(record)
    if record.get("kind") == "overdue":
        return f"killed: not ended in {seconds(record['grace_ns'])} s"
    if record.get("kind") == "exit":
        if "error" in record:
            return str(record["error"])
        why = f": {record['reason']}" if "reason" in record else ""
        return how_ended(record) + (" (by the run)" if record.get("asked") else "") + why
    if record.get("kind") in ("setup", "ready", "not_ready", "quit", "unprobed"):
        return _beside_the_plan(record)
    return " ".join(f"{key}={value}" for key, value in sorted(record.get("args", {}).items()))


def _reaction(record: Mapping[str, Any]) -> str:
    """What was seen, and what came of it."""
    seen = f"line {record['line']}, {record['text']!r}"
    if "refused" in record:
        return f"{seen}: not done: {record['refused']}"
    return f"{seen}: action {record['action']}"


def _beside_the_plan(record: Mapping[str, Any]) -> str:
    """What setups, readiness and programs that end the run say."""
    took = f"after {seconds(record['took_ns'])} s" if "took_ns" in record else ""
    status = f"status {record['status']}" if "status" in record else ""
    words = (took, status, record.get("error", ""), record.get("reason", ""))
    return ": ".join(filter(None, words))


def how_failed(one: Mapping[str, Any]) -> str:
    """Of one of `failures` in summary.json."""
    right = f" (expect={one['expect']})" if one.get("expect") else ""
    if one.get("still_running"):
        return f"still running at the end{right}"
    if one.get("killed"):
        return f"killed from outside{right}"
    return f"could not start: {one['error']}" if "error" in one else how_ended(one) + right
