"""Runs in virtual time repeat to the last byte with real programs, whatever the host has to do and
wherever they are started. All experiments, three times each: `make bench-virtual`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.virtual import repeating
from tests.virtual.catalogue import ALL, Experiment

# Of each language's runtime one, and MariaDB, which waits in loops for clocks: 4 minutes in all.
_QUICK = ("quickstart", "redis", "asyncio", "go", "node", "mariadb")
# Beside programs that compute, two for each processor, which take as much of it as they get. The
# others run again elsewhere, beside whatever else is tested; `make bench-virtual` spares none.
_BUSY = ("quickstart", "redis")

_EXPERIMENTS = [
    pytest.param(one, id=one.name, marks=pytest.mark.ordinary if one.name == "quickstart" else [])
    for one in ALL
    if one.name in _QUICK
]

pytestmark = pytest.mark.virtual


@pytest.mark.parametrize("experiment", _EXPERIMENTS)
def test_a_run_repeats_to_the_last_byte(experiment: Experiment, tmp_path: Path) -> None:
    if lacking := experiment.lacking():
        pytest.skip(lacking)
    first = repeating.carry_out(experiment, tmp_path)
    unlike = repeating.UNLIKE if experiment.name in _BUSY else repeating.ELSEWHERE
    again = repeating.carry_out(experiment, tmp_path, unlike)
    for ran in (first, again):
        assert ran.status == 0, ran.said
        assert not ran.programs_that_failed(), "the programs do what they do in real time"
    assert repeating.differences(first, again) == []
    assert repeating.contents(first.directory) == repeating.contents(again.directory)


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    """What a program draws comes from the run's seed, so the comparison does see differences."""
    experiment = next(e for e in ALL if e.name == "asyncio")
    first = repeating.carry_out(experiment, tmp_path)
    other = repeating.carry_out(experiment, tmp_path, repeating.ELSEWHERE, "--seed", "77")
    assert (first.status, other.status) == (0, 0), first.said + other.said
    assert [one for one in repeating.differences(first, other) if one.what == "log"]
