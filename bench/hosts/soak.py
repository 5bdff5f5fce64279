"""A long run over four hosts: does anything grow, and does anything drift?

Runs the experiment of bench.hosts.soak_scene in a process of its own, looks at its processes every
10 s and at its devices once a minute, reads what the run recorded, and compares the last quarter
with the first one after a warm-up of a fifth. What is judged and by which bound:
bench.hosts.soak_judge.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.hosts import soak_watch
from bench.hosts.soak_scene import COUNTED_S, HOSTS, MINUTE_S, QUIET_S, STAYING, text
from bench.tables import Record
from compiler.plan.reader import read_plan
from runtime.agent.share.solver import UNLIMITED
from tests.runs.runlog import NS_PER_S, RunLog
from tests.runs.scenes import model, numbers

EVERY_S = 10
WARM_UP = 0.2  # of the time
LEAST_MINUTES = 3
READY_S = 60
COUNTS = ("processes", "zombies", "namespaces", "devices", "qdiscs", "filters")


def measure(folder: Path, minutes: int) -> list[Record]:
    """One row. BenchError if the run fails or a part of it is replaced."""
    if minutes < LEAST_MINUTES:
        raise BenchError(f"a soak of {minutes} minutes says nothing; give --minutes 3 or more")
    source, run = folder / "soak.tdl", folder / "soak"
    source.write_text(text(minutes))
    argv = [sys.executable, "-m", "tstorm", "run", str(source), "--out", str(run), "--quiet"]
    argv += ["--hosts", str(HOSTS)]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        samples = _watch(process, run, minutes)
        process.wait(120)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise BenchError(f"the soak ended with {process.returncode}: {_reason(run)}")
    return [{"minutes": minutes, "hosts": HOSTS, **_found(run, samples, minutes)}]


def _watch(process: subprocess.Popen[bytes], run: Path, minutes: int) -> list[Record]:
    """A record every 10 s, from 5 s after the start of the timeline to 5 s before its end."""
    start_s = _started(process, run)
    parts = soak_watch.roles(process.pid)
    samples: list[Record] = []
    for at_s in range(EVERY_S // 2, minutes * MINUTE_S, EVERY_S):
        time.sleep(max(start_s + at_s - time.monotonic(), 0))
        if process.poll() is not None:
            raise BenchError(f"the soak ended after {at_s} s with {process.returncode}")
        sample = {"at_s": at_s, **soak_watch.processes(process.pid, parts)}
        if at_s % MINUTE_S == COUNTED_S + EVERY_S // 2:
            sample |= soak_watch.networks(process.pid)
            print(sample, file=sys.stderr, flush=True)
        samples.append(sample)
    (run.parent / "soak-samples.json").write_text(json.dumps(samples))
    return samples


def _started(process: subprocess.Popen[bytes], run: Path) -> float:
    """CLOCK_MONOTONIC of the start of the timeline in s, once it is over."""
    end = time.monotonic() + READY_S
    events = run / "events.jsonl"
    while not (events.exists() and events.stat().st_size):
        if time.monotonic() > end or process.poll() is not None:
            raise BenchError(f"the soak did not start within {READY_S} s")
        time.sleep(0.1)
    header = json.loads(events.read_text().splitlines()[0])
    return int(header["start_monotonic_ns"]) / NS_PER_S


def _reason(run: Path) -> str:
    path = run / "summary.json"
    return str(json.loads(path.read_text()).get("reason", "")) if path.exists() else "no summary"


def quarters(minutes: int) -> tuple[range, range]:
    """Seconds of the first quarter after the warm-up, and of the last, both in whole minutes."""
    quarter = max(minutes // 4, 1)
    first = max(round(minutes * WARM_UP), 1)
    return (
        range(first * MINUTE_S, (first + quarter) * MINUTE_S),
        range((minutes - quarter) * MINUTE_S, minutes * MINUTE_S),
    )


def _found(run: Path, samples: list[Record], minutes: int) -> Record:
    first, last = ([s for s in samples if s["at_s"] in window] for window in quarters(minutes))
    return {
        "samples": len(samples),
        "parts": {name: _growth(name, first, last) for name in samples[0]["parts"]},
        "counts": {name: [_least(window, name) for window in (first, last)] for name in COUNTS},
        **_steps(run, minutes),
        "share_errors": _shares(run, minutes),
        "clock": _clocks(run),
    }


def _least(window: Sequence[Record], name: str) -> int:
    """What is there whatever else comes and goes: only a leak raises it."""
    return min(int(sample[name]) for sample in window if name in sample)


def _growth(name: str, first: Sequence[Record], last: Sequence[Record]) -> Record:
    found = [[sample["parts"][name] for sample in window] for window in (first, last)]
    memory = [round(statistics.median(part["rss_kib"] for part in parts)) for parts in found]
    counts = {key: [_least(parts, key) for parts in found] for key in ("descriptors", "threads")}
    return {"rss_kib": memory, **counts}


def _steps(run: Path, minutes: int) -> Record:
    """How late steps took effect, in both quarters, and how far hosts were apart."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    planned = [event for event in events if "seq" in event and event["planned_ns"] > 0]
    late: list[list[float]] = [
        [
            (event["network_ns"] - event["due_ns"]) / 1e6
            for event in planned
            if event["due_ns"] // NS_PER_S in window
        ]
        for window in quarters(minutes)
    ]
    spread = [event["network_spread_ns"] / 1e6 for event in planned]
    return {
        "steps": len({event["due_ns"] for event in planned}),
        "events": len(planned),
        "said_late": sum(event["kind"] == "late" for event in events),
        "late_ms_median": [round(statistics.median(times), 3) for times in late],
        "late_ms_p99": [round(_p99(times), 3) for times in late],
        "spread_ms_p99": round(_p99(spread), 3),
    }


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]


def _shares(run: Path, minutes: int) -> list[float]:
    """For each minute, in its quiet part: the larger deviation of the two flows from the model."""
    plan, log = read_plan(run / "plan"), RunLog(run)
    at = numbers(plan)
    pairs = {(at[f"{client}.0"], at[f"{server}.0"]): UNLIMITED for client, server in STAYING}
    rates = {client: log.intervals(f"{client}.0") for client, _ in STAYING}
    found = []
    for minute in range(minutes):
        low, high = (minute * MINUTE_S + second for second in QUIET_S)
        wanted, _ = model(plan, low * NS_PER_S, pairs)
        errors = []
        for client, server in STAYING:
            lines = [i.ip_bps for i in rates[client] if low <= i.start_s and i.end_s <= high]
            if not lines:
                raise BenchError(f"{client} said nothing in minute {minute}")
            want = wanted[at[f"{client}.0"], at[f"{server}.0"]]
            errors.append(abs(statistics.mean(lines) / want - 1))
        found.append(round(max(errors), 4))
    return found


def _clocks(run: Path) -> list[Record]:
    hosts = json.loads((run / "manifest.json").read_text())["hosts"]
    names = ("drift_ppb", "largest_bound_ns")
    return [{"host": host["name"], **{name: host.get(name) for name in names}} for host in hosts]
