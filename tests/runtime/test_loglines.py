"""Logs and events by time: what is known of when a line was written, and what is not."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from runtime.results.loglines import LINE_BYTES, LogRecord, Merger
from runtime.rundir.held_directory import HeldDirectory
from runtime.system.inotify import WriteWatch
from tests.runtime.support import Compile, User, records

MS = 1_000_000


def run_with(
    place: Path, log: str, growth: list[tuple[int, int, int]], *events: dict[str, Any]
) -> Merger:
    """`growth`: beginning and end of an interval in ms, and the log's length at its end."""
    (place / "logs").mkdir()
    (place / "logs/a.0.log").write_text(log)
    rows = [
        {"from_ns": low * MS, "elapsed_ns": high * MS, "bytes": {"a.0": size}}
        for low, high, size in growth
    ]
    for name, lines in (("logs.jsonl", rows), ("events.jsonl", events)):
        (place / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Merger(HeldDirectory.hold(place.resolve()))


def everything(merger: Merger) -> list[tuple[str, int | None, int | None]]:
    found = merger.merged(merger.instances(), lambda _: True)
    return [(line.text or str(dict(line.record or {})["kind"]), *bounds(line)) for line in found]


def bounds(line: LogRecord) -> tuple[int | None, int | None]:
    ends = (line.from_ns, line.until_ns)
    low, high = (None if end is None else end // MS for end in ends)
    return low, high


def test_lines_stand_in_the_interval_in_which_the_log_grew(tmp_path: Path) -> None:
    log = "early\none\ntwo\nthree\n"  # 6, 10, 14, 20 bytes
    exit_ = {"kind": "exit", "target": "a.0", "applied_ns": 350 * MS, "status": 0, "signal": 0}
    growth = [(0, 1, 6), (100, 200, 12), (300, 400, 14)]
    assert everything(run_with(tmp_path, log, growth, exit_)) == [
        ("early", None, 1),
        ("one", 100, 200),
        ("two", 300, 400),
        ("exit", 350, 350),
        ("three", 400, None),
    ]


def test_marks_bound_lines_where_nothing_else_does(tmp_path: Path) -> None:
    log = "a\n[tstorm] 2.000000000 s: crash\n[tstorm] 3.000000000 s: join\nb\n"
    crash = {"kind": "crash", "target": "a.0", "applied_ns": 2000 * MS}
    assert everything(run_with(tmp_path, log, [], crash)) == [
        ("a", None, 2000),
        ("crash", 2000, 2000),
        ("b", 3000, None),
    ]


def test_a_mark_that_a_program_printed_moves_no_line(tmp_path: Path) -> None:
    """It shows the log of another run: of what stands around it more is known."""
    log = "a\n[tstorm] 0.100000000 s: x\nb\n[tstorm] 9000.000000000 s: x\nc\n"
    growth = [(900, 1000, 1), (1900, 2000, 30), (2900, 3000, len(log))]
    found = [one for one in everything(run_with(tmp_path, log, growth)) if len(one[0]) == 1]
    assert found == [("a", 1900, 2000), ("b", 1900, 2000), ("c", 2900, 3000)]


def test_a_log_that_became_shorter_is_known_anew(tmp_path: Path) -> None:
    merger = run_with(tmp_path, "x\n", [(0, 1, 900), (500, 600, 2)])
    assert everything(merger) == [("x", None, 600)]


def test_around_a_moment_stands_what_may_have_been_then(tmp_path: Path) -> None:
    merger = run_with(tmp_path, "one\ntwo\n", [(100, 200, 4), (300, 400, 8)])
    found = list(merger.merged(["a.0"], lambda line: line.may_be_within(250 * MS, 350 * MS)))
    assert [line.text for line in found] == ["two"]
    unknown = LogRecord(None, None, "a.0", "some time")
    assert unknown.may_be_within(0, 1)


def test_a_line_without_an_end_is_cut_and_not_held_in_memory(tmp_path: Path) -> None:
    merger = run_with(tmp_path, "x\n", [(0, 1, 2)])
    size = 1 << 30
    with (tmp_path / "logs/a.0.log").open("r+b") as log:
        log.truncate(size)  # a hole of zeros behind the first line
    tracemalloc.start()
    first, second = merger.merged(["a.0"], lambda _: True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (first.text, first.cut) == ("x", 0)
    assert (len(second.text), second.cut) == (LINE_BYTES, size - 2 - LINE_BYTES)
    assert peak < 8 << 20


def test_lines_of_a_log_without_marks_are_not_held_in_memory(tmp_path: Path) -> None:
    merger = run_with(tmp_path, "x" * 99 + "\n", [(0, 1, 100)])
    with (tmp_path / "logs/a.0.log").open("a") as log:
        log.writelines("x" * 99 + "\n" for _ in range(200_000))
    tracemalloc.start()
    number = sum(1 for _ in merger.merged(["a.0"], lambda _: True))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number == 200_001
    assert peak < 8 << 20


def test_writes_are_heard_of_by_name(tmp_path: Path) -> None:
    held = HeldDirectory.hold(tmp_path.resolve())
    watch = WriteWatch(held.descriptor)
    try:
        assert watch.names() == set()
        for name in ("a.log", "b c.log", "a.log"):
            with (tmp_path / name).open("a") as file:
                file.write("x")
        assert watch.names() == {"a.log", "b c.log"}
        assert watch.names() == set()
    finally:
        watch.close()


@pytest.mark.e2e
def test_the_times_of_lines_are_those_at_which_programs_wrote(
    plan_of: Compile, user: User, workspace: Path
) -> None:
    script = workspace / "tell"  # beside the plan
    script.write_text(
        "#!/usr/bin/env python3\nimport time\n"
        "for _ in range(8):\n    print(time.time_ns(), flush=True)\n    time.sleep(0.15)\n"
    )
    script.chmod(0o755)
    text = 'service a img=x exec="./tell"\nbridge s1\nlink a--s1 latency=1\n'
    text += "quit when a exits\nat 60s quit\n"
    user.run(plan_of(text))
    out = user.home / "out"
    start_ns = records(out / "events.jsonl")[0]["start_unix_ns"]
    merger = Merger(HeldDirectory.hold(out.resolve()))
    lines = list(merger.merged(["a.0"], lambda one: not one.record))
    assert len(lines) == 8
    for line in lines:
        assert line.from_ns is not None or line is lines[0]
        assert line.until_ns is not None
        # A write is heard of after it was made, so the end holds, and the beginning nearly.
        assert int(line.text) - start_ns < line.until_ns
