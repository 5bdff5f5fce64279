"""The packets of a run that kept them (`--packets`), for the diagram of who sent what to whom.

Output: at most MOST_PACKETS rows in order of sending, spread over SLICES equal parts of the run,
and of each part how many more there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.plan.reader import Plan
from runtime.page.page_events import Words
from runtime.results.sent_packets import PROBE, recorded_packets, thinned
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import PlanClock

MOST_PACKETS, SLICES = 20_000, 500


def record(
    directory: HeldDirectory,
    plan: Plan,
    clock: PlanClock,
    manifest: Mapping[str, Any],
    end_ns: int,
    notes: list[str],
) -> dict[str, Any] | None:
    """None where there is no such record. RunError for what is damaged."""
    start: object = manifest.get("start_unix_ns")
    found = recorded_packets(directory, plan, clock, start if type(start) is int else 0)
    if found is None:
        return None
    notes += found.told()
    begin_ns = clock.start_at_ns
    there = [one for one in found.packets if one.sent_ns <= end_ns]
    kept, left_out = thinned(there, MOST_PACKETS, begin_ns, end_ns, SLICES)
    if any(left_out):
        notes.append(f"of {len(there)} packets {len(kept)} are shown, spread over the run")
    causes, said = Words(), Words()
    causes.number("")
    rows = [
        [
            one.src,
            one.dst,
            one.sent_ns,
            one.end_ns - one.sent_ns,
            causes.number(one.cause),
            one.link,
            said.number(one.words),
            one.size,
            int(one.words == PROBE),
        ]
        for one in kept
    ]
    return {
        "rows": rows,
        "causes": causes.words(),
        "words": said.words(),
        "begin_ns": begin_ns,
        "step_ns": max((end_ns - begin_ns) // SLICES, 1),
        "left_out": left_out if any(left_out) else [],
    }
