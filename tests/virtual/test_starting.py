"""Guests that do not start, or are no guests: what the host's process makes of them and keeps."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime.errors import MachineError, RunError
from runtime.launch import launch
from runtime.launch.launch import run
from runtime.options import VIRTUAL, RunOptions, RunPlaces
from runtime.system import compiled_programs
from runtime.virtual import forbidden, guest

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'service a img=x exec="sleep 60"\nbridge s\nlink a--s latency=1ms\nat 10s quit\n'
OPTIONS = RunOptions(time=VIRTUAL)
Named = Callable[[str], None]


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Named:
    """Has runs take a kernel that is this script."""

    def name(script: str) -> None:
        kernel = tmp_path / "linux"
        kernel.write_text(f"#!/bin/sh\n{script}\n")
        kernel.chmod(0o755)
        monkeypatch.setenv("TSTORM_KERNEL", str(kernel))

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return name


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    write(compile_source(TEXT, filename="a.tdl", seed=None), tmp_path / "a.plan")
    return read_plan(tmp_path / "a.plan")


def descriptors() -> set[str]:
    """Memory and sockets that are open: folders go with what holds them."""
    gc.collect()  # what other tests have left
    found = (str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return {name for name in found if name.startswith(("/memfd:", "socket:"))}


def test_trial_keeps_no_descriptor(named: Named) -> None:
    named("exit 0")
    before = descriptors()
    kernel = Path(os.environ["TSTORM_KERNEL"])
    assert guest.why_not(kernel, compiled_programs.find("tstorm-ns")).endswith("with status 0")
    assert descriptors() == before


def test_run_keeps_no_descriptor(named: Named, plan: Plan, tmp_path: Path) -> None:
    named("exit 0")
    before = descriptors()
    assert run(plan, OPTIONS, RunPlaces(tmp_path / "out")).outcome == "failed"
    assert descriptors() == before


def test_kernel_that_cannot_be_started(named: Named, plan: Plan, tmp_path: Path) -> None:
    named("exit 0")
    Path(os.environ["TSTORM_KERNEL"]).write_text("#!/none\n")
    before = descriptors()
    with pytest.raises(RunError):
        run(plan, OPTIONS, RunPlaces(tmp_path / "out"))
    assert descriptors() == before
    assert json.loads((tmp_path / "out/manifest.json").read_text())["outcome"] == "failed"


FEW_OPEN_FILES = """
import resource, sys
from pathlib import Path
from compiler.plan.reader import read_plan
from runtime.errors import MachineError
from tests.virtual.test_starting import OPTIONS, descriptors, run, RunPlaces
plan, before = read_plan(Path(sys.argv[1])), descriptors()
resource.setrlimit(resource.RLIMIT_NOFILE, (201, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    run(plan, OPTIONS, RunPlaces(Path(sys.argv[2])))
except MachineError as error:
    print(error.message, error.remedy, sep="\\n")
assert descriptors() == before
"""


def test_few_open_files(named: Named, plan: Plan, tmp_path: Path) -> None:
    """In a process of its own: this one may have more than 200 open for other tests."""
    named("exit 0")
    places = (str(tmp_path / "a.plan"), str(tmp_path / "out"))
    command = [sys.executable, "-c", FEW_OPEN_FILES, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    message, remedy = done.stdout.splitlines()
    assert "a descriptor with the number 200" in message
    assert remedy == "raise the limit of open files: ulimit -n 1024"


def test_kernel_that_refuses(named: Named, plan: Plan, tmp_path: Path) -> None:
    named("echo no room >&2; exit 1")
    with pytest.raises(MachineError, match=r"refuses what virtual time needs: .* no room"):
        run(plan, OPTIONS, RunPlaces(tmp_path / "out"))


def test_a_machine_that_forbids_tracing_says_what_doctor_says(
    named: Named, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named("echo check_ptrace failed >&2; exit 1")
    (tmp_path / "scope").write_text("3\n")
    monkeypatch.setattr(forbidden, "_SCOPE", tmp_path / "scope")
    monkeypatch.setattr(forbidden, "_TRACE", "print('Operation not permitted')")
    with pytest.raises(MachineError, match=r"programs may not be traced: .* not perm") as caught:
        run(plan, OPTIONS, RunPlaces(tmp_path / "out"))
    assert caught.value.remedy == "sysctl kernel.yama.ptrace_scope=1 (it is 3)"


def test_kernel_that_gives_up_says_why(named: Named, plan: Plan, tmp_path: Path) -> None:
    named("echo 'cannot go on' >&2; kill -ABRT $$")
    found = run(plan, OPTIONS, RunPlaces(tmp_path / "out")).message
    assert found == "the guest's kernel was killed by signal 6 (Aborted): cannot go on"


def test_watchdog_that_fails_ends_the_run(
    named: Named, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is gone without a word would let a program hold time for ever."""

    class Broken:
        pause_s = 0.01

        def __init__(self, *_arguments: object) -> None: ...

        def look(self) -> str:
            raise ValueError("no such state")

    named("exec /bin/sleep 20")
    monkeypatch.setattr(launch, "SpinWatch", Broken)
    with pytest.raises(ValueError, match="no such state"):
        run(plan, OPTIONS, RunPlaces(tmp_path / "out"))
