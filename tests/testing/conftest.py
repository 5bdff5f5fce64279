from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.runtime import recorded
from tstorm.testing import child


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are made by fake.py, without a machine that could do it."""
    template = recorded.make(tmp_path_factory.mktemp("template") / "run")
    (template / "report.html").write_text("the page")
    command = (sys.executable, "-I", str(Path(__file__).with_name("fake.py")))
    monkeypatch.setattr(child, "COMMAND", command)
    monkeypatch.setenv("FAKE_RUN", str(template))
