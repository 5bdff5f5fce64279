"""Whether a run failed, and by what: what is said of it before anything else.

Input: summary.json, perhaps out of a file of somebody else, and the options of the run. Failures
are listed in this order: the run itself, programs, expectations, and then programs of which nobody
has said what is right; at most MOST of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime import say
from runtime.judge import judge_programs, verdict_text
from runtime.options import FAILED, INTERRUPTED, RunOptions
from runtime.results.summary import programs_failed
from runtime.rundir.eventlog import how_and_why, oom_killed
from runtime.schedule import PlanClock

# What lines of events.jsonl, and programs that failed, say to people, in words.


def seconds(value_ns: int) -> str:
    return f"{value_ns / 1e9:.3f}"


def details(record: Mapping[str, Any]) -> str:
    """Of a line of events.jsonl, in words, what its kind and target do not say."""
    if record.get("kind") == "stall":
        return f"{seconds(record['stalled_ns'])} s"
    if record.get("kind") == "do":
        return f"action {record['action']}: {record.get('text', '')}"
    if record.get("kind") == "when":
        return _reaction(record)
    if record.get("kind") == "overdue":
        return f"killed: not ended in {seconds(record['grace_ns'])} s"
    if record.get("kind") == "exit":
        if "error" in record:
            return str(record["error"])
        return how_and_why(record) + (" (by the run)" if record.get("asked") else "")
    if record.get("kind") == "oom_kill":
        return oom_killed(record)
    if record.get("kind") in ("template", "command", "command_end"):
        return _command(record)
    if record.get("kind") in ("setup", "ready", "not_ready", "quit", "unprobed"):
        return _beside_the_plan(record)
    args = [f"{key}={value}" for key, value in sorted(record.get("args", {}).items())]
    return " ".join(filter(None, (*args, whose(record))))


def whose(record: Mapping[str, Any]) -> str:
    """Who has asked for an event of the plan, where that was not the experiment's text alone."""
    who = {"manual": "by hand", "condition": "by a when"}.get(str(record.get("origin")), "")
    return f"({who}: action {record.get('action')})" if who and "seq" in record else ""


def changed(by_hand: int, by_when: int) -> str:
    """That a run was changed while it went on; '' if it was not."""
    counts = ((by_hand, "by hand"), (by_when, "by a when"))
    found = [
        f"{count:,} {'time' if count == 1 else 'times'} {how}" for count, how in counts if count
    ]
    return f"changed {' and '.join(found)} while it went on" if found else ""


def _reaction(record: Mapping[str, Any]) -> str:
    """What was seen, and what came of it."""
    seen = f"line {record['line']}, {record['text']!r}"
    if "refused" in record:
        return f"{seen}: not done: {record['refused']}"
    return f"{seen}: action {record['action']}"


def _beside_the_plan(record: Mapping[str, Any]) -> str:
    """What setups, readiness and programs that end the run say."""
    took = f"after {seconds(record['took_ns'])} s" if "took_ns" in record else ""
    status = f"status {record['status']}" if "status" in record else ""
    words = (took, status, record.get("error", ""), record.get("reason", ""))
    return ": ".join(filter(None, words))


def _command(record: Mapping[str, Any]) -> str:
    """Of a test template, and of its commands."""
    if record["kind"] == "template":
        return str(record.get("error") or f"{record['template']}: {' '.join(record['commands'])}")
    status = f"status {record['status']}" if "status" in record else ""
    words = (record["command"], status, record.get("error", ""), record.get("lost", ""))
    return ": ".join(filter(None, words))


def how_failed(one: Mapping[str, Any]) -> str:
    """Of one of `failures` in summary.json."""
    right = f" (expect={one['expect']})" if one.get("expect") else ""
    if one.get("still_running"):
        return f"still running at the end{right}"
    if one.get("killed"):
        return f"killed from outside{right}"
    return f"could not start: {one['error']}" if "error" in one else how_and_why(one) + right


