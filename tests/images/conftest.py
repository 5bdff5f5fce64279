"""Every test has a cache of its own, and one registry serves all of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.virtual.kernel import kernel_cache
from tests.packing import registry


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which images are kept. A kernel for virtual time stays where it is."""
    if kernel := kernel_cache.find():
        monkeypatch.setenv("TSTORM_KERNEL", str(kernel.path))
    monkeypatch.setenv("TSTORM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/images"


@pytest.fixture
def tools() -> None:
    registry.needed("skopeo", "umoci")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[registry.Registry]:
    with registry.running(tmp_path_factory.mktemp("registry")) as found:
        yield found
