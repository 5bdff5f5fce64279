"""What stacks.jsonl comes to, for the summary and for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.stacks.counters import DROPS, MACHINE
from runtime.stacks.watch import MACHINE as WHOLE

SHOWN = 3  # instances, and counters of each, in a line

Sums = dict[str, dict[str, int]]


def sum_up(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """`stacks`: by instance and counter; `softnet`: of the machine. Neither where nothing moved."""
    sums: Sums = {}
    for record in records:
        if record.get("kind") == "header":
            continue
        found = sums.setdefault(record["instance"], {})
        for name, value in record["counters"].items():
            found[name] = found.get(name, 0) + value
    machine = sums.pop(WHOLE, {})
    stacks = {name: dict(sorted(counters.items())) for name, counters in sorted(sums.items())}
    return {
        **({"stacks": stacks} if stacks else {}),
        **({"softnet": dict(sorted(machine.items()))} if machine else {}),
    }


def dropped(counters: Mapping[str, int]) -> dict[str, int]:
    """Those of an instance's counters that say of packets that they were dropped."""
    return {name: value for name, value in counters.items() if name in DROPS and value}


def line(summary: Mapping[str, Any]) -> str:
    """For people: who dropped packets in a stack of its own; '' if nobody did."""
    found = {name: dropped(one) for name, one in summary.get("stacks", {}).items()}
    worst = sorted((-sum(one.values()), name) for name, one in found.items() if one)
    parts = [f"{name} {_listed(found[name])}" for _, name in worst[:SHOWN]]
    backlog = summary.get("softnet", {}).get("SoftnetDropped", 0)
    if backlog:
        parts.append(f"this machine SoftnetDropped {backlog:,}: {MACHINE['SoftnetDropped']}")
    if not parts:
        return ""
    more = f"; {len(worst) - SHOWN} more instances in summary.json" if len(worst) > SHOWN else ""
    network = f"the network dropped {_network(summary):,} packets"
    return (
        f"dropped by instances' own stacks, not by the network: {'; '.join(parts)}{more}; {network}"
    )


def _listed(counters: Mapping[str, int]) -> str:
    most = sorted(counters.items(), key=lambda item: (-item[1], item[0]))
    more = ", …" if len(most) > SHOWN else ""
    return ", ".join(f"{name} {value:,} ({DROPS[name]})" for name, value in most[:SHOWN]) + more


def _network(summary: Mapping[str, Any]) -> int:
    """What links dropped, or queues of pairs where links are nowhere counted."""
    rows = summary.get("links") or summary.get("pairs") or ()
    return sum(row.get(key, 0) for row in rows for key in ("drop_queue", "drop_loss", "drop_down"))
