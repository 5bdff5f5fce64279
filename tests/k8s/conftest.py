"""A fake API server, and the environment of a command that talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.api import FakeApi, kubeconfig, listening
from tstorm.k8s import connection as connection_module
from tstorm.k8s.connection import ApiConnection, connect


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """Its kubeconfig is the one that is used; it has one node."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(connection_module, "PAUSE_SECONDS", 0.01)
    with listening(pings=False) as fake:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kubeconfig", fake.url)))
        fake.node("n0")
        yield fake


@pytest.fixture
def connection(server: FakeApi) -> Iterator[ApiConnection]:
    with connect(None) as found:
        yield found
