"""The certificate of a run: what was planned beside what was measured, and the verdict.

Input: the plan, and what a run has left: probes.jsonl, samples.jsonl, events.jsonl, and the
driver's last words. Whoever concludes the run has the judge look here first, then writes the
certificate with the verdict. docs/certificate.md has the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from compiler.plan.reader import Plan
from runtime import thresholds
from runtime.certify import interfaces, paths
from runtime.certify.lives import Lives
from runtime.certify.planned import Pair, Planned
from runtime.certify.probed import Header, Met, Visit, meet
from runtime.certify.silence import silent
from runtime.certify.traffic import Traffic
from runtime.errors import RunError
from runtime.foreign import REMEDY
from runtime.judge.machine import FIGURES, look_at_machine
from runtime.judge.verdict import Judge
from runtime.options import LOCAL, VIRTUAL, RunOptions
from runtime.probing.record import why_not
from runtime.rundir.directory import HeldDirectory
from runtime.rundir.eventlog import read_events
from runtime.rundir.records import read_lines
from runtime.rundir.runfiles import (
    CERTIFICATE_FORMAT,
    CERTIFICATE_VERSION,
    EVENTS,
    LOGS_INCOMPLETE,
    PROBES,
    SAMPLES,
)
from runtime.schedule import Schedule

MOST_PAIRS = 2000  # whose paths are followed
MOST_ROWS = 50_000
MOST_EVENTS = 100_000
_EVENT = ("seq", "kind", "target", "due_ns")


@dataclass(slots=True)
class Evidence:
    """What was measured, before there is a verdict on it."""

    pairs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    host: dict[str, Any] = field(default_factory=dict)
    not_measured: list[str] = field(default_factory=list)
    header: Header | None = None  # of probes, and those that met one network each
    met: Sequence[Visit] = ()
    planned: Planned | None = None  # of what is probed, expected or busy
    logs_incomplete: Mapping[str, str] | None = None  # by instance why; None: nobody has said


def gather(
    directory: HeldDirectory,
    plan: Plan,
    timeline: Schedule,
    facts: Mapping[str, Any],
    judge: Judge,
) -> Evidence:
    """Brings everything before the judge. RunError if what was recorded was damaged."""
    found = Evidence()
    records = list(read_events(directory)) if directory.has(EVENTS) else []
    _events(found, records)
    _machines(found, facts, judge, timeline.options)
    found.logs_incomplete = _logs_incomplete(facts)
    traffic = Traffic(len(plan.topology.nodes))
    if directory.has(SAMPLES):
        traffic.take(read_lines(directory, SAMPLES))
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    own = facts.get("interfaces")
    if isinstance(own, dict) and not timeline.options.allow_spoofing:
        interfaces.look_at_interfaces(judge, own, numbers, traffic)
    _Paths(directory, plan, timeline, records, facts, traffic, numbers, judge).look(found)
    return found


def _events(found: Evidence, records: Sequence[Mapping[str, Any]]) -> None:
    done = [record for record in records if record.get("seq") is not None]
    for record in done[:MOST_EVENTS]:
        applied = record.get("network_ns", record["applied_ns"])
        found.events.append({**{key: record[key] for key in _EVENT}, "applied_ns": applied})
    if len(done) > MOST_EVENTS:
        found.not_measured.append(f"of {len(done)} events the first {MOST_EVENTS} are listed here")


def _logs_incomplete(facts: Mapping[str, Any]) -> dict[str, str] | None:
    told = facts.get(LOGS_INCOMPLETE)
    if not isinstance(told, dict):
        return None
    return {str(name): str(why) for name, why in told.items()}


def _machines(found: Evidence, facts: Mapping[str, Any], judge: Judge, options: RunOptions) -> None:
    """The driver's machine, and those of agents: local hosts have their clocks only, since they
    share the rest."""
    if options.time == VIRTUAL:
        found.not_measured.append("the machine: it has no effect in virtual time")
        return
    mine = facts.get("machine")
    if not isinstance(mine, dict) or not mine:
        found.not_measured.append("the machine: the run was too short, or ended without a word")
    else:
        found.host = {key: value for key, value in mine.items() if key != "worst"}
        look_at_machine(judge, "the machine", mine)
    hosts = {}
    for host in facts.get("counters") or ():
        told = host.get("machine")
        if not isinstance(told, dict) or not told:
            continue
        worst = told.get("worst")
        worst = worst if isinstance(worst, dict) else {}
        kept = ("clock_step",) if options.backend == LOCAL else FIGURES
        look_at_machine(judge, host["name"], {"worst": {k: worst.get(k) for k in kept}})
        hosts[host["name"]] = {key: value for key, value in told.items() if key != "worst"}
    if hosts:
        found.host["hosts"] = hosts


@dataclass(frozen=True, slots=True)
class _Paths:
    """What packets met between pairs."""

    directory: HeldDirectory
    plan: Plan
    timeline: Schedule
    records: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]
    traffic: Traffic
    numbers: Mapping[str, int]
    judge: Judge

    def look(self, found: Evidence) -> None:
        lines = self._lines()
        first = next(lines, None)
        if first is not None and first.get("kind") != "header":
            raise RunError(f"{PROBES} does not begin with its header", REMEDY)
        header = None if first is None else Header(first, self.numbers)
        planned = self._planned(header, found)
        if planned is None:
            self.judge.unmeasured = "there is no run to measure"
            return
        found.header, found.planned = header, planned
        self.traffic.spread(planned)
        nodes = self.plan.topology.nodes
        paths.judge_rates(self.judge, lambda node: nodes[node].name, planned, self.traffic)
        if header is None:
            why = why_not(self.timeline.options) or "there were no probes"
            self.judge.unmeasured = why
            found.not_measured.append(f"delay, jitter and loss of all pairs: {why}")
            return
        clock, lives = self.timeline.clock, self._lives(header)
        told = meet(header, _reports(lines), planned, self.traffic, clock, lives)
        found.met = met = told.visits
        self._judge(header, met, found)
        self._look_for_silence(header, planned, told, lives)
        rows = paths.rows(header, met, self.traffic, clock)
        found.pairs = list(islice(rows, MOST_ROWS))
        if len(met) > MOST_ROWS:
            text = f"of {len(met)} epochs of pairs the first {MOST_ROWS} are listed here"
            found.not_measured.append(text)

    def _lives(self, header: Header) -> Lives:
        done = [one for one in self.records if "seq" in one or one.get("kind") == "quit"]
        last = [int(one["applied_ns"]) for one in done if one.get("applied_ns") is not None]
        reached_ns = max((*last, self.traffic.last_ns), default=0)
        return Lives(
            self.records,
            self.numbers,
            min(reached_ns, self.timeline.end_due_ns),
            ended_well=bool(self.facts),
            both=header.both,
        )

    def _look_for_silence(self, header: Header, planned: Planned, told: Met, lives: Lives) -> None:
        """Whether probing ended before the run did, or had holes."""
        stretches = [planned.stretches[pair] for pair in header.pairs]
        found = silent(header, stretches, told.sent_ns, lives)
        if found:
            first = min(found, key=lambda one: (one.since_ns, one.pair))
            self.judge.miss(
                "probes",
                f"{len(found)} of {len(header.pairs)} pairs were not probed all the time, first"
                f" {header.name(first.pair)} from {first.since_ns / 1e9:.3f} s on: {first.told} of"
                f" {first.due} probes are known, and of the rest nobody knows what packets met",
            )

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.directory.has(PROBES):
            yield from read_lines(self.directory, PROBES)

    def _planned(self, header: Header | None, found: Evidence) -> Planned | None:
        if not self.records:
            return None
        wanted = list(dict.fromkeys(header.pairs if header else ()))
        expected = dict.fromkeys(pair for one in self.plan.expectations for pair in one.pairs)
        known = frozenset(wanted)
        more = [pair for pair in expected if pair not in known]
        wanted += more[: max(MOST_PAIRS - len(wanted), 0)]
        busy = sorted(self.traffic.pairs - set(wanted))
        nodes = range(len(self.plan.topology.nodes))
        busy = [pair for pair in busy if self._is_pair(pair, nodes)]
        room = max(MOST_PAIRS - len(wanted), 0)
        if len(busy) > room:
            text = f"rates and loads of {len(busy) - room} pairs: {MOST_PAIRS} are followed"
            found.not_measured.append(text)
        pairs: list[Pair] = wanted + busy[:room]
        planned = Planned(self.plan, self.timeline, pairs, self._moments())
        if not planned.whole:
            found.not_measured.append("the end of the run: too much changes for its pairs")
        return planned

    def _is_pair(self, pair: Pair, nodes: range) -> bool:
        whole = self.plan.topology.nodes
        return pair[0] != pair[1] and all(
            node in nodes and whole[node].service >= 0 for node in pair
        )

    def _moments(self) -> dict[int, int]:
        """When each step was in force, as far as its events tell: on the last host, also one that
        was lost then and did it when it was back (`late`)."""
        steps = self.timeline.steps
        number = {event.seq: at for at, step in enumerate(steps) for event in step.events}
        found: dict[int, int] = {}
        for record in self.records:
            late = record.get("kind") == "late"
            at = record.get("step") if late else number.get(record.get("seq", -1))
            moment_ns = record.get("applied_ns" if late else "network_ns")
            if type(at) is int and 0 <= at < len(steps) and type(moment_ns) is int:
                found[at] = max(found.get(at, steps[at].due_ns), moment_ns)
        return found

    def _judge(self, header: Header, met: Sequence[Visit], found: Evidence) -> None:
        coverage = paths.judge_paths(self.judge, header, met)
        whole = len(header.pairs)
        if not header.comparable:
            self.judge.unmeasured = "one-way delays between clocks that are not the same"
        elif not coverage.pairs:
            self.judge.unmeasured = f"no pair had enough probes (it takes {coverage.needed})"
        else:
            counts = {
                "pairs": coverage.pairs,
                "of_pairs": max(whole, header.of),
                "probes": coverage.probes,
            }
            self.judge.measured = counts
        if whole < header.of:
            text = f"{header.of - whole} of {header.of} pairs: they were not probed"
            found.not_measured.append(text)
        if coverage.pairs < whole:
            less = whole - coverage.pairs
            text = f"delays of {less} of {whole} pairs: too few probes ({coverage.words})"
            found.not_measured.append(text)


def _reports(lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in lines:
        if "probes" in record:
            yield record


def certificate(
    evidence: Evidence,
    verdict: Mapping[str, Any],
    summary: Mapping[str, Any],
    manifest: Mapping[str, Any],
    options: RunOptions,
) -> dict[str, Any]:
    """What certificate.json has."""
    machine = manifest.get("machine")
    settings = machine.get("network", {}) if isinstance(machine, dict) else {}
    return {
        "format": CERTIFICATE_FORMAT,
        "version": CERTIFICATE_VERSION,
        "verdict": dict(verdict),
        "pairs": evidence.pairs,
        "events": evidence.events,
        "host": evidence.host,
        "engine": summary.get("engine", {}),
        "settings": settings,
        "stacks": summary.get("stacks", {}),
        "thresholds": thresholds.in_force(options.thresholds),
        "not_measured": evidence.not_measured,
    }
