"""What a run reached, as a set of texts: two runs that reached the same have the same ones.

- `state SERVICE WORD`, `state SERVICE WORD>WORD`, `states WORDS`: what programs call their state in
  lines with `state=WORD` or `state: WORD`; from which to which; and those of all instances at once.
- `heard A<B after C N`: A got a packet from B, the one before from C; N is how often, as a power of
  two. `lost A<B N`: packets from B to A were lost.
- `near TEXT N`: how far an expectation's figure is from its bound: N halvings of the bound.
- `figure NAME N`: how large the experiment's own figure was, as a power of two.

Input: the directory of a run. Packets of probes, and those without data, are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from runtime.results.loglines import Merger
from runtime.results.sent_packets import PROBE, recorded_packets

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.results.sent_packets import SentPacket
    from runtime.rundir.rundir import RunDirectory
    from runtime.schedule import Schedule

MOST_STATES = 500  # of one run; what a program calls its state may be a counter
SMALL_BYTES = 80  # an IP packet of TCP that carries nothing has at most that many
NEAREST = 10
_STATE = re.compile(r"\bstate[=:] ?([\w.+-]{1,40})")


def reached(run: RunDirectory, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    """Sorted. RunError for a directory that is damaged."""
    summary = run.summary()
    found = {
        *states(states_said(_lines(run))),
        *_heard(run, plan, schedule),
        *_near(summary.get("expectations", ()), plan),
        *_figures(summary.get("figures", ())),
    }
    return tuple(sorted(found))


def _lines(run: RunDirectory) -> Iterator[tuple[int, str, str]]:
    """When which instance wrote what."""
    logs = Merger(run)
    for name in logs.instances():
        for line in logs.lines(name):
            if line.until_ns is not None:
                yield line.until_ns, name, line.text


def states_said(lines: Iterable[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """When which instance called its state what, of lines with their moments and instances."""
    found = ((at_ns, name, _STATE.search(line)) for at_ns, name, line in lines)
    return sorted((at_ns, name, match[1]) for at_ns, name, match in found if match is not None)


def states(said: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    now: dict[str, str] = {}
    found: dict[str, None] = {}
    for _, name, state in said:
        service = name.rpartition(".")[0]
        before = now.get(name)
        found[f"state {service} {state}"] = None
        if before is not None and before != state:
            found[f"state {service} {before}>{state}"] = None
        now[name] = state
        found[f"states {' '.join(sorted(now.values()))}"] = None
        if len(found) >= MOST_STATES:
            break
    yield from found


def _heard(run: RunDirectory, plan: Plan, schedule: Schedule) -> Iterator[str]:
    start: object = run.manifest().get("start_unix_ns")
    packets = recorded_packets(run, plan, schedule.clock, start if type(start) is int else 0)
    if packets is None:
        return
    nodes = plan.topology.nodes
    inboxes: dict[str, list[tuple[int, str]]] = {}
    lost: Counter[tuple[str, str]] = Counter()
    for one in packets.packets:
        if one.dst < 0 or not _carries(one):
            continue
        src, dst = nodes[one.src].name, nodes[one.dst].name
        if one.cause:
            lost[dst, src] += 1
        else:
            inboxes.setdefault(dst, []).append((one.end_ns, src))
    yield from orders(inboxes, lost)


def orders(
    inboxes: Mapping[str, list[tuple[int, str]]], lost: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    """`inboxes`: of each instance when it got a packet from whom. `lost`: to and from whom."""
    for name, inbox in inboxes.items():
        counts = Counter(pairwise(src for _, src in sorted(inbox)))
        for (before, src), count in counts.items():
            yield f"heard {name}<{src} after {before} {count.bit_length()}"
    for (dst, src), count in lost.items():
        yield f"lost {dst}<{src} {count.bit_length()}"


def _carries(one: SentPacket) -> bool:
    """Something of a program: no probe, and no segment of TCP without data."""
    return one.words != PROBE and not (one.words.startswith("TCP") and one.size <= SMALL_BYTES)


def _near(rows: Iterable[Mapping[str, Any]], plan: Plan) -> Iterator[str]:
    expected = {one.text: one for one in plan.expectations}
    for row in rows:
        one, figure = expected.get(row["text"]), row.get("figure")
        if one is None or not one.op or not one.value or not isinstance(figure, int | float):
            continue
        apart = abs(figure - one.value) / one.value
        halvings = 0
        while apart < 1 and halvings < NEAREST:
            apart, halvings = apart * 2, halvings + 1
        yield f"near {one.text} {halvings}"


def _figures(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row.get("value") is not None:
            size = abs(float(row["value"]))
            sign = "-" if float(row["value"]) < 0 else ""
            yield f"figure {row['name']} {sign}{int(min(size, 1e18)).bit_length()}"
