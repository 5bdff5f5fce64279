"""A machine's load while a run goes on, from readings about a second apart: sums, and the worst.

`take` is given readings in order; `record` is what comes of them: `samples`, of the whole time
`cpu_ppm`, `steal_ppm`, `throttled_ns`, `swapped_bytes` and the largest `clock_step_ns`; `worst`:
the largest figure of each threshold, with the time (ns since time 0) at which it was seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runtime.judge.verdict import Judge, milliseconds, quantity
from runtime.system import hostfigures
from runtime.system.hostfigures import HostReading
from runtime.thresholds import THRESHOLDS

WINDOW = 10  # readings over which processors are judged: a second says little
FIGURES = ("cpu", "steal", "throttled", "swapped", "clock_step")
_TEXTS = {
    "cpu": "{figure} of the processor time of {host} was used for 10 s",
    "steal": "{figure} of the processor time of {host} was taken by its host for 10 s",
    "throttled": "the run was kept from the processors of {host} for {figure} in a second",
    "swapped": "{host} swapped {figure} in a second",
    "clock_step": "the clock of {host} was set by {figure}",
}


class MachineRecord:
    def __init__(self) -> None:
        self._first: HostReading | None = None
        self._recent: deque[HostReading] = deque(maxlen=WINDOW + 1)
        self._worst: dict[str, tuple[int, int]] = {}
        self._samples = 0

    def take(self, reading: HostReading, at_ns: int) -> None:
        self._samples += 1
        before = self._recent[-1] if self._recent else None
        self._first = self._first or reading
        self._recent.append(reading)
        if before is None:
            return
        span_ns = max(reading.at_ns - before.at_ns, 1)
        second = max(span_ns, 10**9)
        self._note("throttled", _rate(reading.throttled_ns - before.throttled_ns, second), at_ns)
        self._note("swapped", _rate(reading.swapped_bytes - before.swapped_bytes, second), at_ns)
        self._note("clock_step", abs(reading.ahead_ns - before.ahead_ns), at_ns)
        if len(self._recent) > WINDOW:
            ago = self._recent[0]
            self._note("cpu", _part(reading.busy - ago.busy, reading.ticks - ago.ticks), at_ns)
            self._note(
                "steal", _part(reading.stolen - ago.stolen, reading.ticks - ago.ticks), at_ns
            )

    def _note(self, what: str, figure: int, at_ns: int) -> None:
        if what not in self._worst or figure > self._worst[what][0]:
            self._worst[what] = figure, at_ns

    def record(self) -> dict[str, Any]:
        """Empty without two readings."""
        if self._first is None or len(self._recent) < 2:
            return {}
        first, last = self._first, self._recent[-1]
        ticks = last.ticks - first.ticks
        return {
            "samples": self._samples,
            "cpu_ppm": _part(last.busy - first.busy, ticks),
            "steal_ppm": _part(last.stolen - first.stolen, ticks),
            "throttled_ns": last.throttled_ns - first.throttled_ns,
            "swapped_bytes": last.swapped_bytes - first.swapped_bytes,
            "clock_step_ns": self._worst["clock_step"][0],
            "worst": {what: list(found) for what, found in sorted(self._worst.items())},
        }


def _part(part: int, whole: int) -> int:
    return part * 10**6 // whole if whole > 0 else 0


def _rate(count: int, span_ns: int) -> int:
    return count * 10**9 // span_ns


def look_at_machine(judge: Judge, host: str, found: Mapping[str, Any]) -> None:
    """Of a record that a driver or an agent has made; what is none of a record is left out."""
    worst = found.get("worst")
    for what in FIGURES:
        one = worst.get(what) if isinstance(worst, dict) else None
        if not (isinstance(one, list) and len(one) == 2 and all(type(v) is int for v in one)):
            continue
        unit = THRESHOLDS[what].unit
        figure = milliseconds(one[0]) if unit == "ns" else quantity(one[0], unit)
        text = _TEXTS[what].format(figure=figure, host=host)
        judge.measure(what, host, one[0], one[1], text)


# What the machine of an agent or a driver is busy with meanwhile, for its last words.

INTERVAL_NS = 900_000_000  # an agent looks at it twice a second
STEP_AFTER = 2  # readings, before a planted step


class OwnMachine:
    """`step_ns`: fault injection, by so much the wall clock is set."""

    def __init__(
        self, step_ns: int = 0, read: Callable[[], HostReading] = hostfigures.read
    ) -> None:
        self._step_ns = step_ns
        self._read = read
        self._machine = MachineRecord()
        self._last_ns: int | None = None
        self._count = 0

    def look(self, elapsed_ns: int) -> None:
        """At most about once a second."""
        if self._last_ns is not None and elapsed_ns - self._last_ns < INTERVAL_NS:
            return
        self._last_ns = elapsed_ns
        self._count += 1
        found = self._read()
        if self._count > STEP_AFTER:
            found = replace(found, ahead_ns=found.ahead_ns + self._step_ns)
        self._machine.take(found, elapsed_ns)

    def record(self) -> dict[str, Any]:
        return self._machine.record()
