"""A run as spans of time, for formats that show such: what it is made of, and when.

Input: the facts of a run. Output: spans in the run's own time, since its start: incarnations of
instances, outages, phases (times in which nothing changed in the network), and expectations that
failed. What has no end in the record ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.plan.event_kinds import PROGRAM_ENDINGS
from runtime.options import decode
from runtime.results.failed import details
from runtime.schedule import PlanClock
from tstorm.reporting.run_facts import EXPECTATION_FAILED, RunFacts

INCARNATION, OUTAGE, PHASE, EXPECTATION = "incarnation", "outage", "phase", "expectation"
MOST_PHASES = 10_000
_ENDS = ("exit", "killed", *PROGRAM_ENDINGS)
_OUTAGES = {  # what begins one: what ends it, and words
    "link_down": (("link_up",), "down"),
    "bridge_down": (("bridge_up",), "down"),
    "disconnect": (("reconnect", "leave", "crash", "killed"), "cut off"),
    "pause": (("resume", "leave", "crash", "kill", "killed"), "paused"),
    "kill": (("join",), "killed"),
    "leave": (("join",), "gone"),
    "crash": (("join",), "gone"),
    "killed": (("join",), "gone"),
}


@dataclass(frozen=True, slots=True)
class RunSpan:
    """`target`: an instance, bridge or link; '' where it is the run's."""

    kind: str
    name: str
    target: str
    begin_ns: int
    end_ns: int
    failed: str = ""  # why it is an error
    more: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunStory:
    """`events` are lines of events.jsonl that have a moment; `notes` say what is left out."""

    end_ns: int
    spans: tuple[RunSpan, ...]
    events: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def story(facts: RunFacts) -> RunStory:
    """RunError for what is damaged."""
    events = [one for one in facts.events() if type(one.get("applied_ns")) is int]
    events.sort(key=lambda one: one["applied_ns"])
    options = decode(facts.manifest["options"], "options")
    clock = PlanClock(options.start_at_ns, options.pace)
    end_ns = max((one["applied_ns"] for one in events), default=0)
    phases = list(_phases(facts, clock, end_ns))
    notes = []
    if len(phases) > MOST_PHASES:
        notes.append(f"{len(phases) - MOST_PHASES} phases are left out, the last ones")
    spans = [*phases[:MOST_PHASES], *_outages(events, end_ns), *_incarnations(events, end_ns)]
    spans += _expectations(facts, clock)
    spans.sort(key=lambda one: (one.begin_ns, -one.end_ns, one.kind, one.target))
    return RunStory(end_ns, tuple(spans), tuple(events), tuple(notes))


def event_words(event: Mapping[str, Any]) -> str:
    """What a line says beside its kind and target."""
    try:
        return details(event)
    except (LookupError, TypeError, ValueError):
        return ""


def _phases(facts: RunFacts, clock: PlanClock, end_ns: int) -> Iterator[RunSpan]:
    moments = [max(clock.due(epoch.at_ns), 0) for epoch in facts.plan.epochs]
    begins = sorted({moment for moment in moments if moment < end_ns})
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], end_ns], strict=True), 1):
        yield RunSpan(PHASE, f"phase {number}", "", begin, end)


def _outages(events: Iterable[Mapping[str, Any]], end_ns: int) -> Iterator[RunSpan]:
    opened: dict[tuple[str, str], int] = {}
    for event in events:
        kind, target = str(event.get("kind")), str(event.get("target", ""))
        if event.get("asked"):
            continue
        for begun, (endings, words) in _OUTAGES.items():
            if kind in endings and (begin := opened.pop((begun, target), None)) is not None:
                yield RunSpan(OUTAGE, f"{target} {words}", target, begin, event["applied_ns"])
        if kind in _OUTAGES:
            opened.setdefault((kind, target), event["applied_ns"])
    for (kind, target), begin in opened.items():
        yield RunSpan(OUTAGE, f"{target} {_OUTAGES[kind][1]}", target, begin, end_ns)


def _incarnations(events: Iterable[Mapping[str, Any]], end_ns: int) -> Iterator[RunSpan]:
    opened: dict[str, int] = {}
    numbers: dict[str, int] = {}

    def closed(target: str, at_ns: int, how: str) -> RunSpan:
        numbers[target] = number = numbers.get(target, 0) + 1
        more: dict[str, str | int] = {"number": number, "ended": how}
        return RunSpan(
            INCARNATION, f"{target} #{number}", target, opened.pop(target), at_ns, "", more
        )

    for event in events:
        kind, target, at_ns = event.get("kind"), str(event.get("target", "")), event["applied_ns"]
        if kind in ("join", "start"):
            started = event.get("started_ns")
            begin = min(started, at_ns) if type(started) is int else at_ns
            opened.setdefault(target, max(begin, 0))
        elif kind in _ENDS and target in opened:
            how = event_words(event) if kind == "exit" else str(kind)
            yield closed(target, at_ns, how)
    for target in sorted(opened):
        yield closed(target, max(end_ns, opened[target]), "")


def _expectations(facts: RunFacts, clock: PlanClock) -> Iterator[RunSpan]:
    for one in facts.expectations:
        if one.get("state") == EXPECTATION_FAILED:
            at_ns = one.get("at_ns")
            moment = max(clock.due(at_ns), 0) if type(at_ns) is int else 0
            where: dict[str, str | int] = {"line": one["line"], "file": one["file"]}
            why = str(one["message"]) or EXPECTATION_FAILED
            yield RunSpan(EXPECTATION, str(one["text"]), "", moment, moment, why, where)
