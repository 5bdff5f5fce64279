"""Networks for the tests of tcald: each test has its own world, which ends with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.netem.support import Instances, Network, network


@pytest.fixture
def world() -> Iterator[Instances]:
    with Instances() as made:
        yield made


@pytest.fixture(scope="module")
def shared_network() -> Iterator[Network]:
    with Instances() as made:
        yield network(made)


@pytest.fixture
def net(shared_network: Network) -> Network:
    """Two instances that the tests of a module share, with paths as if new."""
    shared_network.reset()
    return shared_network
