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

from compiler.plan.packet_class import parse
from compiler.plan.parts.unemulated import lans_of_the_kernel
from compiler.plan.reader import Plan
from runtime import say, thresholds
from runtime.certify import interfaces, judge_paths
from runtime.certify.coverage import BUSY_BYTES, Coverage, blind
from runtime.certify.judged_probes import (
    JudgedHeader,
    Met,
    Visit,
    meet,
)
from runtime.certify.planned_paths import Pair, Planned
from runtime.certify.probing_ends import ProbingEnds
from runtime.certify.silence import PairCoverage, looked_at, part
from runtime.certify.traffic import Traffic
from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.judge.machine_load import FIGURES, look_at_machine
from runtime.judge.verdict import Judge
from runtime.options import VIRTUAL, RunOptions
from runtime.probing.probe_intervals import LARGE_BYTES
from runtime.probing.probe_record import why_not
from runtime.probing.ways import Ways
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
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
MOST_CLASSES = 3  # of packets, that are named
_EVENT = ("seq", "kind", "target", "due_ns")


@dataclass(slots=True)
class Evidence:
    """What was measured, before there is a verdict on it."""

    pairs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    host: dict[str, Any] = field(default_factory=dict)
    not_measured: list[str] = field(default_factory=list)
    header: JudgedHeader | None = None  # of probes, and those that met one network each
    met: Sequence[Visit] = ()
    planned: Planned | None = None  # of what is probed, expected or busy
    logs_incomplete: Mapping[str, str] | None = None  # by instance why; None: nobody has said


def gather(
    directory: HeldDirectory,
    plan: Plan,
    schedule: Schedule,
    facts: Mapping[str, Any],
    judge: Judge,
) -> Evidence:
    """Brings everything before the judge. RunError if what was recorded was damaged."""
    found = Evidence()
    records = list(read_events(directory)) if directory.has(EVENTS) else []
    _events(found, records)
    _machines(found, facts, judge, schedule.options)
    found.logs_incomplete = _logs_incomplete(facts)
    traffic = Traffic(len(plan.topology.nodes))
    if directory.has(SAMPLES):
        traffic.take(read_lines(directory, SAMPLES))
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    own = facts.get("interfaces")
    if isinstance(own, dict) and not schedule.options.allow_spoofing:
        totals = facts.get("totals", {})
        interfaces.look_at_interfaces(judge, own, numbers, traffic, totals)
    _unprobed(found, judge, plan, schedule)
    _Paths(directory, plan, schedule, records, facts, traffic, numbers, judge).look(found)
    return found


def _events(found: Evidence, records: Sequence[Mapping[str, Any]]) -> None:
    done = [record for record in records if record.get("seq") is not None]
    for record in done[:MOST_EVENTS]:
        applied = record.get("network_ns", record["applied_ns"])
        found.events.append({**{key: record[key] for key in _EVENT}, "applied_ns": applied})
    if len(done) > MOST_EVENTS:
        found.not_measured.append(f"of {len(done)} events the first {MOST_EVENTS} are listed here")


def _unprobed(found: Evidence, judge: Judge, plan: Plan, schedule: Schedule) -> None:
    """Probes are of no class that an `only=` makes, and go over no lan of the kernel's."""
    unlike: list[str] = []
    classes = sorted({parse(state.only).match for state in schedule.link_states() if state.only})
    if classes:
        some = ", ".join(f"only={match:.60}" for match in classes[:MOST_CLASSES])
        more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
        unlike.append(f"what links do to {some}{more}: probes are none of these packets")
    past = lans_of_the_kernel(plan.topology)
    if past:
        unlike.append(f"{past}, which is not emulated")
    judge.unprobed = "; ".join(unlike)
    found.not_measured += unlike


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
        kept = ("clock_step",) if options.on_this_machine else FIGURES
        look_at_machine(judge, host["name"], {"worst": {k: worst.get(k) for k in kept}})
        hosts[host["name"]] = {key: value for key, value in told.items() if key != "worst"}
    if hosts:
        found.host["hosts"] = hosts


