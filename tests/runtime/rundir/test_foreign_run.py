"""A run directory is foreign data: whatever lies in it, readers answer soon, in words, in little
memory, and nobody's file is written to.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.judge.verdict import Judge
from runtime.launch import registry
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import CERTIFICATE_FORMAT, CERTIFICATE_VERSION, SAMPLES
from runtime.system import procs
from tests.fuzz.fuzz_rundir import attempt
from tests.runtime import recorded
from tests.runtime.support import ROOT, state

MEMORY_BYTES = 1 << 30  # of address space: a reader without bounds fails
DEADLINE_SECONDS = 180.0
ESCAPES = "\x1b[2J\x07\r\n\u202eevil"


def little() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def tstorm(place: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tstorm", *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT), **state(place)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE_SECONDS,
        preexec_fn=little,
    )


def refused(done: subprocess.CompletedProcess[bytes], *words: str) -> None:
    said = done.stderr.decode()
    assert done.returncode == 1, done
    assert said.startswith("error: "), said
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return recorded.make(tmp_path / "run")


def set_in(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


# -- what is no regular file of sane size -----------------------------------------------------


def sparse(path: Path) -> None:
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)


def zeros(path: Path) -> None:
    path.unlink()
    with path.open("wb") as file:
        file.truncate(12 << 20)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def deep(path: Path) -> None:
    path.write_bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n")


def depth_that_parses(path: Path) -> None:
    path.write_bytes(b'{"a":' + b"[" * 400 + b"]" * 400 + b"}\n")


def huge(path: Path) -> None:
    path.write_bytes(b'{"version": 1' + b"0" * 5000 + b"}\n")


def infinite(path: Path) -> None:
    path.write_bytes(b'{"version": 1e999, "seq": NaN}\n')


def no_text(path: Path) -> None:
    path.write_bytes(b'{"a": "\xff"}\n')


def crowded(path: Path) -> None:
    path.write_bytes(b"[" + b"[]," * 5_000_000 + b"[]]\n")


OBSTACLES = (
    *(sparse, zeros, link, pipe, folder),
    *(deep, depth_that_parses, huge, infinite, no_text, crowded),
)


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
def test_inspect_refuses_what_no_run_writes(
    run: Path, name: str, obstacle: Callable[[Path], None]
) -> None:
    obstacle(run / name)
    refused(tstorm(run.parent, "inspect", str(run)), str(run / name))


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl"])
def test_replay_refuses_it_before_anything_starts(
    run: Path, name: str, obstacle: Callable[[Path], None]
) -> None:
    obstacle(run / name)
    refused(tstorm(run.parent, "replay", str(run), "--check"), str(run / name))
    assert not (run.parent / "runs").exists()


def test_a_line_without_an_end_is_refused(run: Path) -> None:
    with (run / "events.jsonl").open("r+b") as file:
        file.truncate(900 << 20)  # a line of zeros
    done = tstorm(run.parent, "replay", str(run), "--check")
    refused(done, "events.jsonl:5: the line is longer than")


# -- what has not the shape of what is used ---------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"version": 2}, "version 2, newer than 1, which this release reads"),
        ({"version": "1"}, "version '1'"),
        ({"format": "x"}, "is not the manifest of a run"),
        ({"seed": None}, "seed must be an integer of 0 or more, not None"),
        ({"plan_digest": 5}, "plan_digest must be a text"),
        ({"options": []}, "options must be an object"),
        ({"options": {"pace": "fast"}}, "options: pace must be an integer, not 'fast'"),
        ({"options": {"warp": 9}}, "this release does not know the option 'warp'"),
        ({"options": {"pace": 0}}, "pace is 0"),
        ({"outcome": {}}, "outcome must be a text"),
    ],
)
def test_a_manifest_of_another_shape_is_refused_by_name(
    run: Path, values: dict[str, Any], words: str
) -> None:
    set_in(run / "manifest.json", **values)
    refused(tstorm(run.parent, "replay", str(run), "--check"), words)
    assert not (run.parent / "runs").exists()


@pytest.mark.parametrize("name", ["run_id", "plan_digest", "seed", "options", "experiment"])
def test_a_missing_key_is_named(run: Path, name: str) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest[name]
    (run / "manifest.json").write_text(json.dumps(manifest))
    for command in (["inspect", str(run)], ["replay", str(run), "--check"]):
        refused(tstorm(run.parent, *command), f"{name} is missing")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"links": [{"link": "x"}]}, "links[0].pkts is missing"),
        ({"pairs": {}}, "pairs must be a list"),
        ({"events": {"applied": 1, "planned": 1, "lag": {"p99_ns": "x"}}}, "events.lag.p99_ns"),
        ({"outcome": 1}, "outcome must be a text"),
    ],
)
def test_a_summary_of_another_shape_is_refused(
    run: Path, values: dict[str, Any], words: str
) -> None:
    set_in(run / "summary.json", **values)
    refused(tstorm(run.parent, "inspect", str(run)), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": 5}, "events.jsonl:1: kind must be a text, not 5"),
        ({"planned_ns": 1.5}, "planned_ns must be an integer"),
        ({"planned_ns": None}, "planned_ns must be an integer"),
        ({"args": {"x": {}}}, "args.x must be a text or number"),
        ({"seq": 1}, "holds event 1 twice"),
        ({"seq": 10**9}, "no plan has an event 1000000000"),
    ],
)
def test_an_event_of_another_shape_is_refused_before_anything_starts(
    run: Path, change: dict[str, Any], words: str
) -> None:
    events = [{**recorded.EVENTS[0], **change}, *recorded.EVENTS[1:]]
    (run / "events.jsonl").write_bytes(recorded.lines(events))
    refused(tstorm(run.parent, "replay", str(run), "--check"), words)
    assert not (run.parent / "runs").exists()


def test_a_verdict_that_was_edited_is_refused(run: Path) -> None:
    """In whichever of the two files, and by whoever reads a summary."""
    summary = json.loads((run / "summary.json").read_text())
    verdict = Judge().verdict()
    told = {**verdict, "state": "degraded", "reasons": [{"what": "path_late", "text": "late"}]}
    certificate = {"format": CERTIFICATE_FORMAT, "version": CERTIFICATE_VERSION, "verdict": told}
    certificate |= {"pairs": [], "events": [], "not_measured": []}
    (run / "summary.json").write_text(json.dumps({**summary, "verdict": told}))
    (run / "certificate.json").write_text(json.dumps(certificate))
    assert rundir.recorded(run).summary()["verdict"] == told
    (run / "summary.json").write_text(json.dumps({**summary, "verdict": verdict}))
    with pytest.raises(RunError, match=r"summary\.json and certificate\.json do not agree"):
        rundir.recorded(run).summary()


def test_keys_that_a_later_release_adds_are_tolerated(run: Path) -> None:
    set_in(run / "manifest.json", start_unix_ns=10**18, verdict={"is": "degraded"})
    set_in(run / "summary.json", verdict={"reasons": [1]})
    (run / "events.jsonl").write_bytes(
        recorded.lines([{"start_unix_ns": 10**18}, {"kind": "news"}, *recorded.EVENTS])
    )
    assert tstorm(run.parent, "inspect", str(run)).returncode == 0
    found = json.loads(tstorm(run.parent, "inspect", str(run), "--format", "json").stdout)
    assert found["manifest"]["verdict"] == {"is": "degraded"}


# -- what reaches a terminal ------------------------------------------------------------------


def test_what_a_run_says_does_nothing_to_a_terminal(run: Path) -> None:
    set_in(run / "manifest.json", run_id=ESCAPES, plan_digest=ESCAPES, outcome=ESCAPES)
    set_in(run / "manifest.json", message=ESCAPES)
    link = {**recorded.SUMMARY["links"][0], "link": ESCAPES}
    set_in(run / "summary.json", outcome=ESCAPES, message=ESCAPES, links=[link])
    done = tstorm(run.parent, "inspect", str(run))
    assert done.returncode == 0, done
    said = done.stdout.decode()
    assert said.count(r"\x1b[2J\x07\r\n\u202eevil") == 5, said
    assert set("\x1b\x07\r\u202e").isdisjoint(said)
    assert not [text for text in said.splitlines() if text.startswith("evil")]


def test_errors_about_a_run_do_nothing_to_a_terminal(run: Path) -> None:
    events = [{**recorded.EVENTS[0], ESCAPES: 1, "args": {ESCAPES: []}}]
    (run / "events.jsonl").write_bytes(recorded.lines(events))
    done = tstorm(run.parent, "replay", str(run), "--check")
    refused(done, r"\x1b[2J")
    assert set("\x1b\x07\r\u202e").isdisjoint(done.stderr.decode())
    assert len(done.stderr.splitlines()) == 2  # the error and its hint


def test_the_manifest_has_the_last_word(run: Path) -> None:
    """It is closed after the summary was written, and may say that something failed then."""
    set_in(run / "manifest.json", outcome="failed", message="no page")
    said = tstorm(run.parent, "inspect", str(run)).stdout.decode()
    assert ": failed\n" in said
    assert "reason: no page\n" in said


# -- what is written --------------------------------------------------------------------------


def killed(run: Path, directory: Path | None = None) -> None:
    """Registers the run as one whose processes are dead."""
    me = procs.identify(os.getpid())
    assert me is not None
    gone = procs.Process(me.pid, me.start - 1)
    run_id = json.loads((run / "manifest.json").read_text())["run_id"]
    record = registry.RunRecord(run_id, str(directory or run), str(run / "sock"), gone, None)
    claim = registry.register(record)
    assert claim is not None
    os.close(claim._lock)


@pytest.fixture
def unfinished(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in state(run.parent).items():
        monkeypatch.setenv(name, value)
    manifest = {key: value for key, value in recorded.MANIFEST.items() if key != "outcome"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    return run


def outcome(run: Path) -> str | None:
    found: str | None = json.loads((run / "manifest.json").read_text()).get("outcome")
    return found


@pytest.mark.parametrize("name", [".manifest.json.new", ".manifest.reserve"])
@pytest.mark.parametrize("kind", ["link", "second name"])
def test_a_planted_link_overwrites_nobody(unfinished: Path, name: str, kind: str) -> None:
    victim = unfinished.parent / "victim"
    victim.write_text("precious")
    if kind == "link":
        (unfinished / name).symlink_to(victim)
    else:
        (unfinished / name).hardlink_to(victim)
    killed(unfinished)
    done = tstorm(unfinished.parent, "destroy", "--all")
    assert done.returncode == 0, done
    assert victim.read_text() == "precious"
    assert outcome(unfinished) == "killed"


def test_a_directory_that_became_a_link_is_left_alone(unfinished: Path) -> None:
    killed(unfinished)
    moved = unfinished.rename(unfinished.parent / "elsewhere")
    unfinished.symlink_to(moved)
    done = tstorm(unfinished.parent, "destroy", "--all")
    assert done.returncode == 0, done
    assert outcome(moved) is None


def test_a_parent_that_became_a_link_is_left_alone(unfinished: Path) -> None:
    inner = unfinished.parent / "home"
    inner.mkdir()
    run = unfinished.rename(inner / "run")
    killed(run)
    moved = inner.rename(inner.parent / "elsewhere")
    inner.symlink_to(moved)
    done = tstorm(unfinished.parent, "destroy", "--all")
    assert done.returncode == 0, done
    assert outcome(moved / "run") is None


def test_a_directory_of_another_run_is_left_alone(unfinished: Path) -> None:
    killed(unfinished)
    set_in(unfinished / "manifest.json", run_id="another")
    assert tstorm(unfinished.parent, "destroy", "--all").returncode == 0
    assert outcome(unfinished) is None


def test_a_manifest_that_cannot_be_closed_is_told(unfinished: Path) -> None:
    killed(unfinished)
    (unfinished / "manifest.json").write_bytes(b"{]")
    done = tstorm(unfinished.parent, "destroy", "--all", "--format", "json")
    assert done.returncode == 0, done
    assert "manifest.json is damaged" in json.loads(done.stdout)[0]["unclosed"]
    assert "has no outcome" in done.stderr.decode()


def test_drafts_of_killed_writers_are_removed(unfinished: Path) -> None:
    places = (unfinished, unfinished / "plan")
    for place in places:
        (place / ".summary.json.0123456789abcdef.new").write_text("{")
    killed(unfinished)
    assert tstorm(unfinished.parent, "destroy", "--all").returncode == 0
    assert [path for place in places for path in place.glob(".*.new")] == []
    assert not (unfinished / ".manifest.reserve").exists()


def test_mutated_run_directories_are_refused_or_usable() -> None:
    usable = sum(attempt(seed) for seed in range(300))
    assert 0 < usable < 200, "mutants should mostly be broken, and not all at the first look"


@pytest.mark.parametrize(
    "second",
    [
        '{"links1":[[7]],"links":["x"],"pairs":[]}',  # as the first, but for digits
        '{"links":[[7]],"links":["x"],"pairs":[]}',
        '{"links":[["x"]],"links1":["x"],"pairs":[]}',
        '{"links":[[7.5]],"links1":["x"],"pairs":[]}',
    ],
)
def test_samples_that_look_alike_are_checked(tmp_path: Path, second: str) -> None:
    first = '{"links":[[12345]],"links1":["x"],"pairs":[]}'
    place = tmp_path / SAMPLES
    directory = HeldDirectory.hold(tmp_path.resolve())
    place.write_text(f"{first}\n{first.replace('3', '')}\n")
    assert [record["links"] for record in read_lines(directory, SAMPLES)] == [[[12345]], [[1245]]]
    place.write_text(f"{first}\n{second}\n")
    with pytest.raises(RunError, match=r"samples\.jsonl:2: links"):
        list(read_lines(directory, SAMPLES))
