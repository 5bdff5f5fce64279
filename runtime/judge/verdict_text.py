"""What a verdict says to people: its state first, then its reasons, in few lines.

Input: the record of runtime/judge/verdict.py, perhaps out of a file of somebody else: what is no
verdict says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime import say
from runtime.judge.verdict import UNKNOWN, VALID
from runtime.options import VIRTUAL

MOST_LINES = 5  # at the end of a run
# What was within its bound, for people who read of a run without reasons.
_CHECKED = {
    "network_change": "changes of the network",
    "process_change": "joins, leaves and crashes",
    "program_start": "starts of programs",
    **dict.fromkeys(("engine_late_p50", "engine_late_p99", "engine_late_max"), "packets in pktd"),
    **dict.fromkeys(("driver_stall", "engine_stall"), "stalls of driver and engine"),
    **dict.fromkeys(("agent_stall", "agent_away"), "stalls of agents"),
    **dict.fromkeys(("path_late", "path_early", "path_tail"), "delays of paths"),
    "path_jitter": "jitter of paths",
    "path_loss": "loss of paths",
    "path_rate": "rates of paths",
    "path_open": "paths that are closed",
    "unseen": "time without probes",
    "drops": "losses beside the links",
    "counters": "counters",
    **dict.fromkeys(("cpu", "steal", "throttled"), "processor time"),
    "swapped": "memory",
    **dict.fromkeys(("clock_away", "clock_step"), "clocks"),
}


def told(verdict: object, most: int = 0) -> Iterator[str]:
    """The state and its worst reason, then the other reasons, in at most so many lines (0: in as
    many as it takes); for a run without any, what that says and what not."""
    found = verdict if isinstance(verdict, dict) else {}
    lines = list(_lines(found))
    if most and len(lines) > most:
        more = len(lines) - most + 1
        lines[most - 1 :] = [f"  … and {more} more in certificate.json"]
    yield from lines


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    state = str(found.get("state", UNKNOWN)).upper()
    reasons, judged = _records(found.get("reasons")), _records(found.get("judged"))
    for number, reason in enumerate(reasons):
        yield f"{'  ' if number else state + ': '}{reason.get('text', '')}"
    if not reasons:
        yield from _without_reasons(found, state)
        if judged:
            kinds = [str(one.get("what", "")) for one in judged]
            checked = ", ".join(dict.fromkeys(_CHECKED.get(kind, kind) for kind in sorted(kinds)))
            yield f"  within their bounds: {checked}"
    if found.get("unprobed"):
        yield f"  not probed: {found['unprobed']}"
    if found.get("time") == VIRTUAL:
        cpu = found.get("cpu")
        yield f"  virtual time: {_computing(cpu if isinstance(cpu, dict) else {})}"


def _without_reasons(found: Mapping[str, Any], state: str) -> Iterator[str]:
    measured = found.get("measured")
    if found.get("state") == VALID and isinstance(measured, dict):
        pairs, whole, probes = (measured.get(name, 0) for name in ("pairs", "of_pairs", "probes"))
        part = f"{pairs}" if pairs == whole else f"{pairs} of {whole}"
        yield f"{state}: packets met the planned network between {part} pairs ({probes} probes)"
    elif not _records(found.get("judged")) and not found.get("unmeasured"):
        yield f"{state}: nothing was checked"
    else:
        why = f": {found['unmeasured']}" if found.get("unmeasured") else ""
        yield f"{state}: what packets met on their paths was not measured{why}"


def _computing(cpu: Mapping[str, Any]) -> str:
    """What it cost in virtual time."""
    ppb, used_ns, charged_ns = (cpu.get(name) for name in ("ppb", "used_ns", "charged_ns"))
    if not isinstance(ppb, int):
        return "whatever programs computed took no time (docs/virtual.md)"
    sums = ""
    if isinstance(used_ns, int) and isinstance(charged_ns, int):
        sums = f", {say.digits(used_ns / 1e9)} s counted {say.digits(charged_ns / 1e9)} s"
    return (
        f"computing took {ppb / 1e9:.9g} of this machine's processor time{sums}, so no other run"
        " is the same to the last byte (docs/virtual.md)"
    )


def _records(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# What became of a run's expectations, for people.
#
# Input: `expectations` of summary.json (runtime.expectations.finding), perhaps out of a file of
# somebody else: what is no such list says nothing.

PASSED, FAILED, NOT_MEASURED = "passed", "failed", "not_measured"
WORDS: Mapping[str, str] = {
    PASSED: "passed",
    FAILED: "failed",
    NOT_MEASURED: "not measured",
}


def of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = summary.get("expectations")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def in_state(summary: Mapping[str, Any], state: str) -> list[dict[str, Any]]:
    return [one for one in of(summary) if one.get("state") == state]


def any_failed(summary: Mapping[str, Any]) -> bool:
    return bool(in_state(summary, FAILED))


def place(one: Mapping[str, Any]) -> str:
    """Where the statement is; lines of an included file have its name."""
    file, line = one.get("file", ""), one.get("line", 0)
    return f"{file}:{line}" if file else f"line {line}"


def expectation_told(one: Mapping[str, Any]) -> str:
    """The statement, where it is, and what was measured."""
    return f"{one.get('text', '')} ({place(one)}): {one.get('message', '')}"


def lines_of_log(one: Mapping[str, Any]) -> Iterator[str]:
    for line in one.get("log", ()):
        at_ns = line.get("at_ns")
        when = "" if at_ns is None else f" {at_ns / 1e9:.3f} s"
        yield f"{line.get('instance', '')}{when}: {line.get('line', '')}"


def figures(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The experiment's own, of all instances."""
    found = summary.get("figures")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def figure(one: Mapping[str, Any]) -> str:
    """`lost of check.0: 360`, or why there is no number."""
    value = one.get("value")
    said = f"not measured: {one.get('message', '')}" if value is None else value
    return f"{one.get('name', '')} of {one.get('instance', '')}: {said}"


def counted(summary: Mapping[str, Any]) -> str:
    """How many of them passed, failed and were not measured; '' if there are none."""
    found = of(summary)
    numbers = {state: len(in_state(summary, state)) for state in WORDS}
    parts = [f"{number} {WORDS[state]}" for state, number in numbers.items() if number]
    return f"expectations: {', '.join(parts)}" if found else ""
