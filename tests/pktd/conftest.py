"""The worlds pktd is tested in: as root with both kinds of port, and as an ordinary user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.pktd.harness import World


@dataclass(frozen=True)
class Setting:
    """A kind of port in a kind of world."""

    kind: str
    rootless: bool


SETTINGS = [
    pytest.param(Setting("tap", rootless=False), id="tap", marks=pytest.mark.root),
    pytest.param(Setting("packet", rootless=False), id="packet", marks=pytest.mark.root),
    pytest.param(Setting("packet", rootless=True), id="rootless"),
]


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    assert isinstance(request.param, Setting)
    return request.param


@pytest.fixture
def world(setting: Setting) -> Iterator[World]:
    with World(rootless=setting.rootless) as made:
        yield made
