"""What a TCP client sees of each way to fail (docs/tdl.md, Ways to fail), exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import failing

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


def test_each_way_to_fail_is_what_the_page_says(tmp_path: Path) -> None:
    failing.lay_out(tmp_path)
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    failing.check(tmp_path / "run", exact=True)
    done = tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")
    assert "everything is the same" in done.stderr
