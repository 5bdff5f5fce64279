"""`--preempt T`: programs lose the processor inside computing, where the seed draws it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runtime.results.parting import part
from runtime.rundir import rundir
from tests.cli.process import tstorm
from tests.virtual.guests import PROGRAMS, compiled, guest

pytestmark = pytest.mark.virtual

STOPPED = "tstorm_preempt=100000"
SCATTERED = "tstorm_scatter=100000"
MANY = 20
SECOND = 10**9
TEXT = """\
service racing files=inside exec="sh -c 'while sleep .1; do ./inside threads; ./inside lock; done'"
service other files=inside exec="sh -c 'while sleep .1; do ./inside processes; done'"
bridge s
link racing--s latency=1ms
link other--s latency=1ms
at 3s quit
"""
WORDS = ("--time", "virtual", "--no-probes", "--preempt", "100us", "--quiet")


def said(
    kernel: list[str], folder: Path, command: str, *words: str, seed: int = 1, times: int = MANY
) -> list[str]:
    """The lines that a command said that was carried out so many times in one guest."""
    shutil.rmtree(folder / "guest", ignore_errors=True)
    (folder / "guest").mkdir()
    script = f"for i in $(seq {times}); do {command}; done; date +%s.%N"
    with guest([*kernel, f"tstorm_seed={seed:02}", *words], script, folder / "guest") as it:
        return it.end().splitlines()


def whole(lines: list[str], of: int = 2000) -> int:
    return lines.count(f"{of} of {of}")


def test_a_race_between_two_calls_shows(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("inside", tmp_path, "-static", "-pthread")
    both = f"{program} threads; {program} processes"
    for words in ((), (SCATTERED,)):
        lines = said(kernel, tmp_path, both, *words)
        assert whole(lines) == 2 * MANY, "orders at system calls do not show it"
    found = said(kernel, tmp_path, both, STOPPED)
    assert len(found) == 2 * MANY + 1
    assert max(whole(found[:-1:2]), whole(found[1::2])) < MANY - 1
    assert said(kernel, tmp_path, both, STOPPED) == found
    assert said(kernel, tmp_path, both, STOPPED, seed=2) != found


def test_what_has_a_lock_is_right(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("inside", tmp_path, "-static", "-pthread")
    lines = said(kernel, tmp_path, f"{program} lock", STOPPED, SCATTERED)
    assert whole(lines) == MANY


def test_a_race_of_an_interpreter_shows(kernel: list[str], tmp_path: Path) -> None:
    command = f"python3 {PROGRAMS}/inside.py"
    assert whole(said(kernel, tmp_path, command, SCATTERED, times=12), of=400) == 12
    found = said(kernel, tmp_path, command, STOPPED, times=12)
    assert len(found) == 12 + 1
    assert whole(found, of=400) < 12


def test_registers_flags_and_memory_stay_a_programs_own(
    either_kernel: list[str], tmp_path: Path
) -> None:
    programs = [compiled(name, tmp_path, "-static", "-pthread") for name in ("inside", "tracer")]
    command = f"{programs[0]} flags; echo flags $?; {programs[1]}; echo debugger $?"
    expected = ["flags 0", "saw 1234567890abcdef", f"a third is {(1 / 3).hex()}", "debugger 0"]
    assert said(either_kernel, tmp_path, command, STOPPED)[:-1] == expected * MANY


@pytest.mark.skipif("avx" not in Path("/proc/cpuinfo").read_text().split(), reason="needs AVX")
def test_vector_registers_are_kept(either_kernel: list[str], tmp_path: Path) -> None:
    program = compiled("registers", tmp_path, "-static", "-pthread")
    with guest([*either_kernel, "tstorm_seed=01", STOPPED], f"{program}", tmp_path) as it:
        lines = it.end().splitlines()
    assert lines == ["wrong: 0 in threads, 0 processes, 0 in forks, 0 in programs; signals: 800"]


def test_a_run_repeats_and_can_branch(tmp_path: Path) -> None:
    compiled("inside", tmp_path, "-static", "-pthread")
    (tmp_path / "e.tdl").write_text(TEXT)
    tstorm(tmp_path, "run", "e.tdl", *WORDS, "--out", "base")
    logs = [(tmp_path / "base" / "logs" / f"{name}.0.log") for name in ("racing", "other")]
    lines = [log.read_text().splitlines() for log in logs]
    assert whole(lines[0]) >= len(lines[0]) // 2, "with a lock it is right"
    assert whole(lines[0]) < len(lines[0])
    assert whole(lines[1]) < len(lines[1])
    tstorm(tmp_path, "replay", "base", "--check", "--quiet", "--out", "again")
    tstorm(tmp_path, "replay", "base", "--reseed", "1500ms=7", "--quiet", "--out", "branch")
    runs = [tmp_path / name for name in ("base", "branch")]
    found = part(*map(rundir.recorded, runs)).earliest
    assert found is not None
    assert found.at_ns is not None
    assert found.at_ns >= 3 * SECOND // 2
    manifest = json.loads((tmp_path / "base" / "manifest.json").read_text())
    assert manifest["options"]["preempt_ns"] == 100_000


def test_a_time_that_is_none_is_refused(kernel: list[str], tmp_path: Path) -> None:
    with guest([*kernel, "tstorm_preempt=1s"], "true", tmp_path) as it:
        assert it.process.wait(60) == 1
    assert "must be at most 1000000000" in (tmp_path / "console").read_text()
