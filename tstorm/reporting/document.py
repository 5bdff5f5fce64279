"""A run as one JSON document, for programs (docs/reports.md has the format).

Input: the facts of a run. Output: a value for output.to_json: integers with their units in their
names, null where something is not known, lists in the plan's order. Raise VERSION when a key goes
or changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.options import decode
from tstorm.reporting.run_facts import RunFacts
from tstorm.text.ending_text import how

FORMAT, VERSION = "tstorm-report", 1

_RUN = ("run_id", "experiment", "plan_digest", "seed", "started", "start_unix_ns", "datapath")
_OPTIONS = ("backend", "hosts", "time", "pace", "start_at_ns", "until_ns")
_EVENT = ("seq", "kind", "target", "args", "planned_ns", "due_ns", "applied_ns", "lag_ns")
_END = ("applied_ns", "status", "signal", "error", "reason")


def document(facts: RunFacts) -> dict[str, Any]:
    """The whole of it. RunError for what is damaged."""
    events = list(facts.events())
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": _run(facts),
        "verdict": dict(facts.verdict),
        "expectations": [dict(one) for one in facts.expectations],
        "figures": facts.summary.get("figures", []),
        "pairs": _pairs(facts),
        "links": facts.summary["links"],
        "events": [{key: one.get(key) for key in _EVENT} for one in events],
        "programs": _programs(facts, events),
    }


def _run(facts: RunFacts) -> dict[str, Any]:
    options = decode(facts.manifest["options"], "options")
    summary = facts.summary
    return {
        **{key: facts.manifest.get(key) for key in _RUN},
        **{key: getattr(options, key) for key in _OPTIONS},
        "end_ns": facts.plan.end_ns,
        "state": facts.state,
        "outcome": summary["outcome"],
        "message": summary.get("message", ""),
        "events_planned": summary["events"]["planned"],
        "events_applied": summary["events"]["applied"],
        "events_lag": summary["events"]["lag"],
    }


def _pairs(facts: RunFacts) -> list[dict[str, Any]]:
    """Counters of each pair that sent something, and what was planned and measured in its epochs;
    in the order of the counters, then of the certificate."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in facts.summary["pairs"]:
        counters = {key: value for key, value in row.items() if key not in ("src", "dst")}
        ends = {"from": row["src"], "to": row["dst"]}
        found[row["src"], row["dst"]] = {**ends, "counters": counters, "epochs": []}
    for path in facts.paths:
        key = path["from"], path["to"]
        nothing = {"from": key[0], "to": key[1], "counters": None, "epochs": []}
        epoch = {name: path[name] for name in ("measure", "planned", "measured")}
        found.setdefault(key, nothing)["epochs"].append({**path["epoch"], **epoch})
    return list(found.values())


def _programs(facts: RunFacts, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One for each instance that has a program: how often it was started, how it ended, and whether
    that was wrong."""
    topology = facts.plan.topology
    found: dict[str, dict[str, Any]] = {
        node.name: {"instance": node.name, "starts": 0, "ends": [], "failures": []}
        for node in topology.nodes
        if node.is_instance
    }
    for event in events:
        one = found.get(event.get("target", ""))
        if one is None:
            continue
        if "started_ns" in event:
            one["starts"] += 1
        if event.get("kind") in ("exit", "killed"):
            end = {key: event.get(key) for key in _END}
            asked, killed = bool(event.get("asked")), event["kind"] == "killed"
            one["ends"].append({**end, "asked": asked, "killed": killed})
    for failure in facts.summary.get("failures", ()):
        one = found.get(failure["target"])
        if one is not None:
            last = failure["last_log_line"]
            at_ns = failure.get("applied_ns")
            text = {"text": how(failure), "last_log_line": last, "applied_ns": at_ns}
            one["failures"].append(text)
    return list(found.values())
