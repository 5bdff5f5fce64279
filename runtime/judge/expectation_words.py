"""What became of a run's expectations, for people.

Input: `expectations` of summary.json (runtime.expectations.finding), perhaps out of a file of
somebody else: what is no such list says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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


def told(one: Mapping[str, Any]) -> str:
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
