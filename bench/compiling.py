"""The compiler: 100,000 events out of 10,000 statements, Listing 1 with start-up, and what the
firings of a `when` take of a processor, one after the other in one plan."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench import ROOT
from bench.errors import BenchError
from bench.tables import Record, Table

_REACTING = """\
service db replicas=3 img=x
service client img=x
bridges s1 s2
link db--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
when log db.* "became leader" every at most 500 { it disconnect for 500ms }
at 3000s quit
"""
_TO_COME = "".join(
    f"at {2000 + 10 * number}s s1--s2 set latency={number % 2 + 11}ms\n" for number in range(20)
)
_WHOLE = ", with more to come, compiled as a whole"
_TOGETHER = 15  # firings of which the mean is told

_Result = TypeVar("_Result")

TABLES = (Table({"Compiler": "{what}", "time": "{seconds:.3f} s"}),)


def measure(quick: bool) -> list[Record]:
    """Rows of {what, seconds}."""
    rows = _timeline(1_000 if quick else 10_000)
    rows += _firings(1 if quick else 4)
    rows.append({"what": "tstorm compile examples/listing1.tdl", "seconds": _listing(quick)})
    return rows


def _timeline(statements: int) -> list[Record]:
    """Statements that disconnect and reconnect ten of a hundred instances in turn."""
    from compiler.pipeline import compile_source, elaborate
    from tdl.diagnostics import Sink
    from tdl.parser import parse

    lines = [
        "service s exec=true replicas=100",
        "bridge b",
        "link s--b latency=1ms up=1Gb symmetric",
    ]
    for index in range(statements):
        action = "disconnect" if index % 2 == 0 else "reconnect"
        lines.append(f"at {index + 1}s s {action} 10")
    text = "\n".join(lines) + "\n"
    parsed, parsing = _timed(lambda: parse(text)[0])
    (_, timeline), expanding = _timed(lambda: elaborate(parsed, Sink()))
    _, whole = _timed(lambda: compile_source(text))
    made = f"{statements} statements, {len(timeline.events)} events"
    return [
        {"what": f"parse {made}", "seconds": parsing},
        {"what": f"check and expand {made}", "seconds": expanding},
        {"what": f"compile {made}, with all snapshots", "seconds": whole},
    ]


def _firings(parts: int) -> list[Record]:
    """The reactions' process compiles one, and the driver reads what comes of it: where nothing
    else is still to come, where something is, and by the whole compiler."""
    from compiler import firing
    from compiler.kept_firings import KeptFirings
    from compiler.pipeline import compile_source
    from compiler.plan.parts.action_texts import Firing
    from compiler.plan.reader import decode
    from runtime.options import RunOptions
    from runtime.schedule import Schedule

    rows = []
    for how, text in (
        ("", _REACTING),
        (", with more to come", _REACTING + _TO_COME),
        (_WHOLE, _REACTING + _TO_COME),
    ):
        compiled = compile_source(text)
        when = firing.statements(compiled.plan)[0]
        kept = KeptFirings(compiled.plan, compiled.model, 1)
        plan = there = compiled.plan
        for part in range(parts):
            spent = 0
            for time_of in range(part * _TOGETHER + 1, (part + 1) * _TOGETHER + 1):
                began = time.process_time_ns()
                asked = (when, "db.0", Firing(1, time_of), time_of, time_of * 10**9)
                if how == _WHOLE:
                    found, _ = firing.fire(plan, *asked)
                    files, plan = found.files, found.plan
                else:
                    files, plan, _ = kept.fire(*asked)
                there = decode(files, before=there)
                Schedule(there, RunOptions())
                spent += time.process_time_ns() - began
            what = f"firings {part * _TOGETHER + 1} to {time_of} of a when, each{how}"
            rows.append({"what": what, "seconds": round(spent / _TOGETHER / 1e9, 4)})
    return rows


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    began = time.perf_counter()
    result = work()
    return result, round(time.perf_counter() - began, 4)


def _listing(quick: bool) -> float:
    """The best of several whole commands, interpreter start-up included."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        for turn in range(3 if quick else 10):
            out = Path(directory) / f"{turn}.plan"
            argv = [
                sys.executable,
                "-m",
                "tstorm",
                "compile",
                "examples/listing1.tdl",
                "-o",
                str(out),
            ]
            began = time.perf_counter()
            done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
            times.append(time.perf_counter() - began)
            if done.returncode != 0:
                raise BenchError(f"compiling listing1.tdl failed: {done.stderr.strip()}")
    return round(min(times), 4)
