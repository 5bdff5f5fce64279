"""The API server that is not one, for tests that are coroutines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doubles.api import FakeApi, listening


@pytest.fixture
def server() -> Iterator[FakeApi]:
    with listening() as found:
        yield found
