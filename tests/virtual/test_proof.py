"""Runs in virtual time repeat to the last byte with real programs, whatever the host has to do and
wherever they are started. All experiments, three times each: `make bench-virtual`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.virtual import repeating
from tests.virtual.catalogue import ALL

# Of each language's runtime one, and MariaDB, which waits in loops for clocks.
_QUICK = ("quickstart", "redis", "asyncio", "go", "node", "mariadb")
# Beside programs that compute, two for each processor, which take as much of it as they get. The
# others run again elsewhere, beside whatever else is tested; `make bench-virtual` spares none.
_BUSY = ("quickstart", "redis")

_DRAWS = "asyncio"  # what its programs draw comes from the run's seed

_EXPERIMENTS = {one.name: one for one in ALL if one.name in _QUICK}

pytestmark = pytest.mark.virtual


def _repeats(name: str, place: Path) -> repeating.Ran:
    """The first of two runs that are the same."""
    experiment = _EXPERIMENTS[name]
    if lacking := experiment.lacking():
        pytest.skip(lacking)
    first = repeating.carry_out(experiment, place)
    unlike = repeating.UNLIKE if name in _BUSY else repeating.ELSEWHERE
    again = repeating.carry_out(experiment, place, unlike)
    for ran in (first, again):
        assert ran.status == 0, ran.said
        assert not ran.programs_that_failed(), "the programs do what they do in real time"
    assert repeating.differences(first, again) == []
    assert repeating.contents(first.directory) == repeating.contents(again.directory)
    return first


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.ordinary if name == "quickstart" else [])
        for name in _QUICK
        if name != _DRAWS
    ],
)
def test_a_run_repeats_to_the_last_byte(name: str, tmp_path: Path) -> None:
    _repeats(name, tmp_path)


def test_a_run_repeats_and_another_seed_is_another_run(tmp_path: Path) -> None:
    """So the comparison does see differences."""
    first = _repeats(_DRAWS, tmp_path)
    place = tmp_path / "other"
    other = repeating.carry_out(_EXPERIMENTS[_DRAWS], place, repeating.ELSEWHERE, "--seed", "77")
    assert other.status == 0, other.said
    assert [one for one in repeating.differences(first, other) if one.what == "log"]
