"""`tstorm-hold gate` and `install`: what init containers run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.hold.conftest import Start
from tests.hold.support import HOLD


@pytest.mark.e2e
def test_the_gate_opens_at_the_join(container: Start) -> None:
    made = container("gate")
    made.init()
    made.give("crash", "leave", "join")
    assert made.exit_code() == 0
    assert made.names() == ["held", "ignored", "ignored", "released"]


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_gate_ends_with_its_pod(container: Start, number: signal.Signals) -> None:
    made = container("gate")
    os.kill(made.init(), number)
    assert made.exit_code() == 143


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOLD, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


def test_install_copies_the_program_whole(tmp_path: Path) -> None:
    target = tmp_path / "tstorm-hold"
    target.write_text("an older one")
    assert run("install", tmp_path).returncode == 0
    assert target.read_bytes() == HOLD.read_bytes()
    assert target.stat().st_mode & 0o7777 == 0o755
    assert list(tmp_path.iterdir()) == [target]
    copied = subprocess.run([target, "--help"], capture_output=True, text=True, check=True)
    assert copied.stdout.startswith("usage: tstorm-hold")


def test_install_says_what_is_in_the_way(tmp_path: Path) -> None:
    done = run("install", tmp_path / "absent")
    assert done.returncode == 125
    assert "No such file or directory" in done.stderr
    (tmp_path / "tstorm-hold").mkdir()
    done = run("install", tmp_path)
    assert done.returncode == 125
    assert "Is a directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tstorm-hold"]


def test_the_program_needs_no_library() -> None:
    """So that it runs in any image, one with nothing but a program as well."""
    done = subprocess.run(["readelf", "-l", HOLD], capture_output=True, text=True, check=True)
    assert "LOAD" in done.stdout
    assert "INTERP" not in done.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("jump",), ("gate", "1"), ("run",), ("run", "--"), ("run", "true")]
)
def test_wrong_usage_is_said(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 125
    assert done.stderr
