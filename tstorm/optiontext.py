"""The options of a run as a command line says them: what `tstorm run` is to be given again.

Input: RunOptions. Output: arguments for each option that is not as by default, in the order of the
record. Faults are for tests and have no option; they are left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from runtime.options import DEFAULTS, NEVER, PREFERRED, RunOptions
from runtime.thresholds import BYTES, NS, PPB, PPM, THRESHOLDS
from tstorm import units

_TIMES = {
    "until_ns": "--until",
    "start_at_ns": "--start-at",
    "spin_limit_ns": "--spin-limit",
    "scatter_ns": "--scatter",
    "clock_budget_ns": "--clock-budget",
    "max_lateness_ns": "--max-lateness",
}
_WORDS = {
    "pace": "--pace",
    "time": "--time",
    "on_spin": "--on-spin",
    "datapath": "--datapath",
    "engine_threads": "--engine-threads",
    "hosts": "--hosts",
    "backend": "--backend",
    "nodes": "--nodes",
    "on_agent_loss": "--on-agent-loss",
    "require": "--require",
}
_FLAGS = {
    "allow_spoofing": "--allow-spoofing",
    "probes": "--probes",
    "packets": "--packets",
    "fail_on_exit": "--fail-on-exit",
    "fail_fast": "--fail-fast",
    "discard_instances": "--discard-instances",
}


def arguments(options: RunOptions) -> list[str]:
    before, now = DEFAULTS.to_record(), options.to_record()
    return [one for name in now if now[name] != before[name] for one in _argument(name, now[name])]


def _argument(name: str, value: Any) -> Iterator[str]:
    if name in _TIMES:
        yield from (_TIMES[name], units.duration(value))
    elif name in _WORDS:
        yield from (_WORDS[name], str(value))
    elif name in _FLAGS:
        yield _FLAGS[name] if value else _FLAGS[name].replace("--", "--no-", 1)
    elif name in _OTHERS:
        yield from _OTHERS[name](value)


def _clock(value_ns: int) -> list[str]:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value_ns // 1000)
    return ["--clock-start", start.isoformat().replace("+00:00", "Z")]


def _images(value: str) -> list[str]:
    return [{PREFERRED: "--images", NEVER: "--programs"}[value]]


def _cpu(value: int) -> list[str]:
    return ["--cpu", f"model={(Decimal(value) / 10**9).normalize():f}"]


def _thresholds(value: Mapping[str, int]) -> list[str]:
    shown: Mapping[str, Callable[[int], str]] = {
        NS: units.duration,
        BYTES: units.size,
        PPB: units.probability,
        PPM: lambda ppm: units.probability(ppm * 1000),
    }
    return [
        part
        for name, figure in sorted(value.items())
        for part in ("--threshold", f"{name}={shown[THRESHOLDS[name].unit](figure)}")
    ]


_OTHERS: Mapping[str, Callable[[Any], list[str]]] = {
    "clock_start_ns": _clock,
    "images": _images,
    "cpu_ppb": _cpu,
    "thresholds": _thresholds,
}
UNSAID = frozenset({"version", "faults", "ports", "period_ns"})  # no command line has them


def line(words: Sequence[str]) -> str:
    """Words as a shell takes them."""
    return shlex.join(words)