def oom_kills(summary: Mapping[str, Any]) -> str:
    """How many processes of which instances the kernel has killed for `mem=`; '' for none."""
    found = summary.get("oom_kills", ())
    return say.some([f"{one['processes']:,} of {one['target']}" for one in found], MOST_OOM_KILLS)


MOST = 200
MOST_OOM_KILLS = 20  # instances
MOST_CHARACTERS = 500  # of a line of a log
End = tuple[str, int]  # of a program: its instance, and when


def ends(summary: Mapping[str, Any]) -> frozenset[End] | None:
    """The ends of programs that are failures; None if nobody has judged them."""
    told = summary.get("failures")
    if not isinstance(told, list):
        return None
    found = [one for one in told if isinstance(one, dict)]
    return frozenset((str(one.get("target", "")), one.get("applied_ns", -1)) for one in found)


def record(summary: Mapping[str, Any], options: RunOptions, end_ns: int) -> dict[str, Any]:
    """`state`: failed, interrupted, or what the verdict is; `failures` with `what` failed, in which
    `words`, the `last` line of a log, `at_ns` (plan time; null where none is known), and whether it
    `counts`: whether somebody has said what is right. `end_ns`: plan time of the run's end."""
    found = list(_run(summary, end_ns))
    found += _programs(summary, options, end_ns)
    found += _expectations(summary)
    found.sort(key=lambda one: not one["counts"])
    outcome = summary.get("outcome")
    if outcome == FAILED or programs_failed(summary, options):
        state = FAILED
    elif outcome == INTERRUPTED:
        state = INTERRUPTED
    else:
        verdict = summary.get("verdict")
        state = str(verdict.get("state", "unknown")) if isinstance(verdict, dict) else "unknown"
    return {"state": state, "failures": found}


def told(failure: Mapping[str, Any]) -> str:
    """Of one of `failures`, on a line."""
    last = f"; last log line: {failure['last']}" if failure["last"] else ""
    return f"{failure['what']}: {failure['words']}{last}"


def _run(summary: Mapping[str, Any], end_ns: int) -> Iterator[dict[str, Any]]:
    if summary.get("outcome") == FAILED:
        yield _failure("the run", str(summary.get("message") or "failed"), "", end_ns)


def _programs(summary: Mapping[str, Any], options: RunOptions, end_ns: int) -> list[dict[str, Any]]:
    clock = PlanClock(options.start_at_ns, options.pace)
    asked = options.fail_on_exit or options.fail_fast
    found = []
    for one in summary.get("failures", ())[:MOST]:
        applied = one.get("applied_ns")
        at_ns = clock.plan_time(applied) if type(applied) is int else end_ns
        what, last = str(one.get("target", "")), str(one.get("last_log_line", ""))
        counts = judge_programs.counts(one, fail_on_exit=asked)
        found.append(_failure(what, how_failed(one), last, at_ns, counts=counts))
    return found


def _expectations(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for one in verdict_text.in_state(summary, verdict_text.FAILED)[:MOST]:
        at_ns = one["at_ns"] if type(one.get("at_ns")) is int else None
        what, words = str(one.get("text", "")), str(one.get("message", ""))
        yield _failure(what, words, _last_line(one, at_ns), at_ns)


def _last_line(one: Mapping[str, Any], at_ns: int | None) -> str:
    """Of the log beside an expectation; none that was written after it had failed."""
    log = [
        line
        for line in one.get("log", ())
        if at_ns is None or line.get("at_ns") is None or line["at_ns"] <= at_ns
    ]
    return next(verdict_text.lines_of_log({"log": log[-1:]}), "")


def _failure(
    what: str, words: str, last: str, at_ns: int | None, *, counts: bool = True
) -> dict[str, Any]:
    last = last[:MOST_CHARACTERS]
    return {"what": what, "words": words, "last": last, "at_ns": at_ns, "counts": counts}
