"""tstorm as a process of its own in a folder of the test's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cli import warm

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long
LONGEST_SECONDS = 600.0  # of any other program


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tstorm", *arguments]


def environment(place: Path) -> dict[str, str]:
    """Records and temporary files are the test's own: tests must not see each other's runs."""
    (place / "tmp").mkdir(exist_ok=True)
    own = {"XDG_STATE_HOME": str(place / "state"), "TMPDIR": str(place / "tmp")}
    return {**os.environ, "PYTHONPATH": str(ROOT), **own}


def ended(
    argv: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = LONGEST_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """A program that has come to its end, whatever that was; nobody types anything."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def tstorm(place: Path, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Runs it to its end, which must be with this code (None: any)."""
    done = called(*arguments, cwd=place, env=environment(place))
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def called(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] = os.environ,
    timeout: float = DEADLINE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """The command at its end, whatever that was. It comes from a process that has imported it
    (warm.py) where that makes no difference."""
    words, own = [str(word) for word in arguments], {**env, "PYTHONPATH": str(ROOT)}
    ran = warm.run(cwd, words, own, timeout)
    if ran is None:
        return ended(command(*words), cwd=cwd, env=own, timeout=timeout)
    return subprocess.CompletedProcess(command(*words), *ran)


@contextmanager
def begun(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Starts it; killed in the end if it is still there."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=place,
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
