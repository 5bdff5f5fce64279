"""What was lost beside the plan by what carries packets: engines, and the devices around them.

Input: the driver's last words, and what instances' stacks have counted
(runtime.stacks.stack_summary). No clock: these counters are read at the end, `lost` of the words
before anything of the run is ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.plan.packet_class import of_some_packets
from compiler.plan.properties import BY_FIELD
from compiler.plan.reader import Plan
from runtime.judge.verdict import Judge
from runtime.stacks.counters import TAKEN

CAUSES: Mapping[str, str] = {  # see docs/pktd.md, Counters
    "drop_nobuf": "the engine had no memory left for them",
    "drop_input": "they came faster than the engine read them, or while their device went down",
    "drop_write": "the device at which they were due refused them: it was down, gone or full",
    "drop_device": "a device between the hosts had no room for them",
    TAKEN: "eth0 was given them, and the device that carries them on did not take them",
}
# Counters of engines, and the property of links that makes them count.
IMPAIRMENTS: Mapping[str, str] = {
    "duplicated": "duplicate_ppb",
    "corrupted": "corrupt_ppb",
    "reordered": "reorder_ppb",
    "rejected": "reject_ppb",
}
MOST_NAMED = 3  # instances


def look_at_drops(
    judge: Judge,
    facts: Mapping[str, Any],
    stacks: Mapping[str, Mapping[str, int]],
    offered: int,
) -> None:
    """`stacks`: counters by instance; `offered`: packets of all pairs, as samples have counted
    them. The kernel's datapath counts no others (`rx`)."""
    totals = {**facts.get("totals", {}), **facts.get("lost", {})}
    counts = {name: int(totals[name]) for name in CAUSES if str(totals.get(name, "")).isdecimal()}
    found = {name: one[TAKEN] for name, one in stacks.items() if one.get(TAKEN)}
    if found and facts.get("ports") != ["tap"]:  # those the engine has counted: drop_input
        counts[TAKEN] = sum(found.values())
    packets = max(int(totals.get("rx", 0)), offered)
    for name, count in counts.items():
        who = f" of {', '.join(sorted(found)[:MOST_NAMED])}" if name == TAKEN else ""
        text = f"{count:,} packets{who} were lost beside the plan ({name}): {CAUSES[name]}"
        judge.measure("drops", name, count * 10**9 // max(packets + count, 1), None, text)


def look_at_impairments(judge: Judge, facts: Mapping[str, Any], plan: Plan) -> None:
    """Packets that were copied, damaged, reordered or refused where no link ever has that."""
    totals = facts.get("totals", {})
    for name, field in IMPAIRMENTS.items():
        count = int(totals[name]) if str(totals.get(name, "")).isdecimal() else 0
        if count and not _is_planned(plan, field):
            text = f"{count:,} packets were {name} by links, and none of the plan does that"
            judge.measure("drops", name, 10**9, None, text, invalid=True)


def _is_planned(plan: Plan, field: str) -> bool:
    declared = any(getattr(link.state, field) for link in plan.topology.links)
    return (
        declared
        or any(event.args.get(field) for event in plan.events)
        or BY_FIELD[field].word in of_some_packets(plan)
    )
