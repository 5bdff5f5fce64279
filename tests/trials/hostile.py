"""Hostile texts, plans and run directories, given to every command that reads them.

    python -m tests.trials.hostile [--rounds N | --seconds N] [--seed N]

A command ends with 0 to 3, without a traceback, within TIME_SECONDS, and leaves no file
half-written: an output is whole (what reads plans reads it) or it is not there. The commands are
called in this process, as tests of commands do; what would begin a run is only called with what is
refused.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import click
from click.testing import Result

from compiler.plan.format import PlanError
from compiler.plan.reader import read_plan
from tests.cli.support import status, tstorm
from tests.fuzz import fuzz_plan, fuzz_tdl
from tests.fuzz.seeds import mutate_bytes
from tests.trials import rounds
from tstorm.exit_codes import CommandError

TEXT, PLAN, RUN = KINDS = ("text", "plan", "run")
TIME_SECONDS = 20
OUT = "made.plan"
EXITS = {0, 1, 2, 3}
TEXTS = (
    ("check", "{}"),
    ("check", "--format", "json", "{}"),
    ("compile", "{}", "--output", OUT),
    ("events", "{}"),
    ("paths", "{}", "--at", "1s"),
    ("explain", "{}", "--event", "0"),
    ("diff", "{}", "good.tdl"),
    ("render", "{}", "--output", "made.yaml"),
    ("fmt", "--check", "{}"),
)
PLANS = (
    ("events", "{}"),
    ("events", "--format", "json", "{}"),
    ("paths", "{}"),
    ("explain", "{}", "--from", "server.0", "--to", "server.1"),
    ("explain", "{}", "--event", "1"),
    ("diff", "{}", "good.tdl"),
    ("diff", "good.tdl", "{}"),
    ("render", "{}", "--output", "made.yaml"),
    ("render", "{}", "--format", "compose", "--output", "made.yaml"),
    ("inspect", "{}"),
    ("replay", "{}", "--check"),
)
RUNS = (
    ("inspect", "{}"),
    ("inspect", "--format", "json", "{}"),
    ("replay", "{}", "--check"),
    ("events", "{}"),
    ("explain", "{}", "--event", "1"),
    ("diff", "{}", "good.tdl"),
    ("render", "{}", "--output", "made.yaml"),
    ("destroy", "{}"),
)
GOOD = """seed 1
service server img=x replicas=2 exec="sleep 9"
bridge s1
link server--s1 latency=1ms up=10Mb symmetric
at 1s server crash 1
at 2s server--s1 set latency=5ms
at 3s quit
"""


class HangError(Exception):
    """The command did not end in time."""


def attempt(rnd: random.Random, kind: str = "") -> str:
    """A `kind` of input, any if none is given."""
    with tempfile.TemporaryDirectory(prefix="tstorm-trial-") as name, _in(Path(name)):
        Path("good.tdl").write_text(GOOD)
        kind = kind or rnd.choices(KINDS, (4, 3, 3))[0]
        target, command = _draw(rnd, kind)
        before = _files()
        words = [word.replace("{}", target) for word in command]
        result = _called(words)
        _judge(words, result)
        _whole(before, words, result)
    return f"{kind} {'taken' if status(result) == 0 else 'refused'}"


def _draw(rnd: random.Random, kind: str) -> tuple[str, tuple[str, ...]]:
    """The input's name, and a command for it."""
    if kind == TEXT:
        Path("bad.tdl").write_bytes(_text(rnd))
        return "bad.tdl", rnd.choice(TEXTS)
    if kind == PLAN:
        _write(Path("bad.plan"), fuzz_plan.mutant(rnd))
        return "bad.plan", _without_a_run("bad.plan", rnd, PLANS)
    write_run_directory(Path("bad.run"), rnd, damaged=rnd.randint(1, 3))
    if rnd.random() < 0.3:
        shutil.rmtree("bad.run/plan")
        _write(Path("bad.run/plan"), fuzz_plan.mutant(rnd))
    if rnd.random() < 0.2:
        _misplace(
            rnd.choice(sorted(path for path in Path("bad.run").rglob("*") if path.is_file())), rnd
        )
    return "bad.run", _without_a_run("bad.run/plan", rnd, RUNS)


def _text(rnd: random.Random) -> bytes:
    if rnd.random() < 0.2:
        return fuzz_tdl.noise(rnd, rnd.choice([1, 100, 20_000]), rnd.randrange(4))
    starts = rnd.choice([fuzz_tdl.SEEDS, (GOOD,)])
    text = fuzz_tdl.mutate(rnd, starts).encode(errors="surrogatepass")
    return text if rnd.random() < 0.9 else mutate_bytes(rnd, text)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def write_run_directory(folder: Path, rnd: random.Random, *, damaged: int) -> None:
    """What a run leaves, with so many of its files damaged."""
    files = {name: data.encode() for name, data in _recorded().items()}
    for name in rnd.sample(sorted(files), damaged):
        files[name] = _damaged(rnd, files[name])
    _write(folder, files)
    _write(folder / "plan", fuzz_plan.base(rnd))


def _misplace(path: Path, rnd: random.Random) -> None:
    """A file that is missing, or something else."""
    path.unlink()
    kind = rnd.randrange(4)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(path.name)
    elif kind == 2:
        os.mkfifo(path)


