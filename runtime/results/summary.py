"""What a run came to, from the files it wrote: summary.json. Integers only, names for numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compiler.plan.event_kinds import PROCESS_KINDS
from compiler.plan.reader import Plan
from runtime.certify.drops import look_at_drops, look_at_impairments
from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.judge import judge_programs, lateness, verdict_text
from runtime.judge.lateness import late_for_delays
from runtime.judge.run_end import RunEnd
from runtime.judge.verdict import Judge
from runtime.nearest_rank import P99, nearest_rank
from runtime.options import COMPLETED, FAILED, RunOptions
from runtime.results import reactions_done
from runtime.results.loglines import last_line
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import EVENTS, SAMPLES, STACKS
from runtime.stacks import stack_summary


def _lags(values: Iterable[int]) -> dict[str, int]:
    """How far off their moment they were: what is early is not on time."""
    ordered = sorted(map(abs, values))
    return {
        "count": len(ordered),
        "p50_ns": nearest_rank(ordered) if ordered else 0,
        "p99_ns": nearest_rank(ordered, P99) if ordered else 0,
        "max_ns": ordered[-1] if ordered else 0,
    }


def _records(directory: HeldDirectory, name: str) -> Iterator[dict[str, Any]]:
    """None if the run ended before it began."""
    if not directory.has(name):
        return iter(())
    return read_events(directory) if name == EVENTS else read_lines(directory, name)


Rows = dict[tuple[int, ...], list[int]]


def _counters(directory: HeldDirectory) -> tuple[dict[str, list[str]], Rows, Rows]:
    """Names of the columns, and the last counters of each link and pair: they are cumulative."""
    columns: dict[str, list[str]] = {"links": [], "pairs": []}
    links: Rows = {}
    pairs: Rows = {}
    for record in _records(directory, SAMPLES):
        if "columns" in record:
            columns = record["columns"]
            continue
        links.update((tuple(row[:1]), row) for row in record["links"])
        pairs.update((tuple(row[:2]), row) for row in record["pairs"])
    return columns, links, pairs


def _named(
    columns: Sequence[str], rows: Rows, keys: Sequence[str], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows with the names of their columns; the numbers in `keys` become names. RunError."""
    found = []
    for numbers, row in sorted(rows.items()):
        known = len(numbers) == len(keys) and all(0 <= number < len(names) for number in numbers)
        if not known or len(row) != len(columns):
            raise RunError(f"{SAMPLES} has a row that is none of this plan: {row[:9]}", REMEDY)
        words = dict(zip(keys, (names[number] for number in numbers), strict=True))
        found.append({**dict(zip(columns, row, strict=True)), **words})
    return found


def _ran(record: Mapping[str, Any]) -> bool:
    """Its program ran because of this event; what starts before time 0 is awaited there."""
    return "started_ns" in record and record["started_ns"] >= 0


def _events(records: list[dict[str, Any]]) -> dict[str, Any]:
    done = [record for record in records if record.get("seq") is not None]
    network = (r["network_ns"] - r["due_ns"] for r in done if "network_ns" in r)
    process = (r["lag_ns"] for r in done if r["kind"] in PROCESS_KINDS)
    return {
        "applied": len(done),
        "by_kind": dict(Counter(record["kind"] for record in done)),
        "lag": _lags(record["lag_ns"] for record in done),
        "network_lag": _lags(network),
        "process_lag": _lags(process),
        "start_lag": _lags(r["started_ns"] - r["due_ns"] for r in done if _ran(r)),
    }


