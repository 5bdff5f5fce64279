"""The machine that has netem (vm.py): statuses, output, what it is, and that it leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import ended
from tests.netem import vm
from tests.waiting import wait_until

DEADLINE_S = 120.0


def machine(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return ended(
        [sys.executable, vm.__file__, *arguments],
        env={**os.environ, **environment},
        timeout=DEADLINE_S,
    )


def kernels(ancestor: int) -> set[str]:
    """Its descendants that are user-mode kernels or their guests' threads; others have some too."""
    parents, found = {}, set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            program = path.read_bytes().split(b"\0")[0]
            tail = (path.parent / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # has just ended
        parents[path.parent.name] = tail[1]
        if program.endswith(b"linux.uml"):
            found.add(path.parent.name)

    def descends(pid: str) -> bool:
        while pid in parents and pid != str(ancestor):
            pid = parents[pid]
        return pid == str(ancestor)

    return {pid for pid in found if descends(pid)}


def runs(pid: str) -> bool:
    try:
        return b"linux.uml" in (Path("/proc") / pid / "cmdline").read_bytes()
    except OSError:
        return False


def test_a_missing_program_is_named_with_its_package() -> None:
    done = machine("--", "true", PATH="/nonexistent")  # it also looks in /usr/sbin and /sbin
    assert done.returncode == vm.MISSING
    assert done.stderr == "netem-vm: 'linux.uml' is missing: apt-get install user-mode-linux\n"
    assert machine("--check", PATH="/nonexistent").returncode == vm.MISSING


def test_no_command_is_a_wrong_use() -> None:
    done = machine("--memory", "100")
    assert done.returncode == 2
    assert "no command" in done.stderr


@pytest.fixture
def possible() -> None:
    reason = vm.why_not()
    if reason:
        pytest.skip(reason)


@pytest.mark.e2e
def test_the_command_runs_as_root_with_netem_and_its_status_is_ours(
    possible: None, tmp_path: Path
) -> None:
    script = """
    import json, os, subprocess, sys
    tc = subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
    facts = {"netem": tc.returncode, "uid": os.getuid(), "folder": os.getcwd(),
             "own": [os.environ[n] for n in ("TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")],
             "given": os.environ["GIVEN"], "python": sys.prefix, "words": sys.argv[1:]}
    print(json.dumps(facts)); print("to stderr", file=sys.stderr); sys.exit(7)
    """
    code = "\n".join(line.strip() for line in script.splitlines())
    words = ["a b", "$HOME;'\"", "ä\n"]
    done = ended(
        [sys.executable, vm.__file__, "--", sys.executable, "-c", code, *words],
        env={**os.environ, "GIVEN": "it's $given"},
        cwd=tmp_path,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 7, done.stderr
    assert done.stderr == "to stderr\n"
    facts = json.loads(done.stdout)
    assert facts == {
        "netem": 0,
        "uid": 0,
        "folder": str(tmp_path),
        "own": ["/run/tmp", "/run/state", "/run/xdg"],
        "given": "it's $given",
        "python": sys.prefix,
        "words": words,
    }
    assert not list(tmp_path.iterdir())


@pytest.mark.e2e
def test_a_command_that_is_not_there_or_killed_has_a_shells_status(possible: None) -> None:
    done = machine("--", "/nonexistent/program")
    assert done.returncode == 127
    assert done.stderr == "netem-vm: starting /nonexistent/program: No such file or directory\n"
    assert machine("--", "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything_and_leaves_nothing(
    possible: None, number: signal.Signals
) -> None:
    places = [Path("/tmp"), Path("/dev/shm"), Path("/run")]
    before = {path: set(path.iterdir()) for path in places}
    process = subprocess.Popen(
        [
            *("env", "--default-signal=INT,HUP", sys.executable, vm.__file__),
            *("--", "sh", "-c", "echo started; sleep 1000"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        made = kernels(process.pid)
        assert made
        process.send_signal(number)
        status = process.wait(DEADLINE_S)
    finally:
        process.kill()
        process.communicate()
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not any(map(runs, made)), "the machine's processes end")
    mounts = Path("/proc/self/mounts").read_text()
    assert "netem-vm" not in mounts
    for path in places:
        left = [entry for entry in set(path.iterdir()) - before[path] if "netem-vm" in entry.name]
        assert not left


@pytest.mark.e2e
def test_a_command_that_hangs_ends_with_the_time(possible: None) -> None:
    done = machine("--timeout", "5", "--", "sleep", "1000")
    assert done.returncode == vm.LATE
    assert done.stderr == "netem-vm: not done after 5 s\n"
