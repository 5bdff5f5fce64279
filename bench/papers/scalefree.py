"""Table 4 of the Kollaps paper: the error of round trips in scale-free networks.

A third of the elements are bridges (tests/plan/topologies.py); each instance sends an echo once a
second to another one. Every round trip is held against the sum of the latencies of its path; the
figure is the mean of the squared errors in ms², of the probes sent while every program runs: to
start and to end hundreds of them takes the processors. 1,000 and 2,000 elements are hop-exact, one
engine with every link; 4,000 are over hosts, with a path for each pair (path mode). Of the
instances 250 are joined, which is what two processors carry, the others are bridges.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.errors import BenchError
from bench.papers.context import EXACT, HOSTS, Context
from bench.papers.rows import BELOW, VIRTUAL, fold, goal, row
from bench.papers.theory import mean_squared
from bench.tables import Record
from compiler.plan.reader import read_plan
from tests.plan.topologies import instances, scale_free
from tests.runs.runlog import Planned, RunLog

LIMIT = 0.005
PAPER = {1000: "0.0261, Mininet 0.0079", 2000: "0.0384", 4000: "0.0721"}
# Elements, where, and how many of the instances are joined.
CASES = ((1000, EXACT, 250), (2000, EXACT, 250), (4000, HOSTS, 250))
VIRTUAL_TOO = 1000  # a program takes its time there, and larger networks have more programs
_QUICK_JOINED = 40
_SETTLE_S = 4.0  # after time 0; programs start one after the other
_ENDING_S = 3.0  # before the first program has sent its last probe
_USUAL_MS = 0.2  # what stacks and sleeping processors add to a round trip here is less
_STRIDE = 7  # whom an instance asks: a prime number of names further


def text(size: int, joined: int, seconds: int, interval_s: float = 1.0) -> str:
    """Instances that are not joined are bridges instead: elements all the same, without paths of
    their own."""
    lines = ["network ipv4", "start when ready"]
    count = round(seconds / interval_s)
    for line in scale_free(size, events=0).splitlines():
        if found := re.match(r"service n(\d+) ", line):
            number = int(found[1])
            other = (number + _STRIDE) % joined
            program = f"tprobe rtt n{other} -4 --mode icmp --count {count} --interval {interval_s}s"
            service = f'service n{number} exec="{program} --each"'
            lines.append(service if number < joined else f"bridge n{number}")
        elif line.startswith("link "):
            lines.append(" ".join(word for word in line.split() if not _unsteady(word)))
        elif not line.startswith("at "):
            lines.append(line)
    return "\n".join([*lines, f"at {seconds + 5}s quit", ""])


def _unsteady(word: str) -> bool:
    return word.startswith(("jitter=", "loss=", "up=", "down="))


def errors_ms(run: Path, joined: int, seconds: float) -> list[float]:
    """Measured less theoretical, of every probe while everybody is there."""
    plan = read_plan(run / "plan")
    log, found = RunLog(run), []
    for number in range(joined):
        name, other = f"n{number}.0", f"n{(number + _STRIDE) % joined}.0"
        wanted = Planned(plan, name, other).at(_SETTLE_S).rtt_ms
        window = _SETTLE_S, seconds - _ENDING_S
        probes = [one for one in log.probes(name) if window[0] <= one.sent_s <= window[1]]
        found += [probe.rtt_ms - wanted for probe in probes if probe.rtt_ms is not None]
    return found


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    for size, place, most in CASES:
        joined = min(instances(size), most, _QUICK_JOINED if context.quick else size)
        seconds = 12 if context.quick else 30
        source = context.folder / f"scalefree-{size}.tdl"
        source.write_text(text(size, joined, seconds))
        for where in context.places(place, *(VIRTUAL,) * (size == VIRTUAL_TOO)):
            with context.attempt(rows, f"{size} elements", where):
                run = context.run(source, where)
                rows.append(
                    _row(size, joined, where, errors_ms(run, joined, seconds), context.why(run))
                )
    context.cannot["Mininet, Maxinet at this size"] = (
        "their delays are netem's, which this kernel lacks; under user-mode Linux (one processor, "
        "timers 0.3 ms late) the error would be that machine's"
    )
    return fold(fold(rows, EXACT), HOSTS)


def _row(size: int, joined: int, where: str, errors: list[float], why: str) -> Record:
    if not errors:
        raise BenchError("no probe was answered")
    worst = max(errors, key=abs)
    return row(
        f"{size} elements, {joined} of {instances(size)} instances",
        where,
        "ms²",
        mean_squared(errors),
        None,
        goal=goal(BELOW, LIMIT),
        paper=PAPER[size],
        why="; ".join(filter(None, (why, _single(errors)))),
        shown=f"{mean_squared(errors):.5f} ms², largest {worst:+.3f} ms, {len(errors)} probes",
    )


def _single(errors: list[float]) -> str:
    """Whether a few round trips make the figure, which counts squares; else ''."""
    usual = [error for error in errors if abs(error) <= _USUAL_MS]
    if len(usual) in (0, len(errors)):
        return ""
    return (
        f"{len(errors) - len(usual)} of {len(errors)} round trips were more than {_USUAL_MS} ms "
        f"off; the others make {mean_squared(usual):.5f} ms²"
    )