def _exits(directory: HeldDirectory, records: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Programs that ended, did not start or were killed without the timeline asking for it."""
    found = [r for r in records if r.get("kind") in ("exit", "killed") and not r.get("asked")]
    keys = ("target", "applied_ns", "status", "signal", "error", "reason")
    exits: list[dict[str, object]] = []
    for record in found:
        one = {key: record[key] for key in keys if key in record}
        if record["kind"] == "killed":
            one["killed"] = True
        exits.append(_with_last_line(directory, one))
    return exits


def _readiness(records: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """`setups` and `readiness`, in order of completion; neither where there was none."""
    keys = ("target", "applied_ns", "took_ns", "status", "error", "ready_ns", "reason")
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        kind = record.get("kind")
        if kind in ("setup", "ready", "not_ready"):
            one = {key: record[key] for key in keys if key in record}
            found.setdefault("setups" if kind == "setup" else "readiness", []).append(one)
    return found


def _oom_kills(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """`oom_kills`, in order of the first ones, where there were some."""
    found: Counter[str] = Counter()
    for record in records:
        if record.get("kind") == "oom_kill":
            found[record["target"]] += record["processes"]
    told = [{"target": name, "processes": count} for name, count in found.items()]
    return {"oom_kills": told} if told else {}


def _reactions(
    records: list[dict[str, Any]], counted: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """`reactions`, where there were some to wait for."""
    if not counted:
        return {}
    lags = _lags(reactions_done.latencies(records))
    return {"reactions": {**reactions_done.sum_up(records, counted), "latency": lags}}


def _with_last_line(directory: HeldDirectory, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "last_log_line": last_line(directory, f"{one['target']}.log")}


def _failures(
    directory: HeldDirectory, plan: Plan, records: Iterable[dict[str, Any]], outcome: str
) -> list[dict[str, Any]]:
    """Programs that did not do what is right (runtime.judge.judge_programs)."""
    topology = plan.topology
    expected = {
        node.name: topology.services[node.service].expect
        for node in topology.nodes
        if node.is_instance
    }
    found = judge_programs.failures(expected, records, to_the_end=outcome == COMPLETED)
    return [_with_last_line(directory, one) for one in found]


def programs_failed(
    summary: Mapping[str, Any], options: RunOptions, *, ended_by_programs: bool = False
) -> bool:
    """Whether programs, or expectations that failed, make the run end with PROGRAMS_FAILED. Of one
    that has failed only if they have ended it: else what ended it may have ended them, too."""
    if summary.get("outcome") == FAILED:
        return ended_by_programs
    found = summary.get("failures", ())
    asked = options.fail_on_exit or options.fail_fast
    counted = any(judge_programs.counts(one, fail_on_exit=asked) for one in found)
    expected = summary.get("outcome") == COMPLETED and verdict_text.any_failed(summary)
    return counted or expected or ended_by_programs


def summarise(
    directory: HeldDirectory,
    plan: Plan,
    planned: int,
    end: RunEnd,
    judge: Judge | None = None,
) -> dict[str, Any]:
    """`planned` events were to be applied; `judge` knows the bounds of this run.

    RunError if the files were tampered with.
    """
    records = list(_records(directory, EVENTS))
    columns, links, pairs = _counters(directory)
    topology = plan.topology
    facts = end.facts
    totals = facts.get("totals", {})
    hosts = {"hosts": facts["counters"]} if "counters" in facts else {}
    events = _events(records)
    judge = judge or Judge()
    lateness.look_at_events(judge, records)
    lateness.look_at_end(judge, end, planned, int(events["applied"]))
    stacks = stack_summary.sum_up(_records(directory, STACKS))
    carried = _named(
        columns["pairs"], pairs, ("src", "dst"), [node.name for node in topology.nodes]
    )
    offered = sum(int(one.get("offered_pkts", 0)) for one in carried)
    look_at_drops(judge, facts, stacks.get("stacks", {}), offered)
    look_at_impairments(judge, facts, plan)
    limits = late_for_delays(totals, judge.delay_ns)
    return {
        **hosts,
        "verdict": judge.verdict(),
        "outcome": end.outcome,
        "message": end.message,
        "plan_digest": plan.digest,
        "seed": plan.seed,
        "events": {"planned": planned, **events},
        "exits": _exits(directory, records),
        "failures": _failures(directory, plan, records, end.outcome),
        **_oom_kills(records),
        **({"limits": limits} if limits else {}),
        **_reactions(records, facts.get("reactions", ())),
        **_readiness(records),
        **({"quit_early": facts["quit_early"]} if facts.get("quit_early") else {}),
        "refused": facts.get("refused", []),
        **({"captures": facts["captures"]} if "captures" in facts else {}),
        **({"driver": facts["driver"]} if "driver" in facts else {}),
        **stacks,
        "engine": {key: int(value) for key, value in totals.items() if value.isdecimal()},
        "links": _named(columns["links"], links, ("link",), [link.name for link in topology.links]),
        "pairs": carried,
    }