def _recorded() -> dict[str, str]:
    options = {
        "clock_budget_ns": 5_000_000, "datapath": "auto", "faults": {}, "hosts": 0,
        "on_agent_loss": "keep", "pace": 1, "period_ns": 25_000_000, "ports": "auto",
        "start_at_ns": 0, "until_ns": None,
    }  # fmt: skip
    manifest = {
        "format": "thunderstorm-run", "version": 1, "run_id": "exp-20260101T000000Z",
        "experiment": "exp", "plan_digest": "0" * 64, "plan_tool": "0.1.0", "seed": 1,
        "outcome": "completed", "message": "", "options": options, "scheduling": "rr",
        "started": "20260101T000000Z", "start_monotonic_ns": 10**12, "setup_ns": 10**8,
        "ports": {"server.0": "tap"}, "stamps": {}, "engine": {}, "hosts": [],
        "machine": {"cores": 2, "kernel": "6.1", "python": "3.11.2"},
    }  # fmt: skip
    event = {
        "seq": 0, "kind": "join", "target": "server.0", "args": {}, "line": 5, "planned_ns": 0,
        "due_ns": 0, "applied_ns": 1000, "lag_ns": 1000, "network_ns": 900, "started_ns": 2000,
    }  # fmt: skip
    lag = {"count": 2, "max_ns": 9, "p50_ns": 1, "p99_ns": 8}
    counted = ("offered", "delivered")
    pair = {
        "src": "server.0", "dst": "server.1",
        "drop_queue": 0, "drop_loss": 0, "drop_down": 0, "drop_route": 0,
        **{f"{what}_{unit}": 1 for what in counted for unit in ("pkts", "bytes")},
    }  # fmt: skip
    summary = {
        "outcome": "completed", "message": "", "seed": 1, "plan_digest": "0" * 64, "exits": [],
        "events": {
            "applied": 2, "planned": 2, "by_kind": {"join": 2}, "lag": lag, "network_lag": lag,
        },
        "engine": {"rx_frames": 5, "late_p99_ns": 7}, "links": [], "pairs": [pair], "hosts": [],
    }  # fmt: skip
    return {
        "manifest.json": json.dumps(manifest),
        "events.jsonl": json.dumps(event) + "\n" + json.dumps({**event, "seq": 1}) + "\n",
        "summary.json": json.dumps(summary),
        "samples.jsonl": json.dumps({"columns": {"links": ["link"], "pairs": ["src"]}}) + "\n",
    }


def _damaged(rnd: random.Random, data: bytes) -> bytes:
    kind = rnd.randrange(6)
    if kind == 0:
        return mutate_bytes(rnd, data)
    if kind == 1:
        return rnd.choice(
            [b"", b"[]", b"null", b"7", b"{}", b"\xff\xfe", b"[" * 100_000, b"\0" * 9]
        )
    if kind == 2:
        escape = json.dumps("\x1b[2J\n\ud800")[1:-1].encode()
        return data.replace(b"exp", escape).replace(b"completed", escape)
    return fuzz_plan.mutate_json(rnd, data)


def _without_a_run(
    plan: str, rnd: random.Random, commands: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Any of them; what would begin a run only for a plan that is refused."""
    chosen = rnd.choice(commands)
    if chosen[0] == "replay":
        try:
            read_plan(Path(plan)).verify(deep=True)
        except (PlanError, OSError):
            return chosen
        return commands[0]
    return chosen


# -- the command -----------------------------------------------------------------------------------


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    """There, with state of its own."""
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    state = folder / ".own"
    state.mkdir(mode=0o700)
    os.environ |= {"XDG_STATE_HOME": str(state), "XDG_RUNTIME_DIR": str(state)}
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ |= environment


def _called(words: list[str]) -> Result:
    def late(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"not within {TIME_SECONDS} s: tstorm {' '.join(words)}")

    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(TIME_SECONDS)
    try:
        return tstorm(*words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


def _judge(words: list[str], result: Result) -> None:
    """Everything but what tstorm/__main__.py turns into an exit code is a traceback."""
    error = result.exception
    known = isinstance(error, CommandError | SystemExit | click.ClickException)
    if error is not None and not known:
        text = "".join(traceback.format_exception(error))
        raise AssertionError(f"tstorm {' '.join(words)}: {text}")
    assert status(result) in EXITS, (words, status(result))
    assert "\x1b" not in result.output.replace("\x1b[0m", ""), (words, result.output[:500])


def _files() -> set[Path]:
    return {path for path in Path().rglob("*") if ".own" not in path.parts}


def _whole(before: set[Path], words: list[str], result: Result) -> None:
    """What was made is complete and was asked for."""
    made = _files() - before
    if status(result) != 0:
        assert made == set(), (words, made)
        return
    outputs = {words[at + 1] for at, word in enumerate(words) if word == "--output"}
    assert {path.parts[0] for path in made} <= outputs, (words, made)
    if Path(OUT).is_dir():
        read_plan(Path(OUT)).verify(deep=True)
        shutil.rmtree(OUT)


def main() -> int:
    return rounds.run("hostile", __doc__, attempt)


if __name__ == "__main__":
    sys.exit(main())
