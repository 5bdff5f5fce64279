"""What stacks.jsonl comes to, for the summary and for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.stacks.counters import BOUNDARY, DROPS, ECHOED, MACHINE, TAKEN
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


def line(summary: Mapping[str, Any]) -> str:
    """For people: who lost packets in a stack of its own, or between that and the network; '' if
    nobody did."""
    stacks = summary.get("stacks", {})
    own, between = _parts(stacks, DROPS), _parts(stacks, BOUNDARY)
    backlog = summary.get("softnet", {}).get("SoftnetDropped", 0)
    if backlog:
        own.append(f"this machine SoftnetDropped {backlog:,}: {MACHINE['SoftnetDropped']}")
    told = (
        ("dropped by instances' own stacks, not by the network", own),
        ("lost between instances' stacks and the network's links", between),
    )
    found = [f"{text}: {'; '.join(parts)}" for text, parts in told if parts]
    links = f"the network dropped {_network(summary):,} packets"
    return "; ".join([*found, links]) if found else ""


def _parts(stacks: Mapping[str, Mapping[str, int]], meanings: Mapping[str, str]) -> list[str]:
    """The worst instances, with the counters that are among these."""
    found = {
        name: {key: value for key, value in _own(counters).items() if key in meanings and value}
        for name, counters in stacks.items()
    }
    worst = sorted((-sum(one.values()), name) for name, one in found.items() if one)
    parts = [f"{name} {_listed(found[name], meanings)}" for _, name in worst[:SHOWN]]
    if len(worst) > SHOWN:
        parts[-1] += f"; {len(worst) - SHOWN} more instances in summary.json"
    return parts


def _own(counters: Mapping[str, int]) -> dict[str, int]:
    """Without what says again that eth0 was not rid of a packet."""
    taken = counters.get(TAKEN, 0)
    return {key: n for key, n in counters.items() if key not in ECHOED or n > taken}


def _listed(counters: Mapping[str, int], meanings: Mapping[str, str]) -> str:
    most = sorted(counters.items(), key=lambda item: (-item[1], item[0]))
    more = ", …" if len(most) > SHOWN else ""
    return ", ".join(f"{name} {value:,} ({meanings[name]})" for name, value in most[:SHOWN]) + more


def _network(summary: Mapping[str, Any]) -> int:
    """What links dropped, or queues of pairs where links are nowhere counted."""
    rows = summary.get("links") or summary.get("pairs") or ()
    return sum(row.get(key, 0) for row in rows for key in ("drop_queue", "drop_loss", "drop_down"))
