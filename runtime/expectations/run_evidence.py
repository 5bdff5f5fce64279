"""What the judges of expectations may look at: the plan and what its run has left.

Everything comes from a run directory, which may be anybody's; what has no right shape was refused
by its reader. Times of probes and counters are real ns since the start of the run, as in
runtime.certify; those of expectations are plan time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any

from compiler.plan.event_kinds import PROGRAM_ENDINGS
from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.reader import Plan
from runtime.certify.certificate import Evidence
from runtime.certify.judged_probes import JudgedProbe, Visit
from runtime.certify.planned_paths import Pair, PlannedStretch, PlannedWay
from runtime.expectations.finding import Covered
from runtime.expectations.kept_files import Unkept
from runtime.options import COMPLETED
from runtime.probing.probe_record import why_not
from runtime.results.loglines import LogRecord, Merger
from runtime.rundir import logmarks
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import EVENTS
from runtime.rundir.sample_reader import PAIRS, CounterGrowth, CounterSample, Key, read_samples
from runtime.schedule import PlanClock, Schedule

# Records of where a program's life begins or ends.
_OF_LIVES = frozenset(("join", "start", "exit", "killed", *PROGRAM_ENDINGS))


class RunEvidence:
    """`summary`: of the run, with its outcome and verdict. `unkept`: files of instances of which
    there is no copy, and why."""

    def __init__(
        self,
        directory: HeldDirectory,
        plan: Plan,
        schedule: Schedule,
        evidence: Evidence,
        summary: Mapping[str, Any],
        unkept: Unkept = MappingProxyType({}),
    ) -> None:
        self.unkept = unkept
        self.directory = directory
        self.schedule = schedule
        self.evidence = evidence
        self.verdict: Mapping[str, Any] = summary["verdict"]
        self.ended_well = summary["outcome"] == COMPLETED
        self._plan = plan

    # -- who, and when --------------------------------------------------------------------------

    @property
    def clock(self) -> PlanClock:
        return self.schedule.clock

    def number(self, expectation: PlannedExpectation) -> int:
        """Its position in the plan."""
        numbered = enumerate(self._plan.expectations)  # one in a loop is there more than once
        return next(number for number, one in numbered if one is expectation)

    def name(self, node: int) -> str:
        return self._plan.topology.nodes[node].name

    def pair_name(self, pair: Pair) -> str:
        return f"{self.name(pair[0])} -> {self.name(pair[1])}"

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Of events.jsonl, in order of completion."""
        return list(read_events(self.directory)) if self.directory.has(EVENTS) else []

    @cached_property
    def covered(self) -> Covered:
        from_ns = self.schedule.options.start_at_ns
        return Covered(from_ns, self._reached_ns(), self._plan.end_ns, self.ended_well)

    def _reached_ns(self) -> int:
        """When the run ended; of one that did not end as it should, what it has recorded last."""
        quits = [one for one in self.events if one.get("kind") == "quit" and "seq" not in one]
        if quits:
            return int(quits[0]["planned_ns"])
        if self.ended_well:
            return self.schedule.end_ns
        last = [int(one["applied_ns"]) for one in self.events if "applied_ns" in one]
        last += [visit.probes[-1].sent_ns for visit in self.evidence.met if visit.probes]
        last_ns = max((*last, self._last_sample_ns), default=0)
        reached_ns = self.clock.plan_time(max(last_ns, 0))
        return min(reached_ns, self.schedule.end_ns)

    # -- probes ---------------------------------------------------------------------------------

    @property
    def round_trips(self) -> bool:
        """Whether probes go there and back, so that one that is lost may be lost on either way."""
        header = self.evidence.header
        return header is not None and header.both

    def why_no_probes(self, pair: Pair) -> str:
        """Why nothing is known of this pair; '' if it was probed."""
        header = self.evidence.header
        if header is None:
            return why_not(self.schedule.options) or "there were no probes"
        if pair in self._visits:
            return ""
        name = self.pair_name(pair)
        if (self.name(pair[0]), self.name(pair[1])) in header.not_probed:
            return f"{name} is not probed: the rate of its links is too small for probes"
        if len(header.pairs) < header.of:
            return f"{name} is not probed: {len(header.pairs):,} of {header.of:,} pairs are"
        return f"{name} is not probed: it never has a path"

    def interval_ns(self, pair: Pair) -> int:
        """Between two probes of a pair, of the run's own time; 0 if that is not known."""
        header = self.evidence.header
        if header is None or pair not in header.pairs:
            return 0
        return header.interval_ns(header.pairs.index(pair))

    @cached_property
    def _visits(self) -> dict[Pair, list[Visit]]:
        header = self.evidence.header
        found: dict[Pair, list[Visit]] = defaultdict(list)
        if header is not None:
            for visit in self.evidence.met:
                found[header.pairs[visit.pair]].append(visit)
        return dict(found)

    def visits(self, pair: Pair) -> Sequence[Visit]:
        """Stretches in which nothing changed for the pair, with the probes under way in each."""
        return self._visits.get(pair, ())

    def probes(self, pair: Pair, from_ns: int, to_ns: int) -> list[tuple[Visit, JudgedProbe]]:
        """Sent within (plan time), in order; without those that were under way when something
        changed for the pair."""
        low, high = self.clock.due(from_ns), self.clock.due(to_ns)
        return [
            (visit, probe)
            for visit in self.visits(pair)
            if visit.stretch.end_ns > low and visit.stretch.begin_ns <= high
            for probe in visit.probes
            if low <= probe.sent_ns <= high
        ]

    # -- logs -----------------------------------------------------------------------------------

    @cached_property
    def logs(self) -> Merger:
        """RunError."""
        return Merger(self.directory)

    @cached_property
    def _logged(self) -> frozenset[str]:
        return frozenset(self.logs.instances())

    def why_log_incomplete(self, instance: str) -> str:
        """Why lines of it may be missing; '' if none is."""
        if self.schedule.options.on_this_machine:
            return self.logs.why_incomplete(instance)
        if instance not in self._logged:
            return f"there is no log of {instance}"
        told = self.evidence.logs_incomplete
        if told is None:
            return f"nobody has said that the log of {instance} was read to its end"
        why = told.get(instance, "")
        return f"lines may be missing in the log of {instance}: {why}" if why else ""

    def log(self, instance: str) -> Iterator[LogRecord]:
        """Lines of its program, in order; none if it has no log. RunError."""
        if instance in self._logged:
            for line in self.logs.lines(instance):
                if logmarks.parse(line.text) is None:
                    by_ns = line.torn_ns
                    whole = by_ns is not None and self._ended_by_itself(instance, by_ns)
                    yield line._replace(torn_ns=None) if whole else line

    def _ended_by_itself(self, instance: str, by_ns: int) -> bool:
        """Whether the program that was there last before then had ended, and neither was asked to
        nor by a signal: then it has written all that it wanted to."""
        last: Mapping[str, Any] = {}
        for record in self.events:
            kind, at_ns = record.get("kind"), record.get("applied_ns")
            if record.get("target") != instance or kind not in _OF_LIVES or at_ns is None:
                continue
            if last.get("applied_ns", at_ns) <= at_ns < by_ns:
                last = record
        return last.get("kind") == "exit" and last.get("signal") == 0 and not last.get("asked")

    # -- counters -------------------------------------------------------------------------------

    def stretches(self, pair: Pair) -> Sequence[PlannedStretch]:
        planned = self.evidence.planned
        return () if planned is None else planned.stretches.get(pair, ())

    def rate_bps(self, way: PlannedWay, from_ns: int, to_ns: int) -> int:
        """Of a path in a part of a stretch: links that follow traces have what those have then."""
        planned = self.evidence.planned
        known = None if planned is None else planned.traces
        if known is None or not any(state.trace for state in way.states):
            return way.totals.rate_bps
        begin, end = self.clock.plan_time(from_ns), self.clock.plan_time(to_ns)
        states = (known.means(state, begin, end) for state in way.states)
        return min((state.rate_bps for state in states if state.rate_bps), default=0)

    def delivered(self, pair: Pair) -> CounterGrowth:
        """Bytes, of a pair of an expectation."""
        return self._delivered[pair]

    @cached_property
    def _delivered(self) -> dict[Key, CounterGrowth]:
        pairs = chain.from_iterable(one.pairs for one in self._plan.expectations)
        found: dict[Key, CounterGrowth] = {pair: CounterGrowth() for pair in pairs}
        for sample in self._samples():
            for pair, row in sample.rows(PAIRS, found):
                count = row.get("delivered_bytes", 0)
                found[pair].add(sample.since_ns, sample.until_ns, count)
        return found

    @cached_property
    def _last_sample_ns(self) -> int:
        return max((sample.until_ns for sample in self._samples()), default=0)

    def _samples(self) -> Iterator[CounterSample]:
        return read_samples(self.directory)
