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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both kinds of user, unless the test says that it is for one, or for which."""
    marks = list(metafunc.definition.iter_markers("parametrize"))
    stated = any("user" in mark.args[0] for mark in marks)
    if "user" in metafunc.fixturenames and not stated:
        one = metafunc.definition.get_closest_marker("one_user") is not None
        metafunc.parametrize("user", ["self"] if one else ["self", "ordinary"], indirect=True)


@pytest.fixture
def user(request: pytest.FixtureRequest, workspace: Path) -> Iterator[User]:
    """Each kind of user where possible; everything they started is ended."""
    try:
        found = somebody(request.param, workspace)
    except NoUserError as error:
        pytest.skip(str(error))
    yield found
    end(found)
