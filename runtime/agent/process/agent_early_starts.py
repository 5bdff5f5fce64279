"""What own instances do before time 0, asked for by the coordinator: their setups; or their whole
start, where the run begins when all are ready. What comes of it is read from what each tstorm-hold
reports (docs/hold.md).

An instance that was started so joins with the first step without another order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runtime.agent.pod.pod_hold import Hold
from runtime.agent.pod.reports import Report, Reports

SET_UP, RELEASED = "set_up", "released"  # of orders.WAITS
PARTS = 64  # of reports that are read in one look


@dataclass(slots=True)
class _Early:
    """`wait` is what ends it; `asked_ns` (CLOCK_MONOTONIC) tells older reports from its own."""

    wait: str
    asked_ns: int
    over: bool = False
    error: str = ""
    reports: Reports = field(default_factory=Reports)


class AgentEarlyStarts:
    """By node of the plan."""

    def __init__(self) -> None:
        self._starts: dict[int, _Early] = {}

    def joined(self, node: int) -> bool:
        """Whether its join was ordered before the start."""
        found = self._starts.get(node)
        return found is not None and found.wait != SET_UP

    def begin(self, node: int, wait: str, hold: Hold | None, now_ns: int) -> None:
        """Orders it, unless that was done. A gate that is released says no more itself."""
        if node in self._starts and self._starts[node].wait == wait:
            return
        early = self._starts[node] = _Early(wait, now_ns)
        if hold is None:
            _end(early, "no tstorm-hold of it is known")
            return
        if wait != RELEASED:
            try:
                early.reports.open(hold.pid)
            except OSError as error:
                _end(early, f"its reports cannot be read: {error.strerror or error}")
                return
        refused = hold.order("setup" if wait == SET_UP else "join")
        if refused or wait == RELEASED:
            _end(early, refused)

    def look(self, node: int, hold: Hold | None, now: Callable[[], int]) -> tuple[bool, str]:
        """Whether it is over, and why it failed if it did."""
        early = self._starts[node]
        for _ in range(PARTS):
            reports = [] if early.over else early.reports.read(now)
            for report in reports:
                _take(early, report)
            if not reports:
                break
        if not early.over and (hold is None or not hold.alive()):
            _end(early, "its first process (tstorm-hold) is dead")
        return early.over, early.error

    def close(self) -> None:
        for early in self._starts.values():
            early.reports.close()


def _take(early: _Early, report: Report) -> None:
    if early.over or report.at_ns < early.asked_ns:
        return
    how = _how(report.fields)
    if report.event == SET_UP and early.wait == SET_UP:
        _end(early, f"setup {how}" if how else "")
    elif report.event == "failed":
        _end(early, f"cannot start {report.fields.get('program')}: {report.fields.get('error')}")
    elif report.event == early.wait:
        _end(early, "")
    elif report.event == "not_ready":
        _end(early, "it is not ready within its ready-timeout=")
    elif report.event == "ended":  # and whatever it has left behind: nothing will be ready
        _end(early, f"its program {how or 'ended before it was ready'}")
    elif report.event == "ignored" and report.fields.get("order") in ("setup", "join"):
        _end(early, "")  # it was so already


def _how(fields: Mapping[str, object]) -> str:
    """How something ended that did not end well; '' if it did."""
    if fields.get("error"):
        return f"could not run: {fields['error']}"
    if fields.get("signal"):
        return f"ended by signal {fields['signal']}"
    return f"ended with {fields['status']}" if fields.get("status") else ""


def _end(early: _Early, error: str) -> None:
    early.over, early.error = True, error
    early.reports.close()
