"""What became of each `when` of a run: how often it happened, what was done, and how fast.

Input: the records of events.jsonl, and what the driver has counted. The latency is from the moment
at which it was seen, and what `after` adds to that, to the first change that is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def sum_up(records: Iterable[Record], counted: Sequence[Record]) -> dict[str, Any]:
    """`fired`, `refused`, `beyond` (what is more than `at most`), the latencies, and each."""
    found = list(records)
    said = [one for one in found if one.get("kind") == "when"]
    fired = [one for one in said if "refused" not in one]
    beyond = [_beyond(one) for one in counted]
    return {
        "fired": len(fired),
        "refused": len(said) - len(fired),
        "beyond": sum(beyond),
        "each": [
            {
                **one,
                "beyond": more,
                "fired": sum(_place(each) == _place(one) for each in fired),
            }
            for one, more in zip(counted, beyond, strict=True)
        ],
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
    """For people: first what was not reacted to."""
    for one in found.get("each", ()):
        if one["beyond"]:
            yield (
                f"warning: line {one['line']}: this happened {one['seen']:,} times, and was reacted"
                f" to the first {one['most']:,} only (at most {one['most']})"
            )
    if found.get("refused"):
        yield f"warning: {found['refused']:,} reactions could not be done: see `when` in the events"


def figures(found: Record) -> str:
    """How fast it was; '' where nothing was."""
    lags = found.get("latency", {})
    if not lags.get("count"):
        return ""
    median, p99 = (f"{lags[name] / 1e6:.3g} ms" for name in ("p50_ns", "p99_ns"))
    return f"{found['fired']:,} reactions, in force {median} after what was seen (p99: {p99})"


def _beyond(one: Record) -> int:
    """A `when` that happens once has nothing beyond that."""
    return max(one["seen"] - one["most"], 0) if one["every"] else 0


def _place(one: Record) -> tuple[str, int]:
    return one.get("file", ""), one["line"]
