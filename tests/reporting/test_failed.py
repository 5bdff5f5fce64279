"""What failed in a run, as everything that tells of it says first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runtime.options import COMPLETED, DEFAULTS, FAILED, INTERRUPTED
from runtime.results.failed import changed, details, ends, record, told

SECOND = 10**9
EXIT: dict[str, Any] = {
    "target": "client.0", "applied_ns": 3 * SECOND, "status": 1, "signal": 0,
    "expect": "success", "last_log_line": "lost 360 orders",
}  # fmt: skip
LINES = [{"instance": "a.0", "at_ns": at * SECOND, "line": f"line of {at} s"} for at in (1, 4, 9)]
EXPECTED: dict[str, Any] = {
    "text": "expect rtt a b < 9ms", "state": "failed", "message": "it was 12 ms",
    "at_ns": 5 * SECOND, "log": LINES,
}  # fmt: skip
VALID = {"state": "valid"}


def found(**summary: Any) -> dict[str, Any]:
    whole = {"outcome": COMPLETED, "verdict": VALID, **summary}
    return record(whole, replace(DEFAULTS, start_at_ns=SECOND, pace=2), 60 * SECOND)


def test_programs_come_before_expectations_with_their_last_lines_in_plan_time() -> None:
    result = found(failures=[EXIT], expectations=[EXPECTED])
    assert result["state"] == FAILED
    program, expectation = result["failures"]
    assert told(program) == "client.0: status 1 (expect=success); last log line: lost 360 orders"
    assert program["at_ns"] == 7 * SECOND
    assert told(expectation) == (
        "expect rtt a b < 9ms: it was 12 ms; last log line: a.0 4.000 s: line of 4 s"
    )


@pytest.mark.parametrize(
    ("summary", "state", "count"),
    [
        ({}, "valid", 0),
        ({"verdict": None}, "unknown", 0),
        ({"outcome": INTERRUPTED}, INTERRUPTED, 0),
        ({"outcome": FAILED, "message": "no memory is left"}, FAILED, 1),
        ({"failures": [{**EXIT, "expect": ""}]}, "valid", 1),
        ({"failures": [{"target": "a.0", "still_running": True, "expect": "success"}]}, FAILED, 1),
    ],
)
def test_a_run_failed_where_somebody_has_said_what_is_right(
    summary: dict[str, Any], state: str, count: int
) -> None:
    result = found(**summary)
    assert (result["state"], len(result["failures"])) == (state, count)
    assert all(one["counts"] == (state == FAILED) for one in result["failures"])


def test_ends_that_nobody_has_judged_are_none() -> None:
    assert ends({}) is None
    assert ends({"failures": [EXIT]}) == frozenset({("client.0", 3 * SECOND)})


def test_events_say_who_has_asked_for_them() -> None:
    event = {"kind": "set", "seq": 4, "args": {"delay_ns": 5}, "action": 2}
    assert details(event) == "delay_ns=5"
    assert details({**event, "origin": "manual"}) == "delay_ns=5 (by hand: action 2)"
    assert details({**event, "args": {}, "origin": "condition"}) == "(by a when: action 2)"
    assert details({"kind": "do", "action": 2, "text": "a crash"}) == "action 2: a crash"
    assert changed(0, 0) == ""
    assert changed(1, 12) == "changed 1 time by hand and 12 times by a when while it went on"
