"""Fixtures of tests that talk to runs in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.guest.longrun import LONG, Begin
from tests.runtime.support import Compile, User, somebody
from tests.trials.scene import end


@pytest.fixture
def someone(workspace: Path) -> Iterator[User]:
    """Whoever runs the tests; everything they started is ended."""
    found = somebody("self", workspace)
    yield found
    end(found)


@pytest.fixture
def begin(plan_of: Compile, someone: User) -> Begin:
    """Begins a run in virtual time that goes on until somebody ends it."""
    return lambda: someone.begin(plan_of(LONG), time="virtual")
