"""What happened in a run, by moments of its plan: events, lines of logs, packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from runtime.errors import RunError
from runtime.results.loglines import Merger
from runtime.results.sent_packets import PROBE, recorded_packets
from runtime.rundir.eventlog import read_events

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.results.sent_packets import SentPacket
    from runtime.rundir.rundir import RunDirectory
    from runtime.schedule import Schedule

EVENT, LINE, PACKET = "event", "line", "packet"
DRAWN = "drawn"  # an event of the plan, by the draw that chose it


class Happening(NamedTuple):
    """`what`: event | line | packet | drawn. A line was written after `from_ns`, and at `at_ns` at
    the latest."""

    at_ns: int
    what: str
    words: str
    from_ns: int

    def may_be_within(self, low_ns: int, high_ns: int) -> bool:
        return self.from_ns <= high_ns and self.at_ns >= low_ns


def of(
    run: RunDirectory, plan: Plan, schedule: Schedule, *, packets: bool = True
) -> list[Happening]:
    """By their moments. RunError, also for a run without its packets if these are asked for."""
    told = _packets(run, plan, schedule) if packets else ()
    return sorted([*_events(run, schedule), *_lines(run, schedule), *told])


def _events(run: RunDirectory, schedule: Schedule) -> Iterator[Happening]:
    for record in read_events(run):
        at_ns = record.get("applied_ns")
        if type(at_ns) is int:
            words = " ".join(str(record.get(key, "")) for key in ("target", "kind")).strip()
            yield _at(schedule.clock.plan_time(at_ns), EVENT, words)


def _lines(run: RunDirectory, schedule: Schedule) -> Iterator[Happening]:
    logs = Merger(run)
    for name in logs.instances():
        for line in logs.lines(name):
            if line.until_ns is not None and line.text:
                at_ns, before_ns = map(schedule.clock.plan_time, (line.until_ns, line.from_ns or 0))
                yield Happening(at_ns, LINE, f"{name}: {line.text}", before_ns)


def _packets(run: RunDirectory, plan: Plan, schedule: Schedule) -> Iterator[Happening]:
    """Those of probes are nothing to programs."""
    start: object = run.manifest().get("start_unix_ns")
    found = recorded_packets(run, plan, schedule.clock, start if type(start) is int else 0)
    if found is None:
        raise RunError(f"{run.path} has not kept its packets")
    for one in found.packets:
        if one.words != PROBE:
            yield _at(one.sent_ns, PACKET, f"{_way(one, plan)} sent, {one.words}")
            if one.dst >= 0:
                end = f"lost: {one.cause}" if one.cause else "arrived"
                yield _at(one.end_ns, PACKET, f"{_way(one, plan)} {end}, {one.words}")


def _at(at_ns: int, what: str, words: str) -> Happening:
    return Happening(at_ns, what, words, at_ns)


def _way(one: SentPacket, plan: Plan) -> str:
    nodes = plan.topology.nodes
    return f"{nodes[one.src].name} -> {nodes[one.dst].name if one.dst >= 0 else 'a group'}"
