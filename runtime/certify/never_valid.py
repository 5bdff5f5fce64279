"""Whether a plan can ever be VALID: judged of a run of it in which every probe comes as planned.

Such a run has the most figures that there can be. If the certificate measures no pair even so, the
plan is too short for its pairs, its jitter, its slow links or its changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.plan.reader import Plan
from runtime.certify.expected_delay import expected, ways
from runtime.certify.judge_paths import why_nothing
from runtime.certify.judged_probes import JudgedHeader, meet
from runtime.certify.planned_paths import Planned, find
from runtime.certify.probing_ends import ProbingEnds
from runtime.certify.traffic import Traffic
from runtime.options import REAL, VIRTUAL
from runtime.probing.chosen import Chosen, chosen
from runtime.schedule import Schedule

# Of what is larger nothing is said: it would take long to find, and is rare.
LONG_NS, MOST_PROBES = 600_000_000_000, 5_000
MOST_STATES = 30_000  # links times epochs: to choose pairs goes through all of them
_MEASURE = "let a program measure, and expect what it logs"
_LONGER = "make it longer, or its changes fewer"

Row = list[int | None]


def why_never(plan: Plan, schedule: Schedule) -> str:
    """Why no run of this comes out VALID, with what helps; '' if one can, or if it is not looked
    at. PlanError."""
    options = schedule.options
    states = len(plan.topology.links) * len(plan.epochs)
    if not options.probes or schedule.end_due_ns > LONG_NS or states > MOST_STATES:
        return ""
    why, helps = _lacking(plan, schedule)
    if not why:
        return ""
    which = "no run of this"
    if helps == _LONGER and options.time == REAL and options.on_this_machine:
        other = Schedule(plan, replace(options, time=VIRTUAL, engine_threads=0))
        if not _lacking(plan, other)[0]:
            which, helps = f"{which} in real time", f"{helps}, or run it with --time virtual"
    return f"{which} can be VALID, however good the machine is: {why}; {helps}"


def _lacking(plan: Plan, schedule: Schedule) -> tuple[str, str]:
    """Why nothing can be said of any pair that is probed, and what helps; '' if something can."""
    probes, options = chosen(plan, schedule), schedule.options
    if not probes.ways:
        helps = "give them links of a higher rate" if probes.not_probed else _MEASURE
        return "; ".join(probes.left_out(plan)), helps
    if sum(schedule.end_due_ns // one for one in probes.intervals_ns) > MOST_PROBES:
        return "", ""
    pairs = [(way.src, way.dst) for way in probes.ways]
    planned = Planned(plan, schedule, pairs, {})
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    header = JudgedHeader(probes.header(plan, 0).to_record(), numbers)
    lives = ProbingEnds((), numbers, schedule.end_due_ns, ended_well=True, both=probes.both)
    record: dict[str, list[Row]] = {"probes": [], "large": []}  # all arrive
    for kind, row in _perfect(header, planned, probes, schedule):
        record[kind].append(row)
    traffic = Traffic(len(numbers))
    draws = options.datapath == "kernel"
    met = meet(
        header, [{**record, "last": True}], planned, traffic, schedule.clock, lives, draws=draws
    )
    why, is_cut = why_nothing(header, met.visits, met.large, exact=options.time == VIRTUAL)
    return why, "raise latency=, or lower jitter=" if is_cut else _LONGER


def _perfect(
    header: JudgedHeader, planned: Planned, probes: Chosen, schedule: Schedule
) -> Iterator[tuple[str, Row]]:
    """Rows of probes.jsonl: each probe takes what is planned, nothing where jitter may make it
    less, and is lost where nothing passes."""
    small = len(probes.ways)
    for at_ns, number in probes.moments(0, schedule.end_due_ns):
        kind, pair = (
            ("probes", number) if number < small else ("large", probes.large[number - small])
        )
        stretches = planned.stretches[header.pairs[pair]]
        place = find(stretches, at_ns)
        crossed = ways(stretches[place], both=header.both) if place >= 0 else ()
        there = expected(crossed) if crossed else None
        delay_ns = None
        if there is not None and not there.loses_all:
            delay_ns = 0 if there.jitter_ns else there.delay_ns
        yield kind, [pair, schedule.clock.plan_time(at_ns), delay_ns]