@dataclass(frozen=True, slots=True)
class _Paths:
    """What packets met between pairs."""

    directory: HeldDirectory
    plan: Plan
    schedule: Schedule
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
        header = None if first is None else JudgedHeader(first, self.numbers)
        planned = self._planned(header, found)
        if planned is None:
            self.judge.unmeasured = "there is no run to measure"
            return
        found.header, found.planned = header, planned
        self.traffic.spread(planned)
        nodes = self.plan.topology.nodes
        judge_paths.judge_rates(self.judge, lambda node: nodes[node].name, planned, self.traffic)
        if header is None:
            why = why_not(self.schedule.options) or "there were no probes"
            self.judge.unmeasured = why
            found.not_measured.append(f"delay, jitter and loss of all pairs: {why}")
            return
        clock, lives = self.schedule.clock, self._lives(header)
        draws = self.facts.get("datapath", self.schedule.options.datapath) == "kernel"
        told = meet(header, _reports(lines), planned, self.traffic, clock, lives, draws=draws)
        found.met = met = told.visits
        self._judge(header, told, found)
        self._look_for_silence(header, planned, told, lives, found)
        rows = judge_paths.rows(header, met, self.traffic, clock)
        found.pairs = list(islice(rows, MOST_ROWS))
        if len(met) > MOST_ROWS:
            text = f"of {len(met)} epochs of pairs the first {MOST_ROWS} are listed here"
            found.not_measured.append(text)

    def _lives(self, header: JudgedHeader) -> ProbingEnds:
        done = [one for one in self.records if "seq" in one or one.get("kind") == "quit"]
        last = [int(one["applied_ns"]) for one in done if one.get("applied_ns") is not None]
        reached_ns = max((*last, self.traffic.last_ns), default=0)
        return ProbingEnds(
            self.records,
            self.numbers,
            min(reached_ns, self.schedule.end_due_ns),
            ended_well=bool(self.facts),
            both=header.both,
        )

    def _look_for_silence(
        self, header: JudgedHeader, planned: Planned, told: Met, lives: ProbingEnds, found: Evidence
    ) -> None:
        """Whether probing ended before the run did, or had holes: they are named, and much is
        judged."""
        stretches = [planned.stretches[pair] for pair in header.pairs]
        looked = looked_at(header, stretches, told, lives)
        if not looked:
            return
        found.not_measured += _holes(header, looked)
        bound = self.judge.threshold("unseen")
        whole = part(sum(min(one.told, one.due) for one in looked), sum(one.due for one in looked))
        worst = max(looked, key=lambda one: one.unseen_ppm)
        dark = [one for one in looked if one.has_long or one.unseen_ppm > bound]
        first = min(dark or [worst], key=_since)
        text = (
            f"{len(dark)} of {len(header.pairs)} pairs were not probed all the time, first"
            f" {header.name(first.pair)} from {_since(first)[0] / 1e9:.3f} s on: {first.told} of"
            f" {first.due} probes are known, and of the rest nobody knows what packets met"
        )
        if whole > bound and not dark:
            text = f"{say.digits(whole / 1e4)} % of the probes of all pairs are missing"
        self.judge.measure("unseen", "probes", max(whole, worst.unseen_ppm), None, text)
        if dark and max(whole, worst.unseen_ppm) <= bound:
            self.judge.miss("probes", text)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.directory.has(PROBES):
            yield from read_lines(self.directory, PROBES)

    def _planned(self, header: JudgedHeader | None, found: Evidence) -> Planned | None:
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
        planned = Planned(self.plan, self.schedule, pairs, self._moments())
        if not planned.whole:
            self._cannot_follow(planned, found)
        return planned

    def _cannot_follow(self, planned: Planned, found: Evidence) -> None:
        since_ns, end_ns = planned.followed_ns, self.schedule.end_due_ns
        text = f"the run from {since_ns / 1e9:.3f} s on: too much changes for its pairs"
        found.not_measured.append(text)
        figure = (end_ns - since_ns) * 10**6 // max(end_ns, 1)
        text = f"nobody has judged {text}"
        self.judge.measure("unseen", "the end of the run", figure, since_ns, text)

    def _is_pair(self, pair: Pair, nodes: range) -> bool:
        whole = self.plan.topology.nodes
        return pair[0] != pair[1] and all(
            node in nodes and whole[node].service >= 0 for node in pair
        )

    def _moments(self) -> dict[int, int]:
        """When each step was in force, as far as its events tell: on the last host, also one that
        was lost then and did it when it was back (`late`)."""
        steps = self.schedule.steps
        number = {event.seq: at for at, step in enumerate(steps) for event in step.events}
        found: dict[int, int] = {}
        for record in self.records:
            late = record.get("kind") == "late"
            at = record.get("step") if late else number.get(record.get("seq", -1))
            moment_ns = record.get("applied_ns" if late else "network_ns")
            if type(at) is int and 0 <= at < len(steps) and type(moment_ns) is int:
                found[at] = max(found.get(at, steps[at].due_ns), moment_ns)
        return found

    def _judge(self, header: JudgedHeader, told: Met, found: Evidence) -> None:
        met = told.visits
        coverage = judge_paths.judge_paths(self.judge, header, met, told.large)
        whole = len(header.pairs)
        aside = self._aside(header, coverage, found)
        if len(header.large) < whole:
            less = whole - len(header.large)
            text = f"large packets: {less} of {whole} pairs have no probes of {LARGE_BYTES} bytes"
            found.not_measured.append(text)
        if not header.comparable:
            self.judge.unmeasured = "one-way delays between clocks that are not the same"
        elif not coverage.pairs:
            why = coverage.words(header, 1) or "there was none"
            self.judge.unmeasured = f"no pair had enough probes: {why}"
        elif (
            unseen := blind(header, coverage, told, self.traffic) or self._unprobed(header) or aside
        ):
            self.judge.unmeasured = unseen
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
            text = f"delays of {less} of {whole} pairs ({coverage.words(header)})"
            found.not_measured.append(text)

    def _unprobed(self, header: JudgedHeader) -> str:
        """A pair that carried traffic over links that have no room for probes; '' if none did."""
        for ends in sorted(header.not_probed):
            src, dst = (self.numbers.get(end, 0) for end in ends)
            for pair in ((src, dst), (dst, src)) if header.both else ((src, dst),):
                if self.traffic.sent(pair) > BUSY_BYTES:
                    return f"{' to '.join(ends)} carried traffic, and has no room for probes"
        return ""

    def _aside(self, header: JudgedHeader, coverage: Coverage, found: Evidence) -> str:
        """Names what went over links on which no probe of any pair was judged, by pairs that are
        not probed; says it again if that is much of all."""
        nodes = range(len(self.plan.topology.nodes))
        sent = {pair: self.traffic.sent(pair) for pair in sorted(self.traffic.pairs)}
        known = {*header.pairs, *(pair[::-1] for pair in header.pairs if header.both)}
        busy = [
            pair
            for pair, count in sent.items()
            if count > BUSY_BYTES and pair not in known and self._is_pair(pair, nodes)
        ]
        looked = coverage.links(both=header.both)
        ways = Ways(self.plan, self.schedule).follow(busy) if busy else []
        dark = [(way.src, way.dst) for way in ways if not way.links <= looked]
        if not dark:
            return ""
        most = max(dark, key=lambda pair: (sent[pair], pair))
        name = " to ".join(self.plan.topology.nodes[node].name for node in most)
        missed = sum(sent[pair] for pair in dark)
        figure = missed * 10**6 // sum(sent.values())
        more = f" and {len(dark) - 1} more pairs" if len(dark) > 1 else ""
        text = (
            f"{name}{more} carried {say.digits(figure / 1e4)} % of all bytes over links that no"
            " probe was judged on"
        )
        found.not_measured.append(text)
        return text if figure > self.judge.threshold("unseen") else ""


def _since(one: PairCoverage) -> tuple[int, int]:
    """Since when nobody knows of a pair; the pair itself."""
    return (one.holes[0][0] if one.holes else 0), one.pair


def _holes(header: JudgedHeader, looked: Sequence[PairCoverage]) -> Iterator[str]:
    """In words: the first one, and how many more pairs have how much of it."""
    dark = [one for one in looked if one.holes]
    if not dark:
        return
    first = min(dark, key=_since)
    begin_ns, end_ns = first.holes[0]
    most_ns = max(sum(end - begin for begin, end in one.holes) for one in dark)
    yield (
        f"from {begin_ns / 1e9:.3f} s to {end_ns / 1e9:.3f} s nobody looked at"
        f" {header.name(first.pair)}; {len(dark)} of {len(header.pairs)} pairs have such holes, of"
        f" up to {most_ns / 1e9:.3f} s each together"
    )


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
