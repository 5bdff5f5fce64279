"""Mutated run directories: reading one ends in an answer or a RunError, soon, and shows no control
character; closing one writes to nothing else.

    python -m tests.fuzz.fuzz_rundir [--seconds N] [--seed N]

Bytes are flipped, cut and copied; JSON values are replaced, removed and moved; files become links,
pipes, directories and holes. Everything that reads a run directory then does. Prints the seed of
the first failure and exits 1.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import io
import json
import os
import random
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from runtime.errors import RunError
from runtime.judge.run_end import RunEnd
from runtime.launch import cleanup, run_status
from runtime.launch.registry import RunRecord
from runtime.page.page_file import render
from runtime.results import event_comparison, everything
from runtime.results.summary import summarise
from runtime.rundir import rundir
from runtime.system import procs
from tests.fuzz.seeds import Words, mutate_bytes, run
from tests.runtime import recorded
from tstorm import output
from tstorm.command_support import options_of
from tstorm.commands import inspect as inspecting

STRANGE: tuple[Any, ...] = (
    0, 1, -1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30, True, None, 0.5, 1e999, float("nan"), "",
    "a.0", "a->b", "\ud800", "\n", "\x1b[2J", "\u202e", "\x00", "x" * 300, [], {}, [[]], [0, "up"],
    {"a": {}}, [[[[1]]]], "failed", "exit",
)  # fmt: skip
TEXTS = (
    b"\x1b",
    b"\xff",
    b"\n",
    b"\x00",
    b"[" * 5000,
    b'{"a":' * 2000,
    b"9" * 5000,
    b"NaN",
    b"1e999",
)
SLOW_SECONDS = 5.0  # of CPU time: a busy machine is no fault
NOBODY = procs.Process(1, 0)


@cache
def plan() -> Plan:
    return compile_source(recorded.TDL, filename="exp.tdl", seed=None).plan


@cache
def untouched() -> Path:
    place = tempfile.TemporaryDirectory(prefix="tstorm-fuzz-")
    atexit.register(place.cleanup)
    return recorded.make(Path(os.path.realpath(place.name)) / "run")


def containers(value: Any) -> list[Any]:
    """Every dictionary and list in a document that holds something."""
    found, queue = [], [value]
    while queue:
        one = queue.pop()
        if isinstance(one, (dict, list)) and one:
            found.append(one)
            queue.extend(one.values() if isinstance(one, dict) else one)
    return found


def mutate_value(rnd: random.Random, value: Any) -> Any:
    value = copy.deepcopy(value)
    for _ in range(rnd.choice([1, 1, 2])):
        places = containers(value)
        if not places:
            return value
        place = rnd.choice(places)
        key = rnd.choice(list(place)) if isinstance(place, dict) else rnd.randrange(len(place))
        kind = rnd.randrange(4)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, dict):
            place[rnd.choice(["seq", "kind", "error", "columns", "x\n"])] = rnd.choice(STRANGE)
        elif kind == 2:
            place[key] = copy.deepcopy(rnd.choice(places))  # never within itself
        else:
            place[key] = rnd.choice(STRANGE)
    return value


def mutate_json(rnd: random.Random, name: str, data: bytes) -> bytes:
    if not name.endswith(".jsonl"):
        return json.dumps(mutate_value(rnd, json.loads(data))).encode()
    lines = data.splitlines(keepends=True)
    at = rnd.randrange(len(lines))
    lines[at] = json.dumps(mutate_value(rnd, json.loads(lines[at]))).encode() + b"\n"
    return b"".join(lines)


def spoil(rnd: random.Random, path: Path, victim: Path) -> None:
    """Puts something else in the place of a file."""
    kind = rnd.randrange(6)
    if kind < 5:
        path.unlink()
    if kind == 0:
        path.symlink_to(rnd.choice([victim, Path("/dev/zero"), Path("/nowhere")]))
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        with path.open("wb") as file:
            file.truncate(rnd.choice([1 << 21, 1 << 40]))
    else:
        path.with_name(rnd.choice([".manifest.json.new", ".manifest.reserve"])).symlink_to(victim)


def make(rnd: random.Random, directory: Path, victim: Path) -> None:
    files = recorded.files()
    if rnd.random() < 0.5:
        files["manifest.json"] = files["manifest.json"].replace(b'"outcome"', b'"_outcome"')
    name = rnd.choice(sorted(files))
    kind = rnd.random()
    if kind < 0.6:
        files[name] = mutate_json(rnd, name, files[name])
    elif kind < 0.9:
        files[name] = mutate_bytes(rnd, files[name], TEXTS)
    for one, data in files.items():
        (directory / one).write_bytes(data)
    if kind >= 0.9:
        spoil(rnd, directory / name, victim)


def read(directory: Path) -> int:
    """How many of those who read a run directory have got an answer."""
    answers = 0
    for reader in (show, replay, sum_up, close):
        with contextlib.suppress(RunError):
            reader(directory)
            answers += 1
    return answers


def show(directory: Path) -> None:
    found = run_status._finished(rundir.recorded(directory))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        inspecting._finished(found)
    hidden = [c for c in said.getvalue() if not c.isprintable() and c != "\n"]
    assert not hidden, f"a terminal was shown {hidden[:5]}"
    output.to_json(found)


def replay(directory: Path) -> None:
    options_of({}, rundir.recorded(directory).manifest())
    log = event_comparison.load(directory)
    assert {one.what for one in event_comparison.differ(log, log)} <= {"start"}  # told in any case
    check_everything(directory)


def check_everything(directory: Path) -> None:
    """Against itself, and against a run that nobody has touched."""
    run = rundir.recorded(directory)
    everything.read(run)
    same, _ = everything.differ(run, run, plan())
    assert same == []
    for one in everything.differ(rundir.recorded(untouched()), run, plan())[0]:
        output.to_json(one.to_record())


def sum_up(directory: Path) -> None:
    held = rundir.RunDirectory.hold(directory)
    summary = summarise(held, plan(), 2, RunEnd("completed"))
    rundir.encode(render(held, recorded.MANIFEST, summary))
    rundir.encode_json(summary)


def close(directory: Path) -> None:
    record = RunRecord(recorded.MANIFEST["run_id"], str(directory), "", NOBODY, None)
    unclosed = cleanup._close_directory(record)
    if unclosed:
        raise RunError(unclosed)


def attempt(seed: int) -> bool:
    """True if every reader got an answer. AssertionError if one did what it must not."""
    rnd = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="tstorm-fuzz-") as name:
        place = Path(os.path.realpath(name))
        victim = place / "victim"
        victim.write_text("precious")
        (place / "run").mkdir()
        make(rnd, place / "run", victim)
        began = time.process_time()
        answers = read(place / "run")
        assert time.process_time() - began < SLOW_SECONDS, "too slow"
        assert victim.read_text() == "precious", "somebody's file was overwritten"
    return answers == 4


def main() -> int:
    closing = "{count} mutated run directories, {true} usable, the others refused"
    return run("fuzz_rundir", __doc__, attempt, Words("usable", "refused", closing))


if __name__ == "__main__":
    sys.exit(main())
