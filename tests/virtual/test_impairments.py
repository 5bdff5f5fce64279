"""Links that lose in bursts, copy, damage and reorder, in virtual time: again to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import impaired

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


@pytest.mark.parametrize("kind", impaired.LINKS)
def test_programs_get_what_was_asked_for_and_the_same_again(tmp_path: Path, kind: str) -> None:
    impaired.lay_out(tmp_path, kind)
    options = ("--time", "virtual", "--no-probes", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "first")
    impaired.check(tmp_path / "first", kind)
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr
