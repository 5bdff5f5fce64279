"""Networks for the tests of tcald: each test has its own world, which ends with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.netem.support import Instances


@pytest.fixture
def world() -> Iterator[Instances]:
    with Instances() as made:
        yield made
