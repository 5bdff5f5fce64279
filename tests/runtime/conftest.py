"""Fixtures of the runtime's tests: plans from text, and users to run them."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.compile import compile_source, write
from tests.runtime.support import NOBODY, ROOT, Compile, User, ordinary, state


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A directory that an ordinary user may enter; pytest closes its own to others."""
    with tempfile.TemporaryDirectory(prefix="tstorm-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def plan_of(workspace: Path) -> Compile:
    """Compiles TDL text into a plan directory."""
    made = iter(range(100))

    def compiled(text: str) -> Path:
        target = workspace / f"exp{next(made)}.plan"
        write(compile_source(text, filename="exp.tdl", seed=None), target)
        return target

    return compiled


@pytest.fixture(params=["self", "ordinary"])
def user(request: pytest.FixtureRequest, workspace: Path) -> Iterator[User]:
    """Both kinds of user where possible; everything they started is ended."""
    home = workspace / "home"
    home.mkdir()
    found: User | None
    if request.param == "ordinary":
        if os.geteuid() != 0:
            pytest.skip("the tests run as an ordinary user already")
        os.chown(home, NOBODY, NOBODY)
        found = ordinary(home)
        if found is None:
            pytest.skip("no interpreter with the needed packages that an ordinary user may run")
    else:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **state(home)}
        found = User("self", sys.executable, [], home, environment)
    yield found
    for process in found.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
