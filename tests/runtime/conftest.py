"""Fixtures of the runtime's tests: plans from text, and users to run them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.pipeline import compile_source, write
from tests.runtime.support import Compile, NoUserError, User, somebody
from tests.trials.scene import end


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
    try:
        found = somebody(request.param, workspace)
    except NoUserError as error:
        pytest.skip(str(error))
    yield found
    end(found)
