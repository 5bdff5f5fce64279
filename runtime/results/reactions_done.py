"""What became of each `when` of a run: how often it happened, what was done, and how fast.

Input: the records of events.jsonl, and what the driver has counted. The latency is from the moment
at which it was seen, and what `after` adds to that, to the first change that is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runtime import say

LATE_NS = 100_000_000  # this long after it was due it may be about something else
Record = Mapping[str, Any]


def sum_up(records: Iterable[Record], counted: Sequence[Record]) -> dict[str, Any]:
    """`fired`, `refused`, `beyond` (what is more than `at most`) and each; of these also how many
    came `late` (by LATE_NS), and the latest."""
    said = [one for one in records if one.get("kind") == "when"]
    each = [
        {**one, **_of([other for other in said if _place(other) == _place(one)], one)}
        for one in counted
    ]
    refused = sum("refused" in one for one in said)
    beyond = sum(one["beyond"] for one in each)
    return {"fired": len(said) - refused, "refused": refused, "beyond": beyond, "each": each}


def _of(said: Sequence[Record], counted: Record) -> dict[str, int]:
    fired = [one for one in said if "refused" not in one]
    late = [one["late_ns"] for one in fired if one.get("late_ns", 0) > LATE_NS]
    return {
        "beyond": _beyond(counted),
        "fired": len(fired),
        "refused": len(said) - len(fired),
        "late": len(late),
        "latest_ns": max(late, default=0),
    }


def latencies(records: Iterable[Record]) -> list[int]:
    """In ns, of those that have changed something at once."""
    found = list(records)
    first: dict[int, int] = {}
    for one in found:
        if one.get("origin") == "condition" and one.get("seq") is not None:
            at_ns = int(one.get("network_ns", one["applied_ns"]))
            first[one["action"]] = min(at_ns, first.get(one["action"], at_ns))
    fired = (one for one in found if one.get("kind") == "when" and "refused" not in one)
    return [
        first[one["action"]] - one["seen_ns"] - one["after_ns"]
        for one in fired
        if one["action"] in first
    ]


def told(found: Record) -> Iterable[str]:
    """For people: first what came late, then what was not reacted to."""
    for one in found.get("each", ()):
        line = f"warning: line {one['line']}"
        if one.get("late"):
            yield (
                f"{line}: {one['late']:,} reactions came late, by up to"
                f" {say.digits(one['latest_ns'] / 1e9)} s: planned events are too close together"
                " for something to come between, compiling takes long, or agents have to hear of it"
                " first (docs/live.md)"
            )
        if one["beyond"]:
            yield f"{line}: this happened {one['seen']:,} times, {_first_only(one)}"
        if one.get("cut"):
            yield (
                f"{line}: {one['cut']:,} lines had more than 64 KiB, and were not looked at to"
                " their end"
            )
    if found.get("refused"):
        yield f"warning: {found['refused']:,} reactions could not be done: see `when` in the events"


def _first_only(one: Record) -> str:
    most = one["most"]
    if not one.get("refused"):
        return f"and was reacted to the first {most:,} only (at most {most})"
    return (
        f"of which the first {most:,} count (at most {most}): {one['fired']:,} were reacted to, and"
        f" {one['refused']:,} could not be done"
    )


def figures(found: Record) -> str:
    """How fast it was; '' where nothing was."""
    lags = found.get("latency", {})
    if not lags.get("count"):
        return ""
    median, p99 = (f"{say.digits(lags[name] / 1e6)} ms" for name in ("p50_ns", "p99_ns"))
    return f"{found['fired']:,} reactions, in force {median} after what was seen (p99: {p99})"


def _beyond(one: Record) -> int:
    """A `when` that happens once has nothing beyond that."""
    return max(one["seen"] - one["most"], 0) if one["every"] else 0


def _place(one: Record) -> tuple[str, int]:
    return one.get("file", ""), one["line"]
