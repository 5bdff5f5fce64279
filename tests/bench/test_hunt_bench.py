"""The planted bugs that hunts are measured with are small, and can be hunted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.virtual import hunt
from bench.virtual.planted_bugs import BUGS


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_small_and_has_bounds(bug: str, tmp_path: Path) -> None:
    compile(BUGS[bug].program, bug, "exec")
    assert len(BUGS[bug].program.splitlines()) <= 100
    request = hunt.requested(bug, tmp_path)
    assert request.space.kinds
    assert "hunt {" not in request.base


def test_trials_without_a_find_count_as_more_than_were_made() -> None:
    assert hunt.summed([3, None, None], 60) == {"runs": [3, None, None], "found": 1, "median": 61}
