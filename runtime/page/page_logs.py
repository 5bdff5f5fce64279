"""Lines of the programs' logs with their times, within a budget of bytes.

Input: logs/ and logs.jsonl of a run directory. A log that is longer than its part is shown with its
beginning and its end. Times are bounds, as in runtime/results/loglines.py, here in plan time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runtime.errors import RunError
from runtime.page.downsample import read_some, stride
from runtime.results.loglines import (
    SUFFIX,
    Growth,
    LogRecord,
    lines_of,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import LOG_TIMES, LOGS
from runtime.schedule import PlanClock

MOST_BYTES = 2_500_000  # of all logs
LEAST_BYTES, FULL_BYTES = 5_000, 400_000  # of one log
MOST_CHARACTERS = 400  # of a line
MOST_MOMENTS = 2_000  # at which one log grew
ANY_BYTES = 1 << 40


def record(
    directory: HeldDirectory, clock: PlanClock, first: Sequence[str], notes: list[str]
) -> list[dict[str, Any]]:
    """Of instances whose log is not empty; `first` are shown in any case. OSError, RunError."""
    logs = directory.enter(LOGS)
    sizes = {}
    for name in logs.names():
        status = logs.status(name)
        if name.endswith(SUFFIX) and status is not None and status.st_size:
            sizes[name.removesuffix(SUFFIX)] = status.st_size
    most = MOST_BYTES // LEAST_BYTES
    shown = list(dict.fromkeys([name for name in first if name in sizes] + sorted(sizes)))
    if len(shown) > most:
        notes.append(f"of {len(shown)} logs {most} are shown, those of failed programs first")
    shown = shown[:most]
    part = min(max(MOST_BYTES // max(len(shown), 1), LEAST_BYTES), FULL_BYTES)
    growth = _growth(directory, frozenset(shown), notes)
    found = []
    for name in sorted(shown):
        try:
            found.append(_log(logs, name, sizes[name], part, growth.get(name, Growth()), clock))
        except RunError as error:
            notes.append(f"the log of {name} is not shown: {error.message}")
    return found


def _log(
    logs: HeldDirectory, name: str, size: int, part: int, growth: Growth, clock: PlanClock
) -> dict[str, Any]:
    lines: list[list[Any]] = []
    left_out = max(size - part, 0)
    with logs.reading(f"{name}{SUFFIX}", ANY_BYTES) as file:
        if left_out:
            lines += (shown_line(one, clock) for one in lines_of(file, name, growth, 0, part // 4))
            lines.append([None, None, f"… some {left_out:,} bytes are left out here …"])
            begin = size - (part - part // 4)
            lines += (shown_line(one, clock) for one in lines_of(file, name, growth, begin, size))
        else:
            lines += (shown_line(one, clock) for one in lines_of(file, name, growth, 0, size))
    return {"instance": name, "bytes": size, "left_out_bytes": left_out, "lines": lines}


def shown_line(line: LogRecord, clock: PlanClock) -> list[Any]:
    text = line.text
    if len(text) > MOST_CHARACTERS:
        more = len(text) - MOST_CHARACTERS + line.cut
        text = f"{text[:MOST_CHARACTERS]}… ({more} more characters)"
    return [*(_plan(at, clock) for at in (line.from_ns, line.until_ns)), text]


def _plan(at_ns: int | None, clock: PlanClock) -> int | None:
    return None if at_ns is None else clock.plan_time(at_ns)


def _growth(directory: HeldDirectory, names: frozenset[str], notes: list[str]) -> dict[str, Growth]:
    found: dict[str, Growth] = {}
    try:
        for name, size, from_ns, until_ns in _moments(directory, names):
            growth = found.setdefault(name, Growth())
            growth.add(size, from_ns, until_ns)
            if len(growth) > MOST_MOMENTS:
                growth.thin()
    except RunError as error:
        notes.append(f"lines of logs have no times from some moment on: {error.message}")
    return found


def _moments(
    directory: HeldDirectory, names: frozenset[str]
) -> Iterator[tuple[str, int, int, int]]:
    """Instance, length of its log, the bounds of the moment."""
    if not directory.has(LOG_TIMES):
        return
    whole = stride(directory, LOG_TIMES) == 1
    before_ns: int | None = None
    for row in read_some(directory, LOG_TIMES):
        from_ns = row["from_ns"] if whole or before_ns is None else before_ns
        for name, size in row["bytes"].items():
            if name in names:
                yield name, size, from_ns, row["elapsed_ns"]
        before_ns = row["elapsed_ns"]
