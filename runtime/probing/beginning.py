"""How the file of a run's probes begins, whoever sends them: a header with what was chosen, and a
notice of what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.plan.reader import Plan
from runtime.probing.leftout import left_out
from runtime.probing.record import Header
from runtime.probing.ways import Way
from runtime.rundir.records import LineFile


def begin(
    plan: Plan,
    file: LineFile,
    notice: Callable[[str], None],
    *,
    t0_ns: int,
    clock: str,
    measure: str,
    ways: Sequence[Way],
    intervals_ns: Sequence[int],
    of: int,
    not_probed: Sequence[Way],
) -> None:
    """`t0_ns`: time 0 (CLOCK_MONOTONIC). `ways`, probed every `intervals_ns`, are some of `of`."""
    header = Header(
        start_monotonic_ns=t0_ns,
        clock=clock,
        measure=measure,
        pairs=_names(plan, ways),
        interval_ns=min(intervals_ns, default=0),
        intervals_ns=tuple(intervals_ns),
        of=of,
        not_probed=_names(plan, not_probed),
    )
    file.append(header.to_record())
    for text in left_out(header):
        notice(text)


def _names(plan: Plan, ways: Sequence[Way]) -> tuple[tuple[str, str], ...]:
    nodes = plan.topology.nodes
    return tuple((nodes[way.src].name, nodes[way.dst].name) for way in ways)
