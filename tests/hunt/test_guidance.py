"""Which storm comes next: from the seed, the number, and what those before have reached."""

from __future__ import annotations

import pytest

from compiler.expect.storm_space import FaultKind, StormSpace
from tstorm.hunt.guidance import Guidance, NoStormError
from tstorm.hunt.storms import Storm

SECOND = 10**9
SPACE = StormSpace(
    (FaultKind("crash", ("a.0", "a.1")), FaultKind("pause", ("a.0",))),
    *(3, 0, 20 * SECOND, SECOND // 10, 10 * SECOND, ("a.0", "a.1")),
)


def guidance(*, blind: bool = False, refused: str = "") -> Guidance:
    return Guidance(SPACE, 1, lambda _storm: refused, blind)


def test_without_anything_new_each_storm_is_a_new_one() -> None:
    found = guidance()
    for number in range(40):
        storm = found.storm(number)
        assert (storm.number, storm.parent) == (number, -1)
        assert found.take(storm, []) == 0


def test_what_reaches_something_new_is_changed() -> None:
    found = guidance()
    first = found.storm(0)
    assert found.take(first, ["state a leader", "state a follower"]) == 2
    assert found.take(found.storm(1), ["state a leader"]) == 0
    parents = [found.storm(number).parent for number in range(2, 80)]
    assert set(parents) == {-1, 0}
    assert 30 < parents.count(0) < 60


def test_rare_ones_and_ones_that_were_not_changed_come_first() -> None:
    found = guidance()
    common, rare = found.storm(0), found.storm(1)
    found.take(common, ["state a leader"])
    found.take(rare, ["state a leader", "states leader leader"])
    for number in range(2, 30):
        found.take(Storm(number, 1, common.faults, common.number), ["state a leader"])
    parents = [found.storm(number).parent for number in range(30, 130)]
    assert parents.count(rare.number) > 10 * parents.count(common.number)


def test_blind_storms_are_the_same_whatever_was_reached() -> None:
    one, other = guidance(blind=True), guidance(blind=True)
    other.take(other.storm(0), ["state a leader"])
    assert [one.storm(n) for n in range(1, 9)] == [other.storm(n) for n in range(1, 9)]


def test_bounds_without_an_experiment_say_why() -> None:
    with pytest.raises(NoStormError, match="has left already"):
        guidance(refused="a.0 has left already").storm(0)
