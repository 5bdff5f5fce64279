"""Which storm comes next: from the seed, the number, and what those before have reached. A change
of a storm is within the bounds, and near."""

from __future__ import annotations

from bench.virtual.guided_storms import ChangedDrawing, Guidance
from compiler.expect.storm_space import FaultKind, StormSpace
from tstorm.hunt.storms import Drawing, Storm, generator

SECOND = 10**9
SPACE = StormSpace(
    (FaultKind("crash", ("a.0", "a.1")), FaultKind("pause", ("a.0",))),
    *(3, 0, 20 * SECOND, SECOND // 10, 10 * SECOND, ("a.0", "a.1")),
)


def guidance() -> Guidance:
    return Guidance(SPACE, 1, lambda _storm: "")


def test_without_anything_new_each_storm_is_a_new_one() -> None:
    found = guidance()
    for number in range(40):
        storm = found.storm(number)
        assert storm == Drawing(SPACE, generator(1, number, 0)).storm(number)
        found.take(storm, [])


def test_what_reaches_something_new_is_changed() -> None:
    found = guidance()
    first = found.storm(0)
    found.take(first, ["state a leader", "state a follower"])
    found.take(found.storm(1), ["state a leader"])
    for number in range(2, 80):
        found.storm(number)
    assert set(found.parents.values()) == {0}
    assert 30 < len(found.parents) < 60


def test_rare_ones_and_ones_that_were_not_changed_come_first() -> None:
    found = guidance()
    common, rare = found.storm(0), found.storm(1)
    found.take(common, ["state a leader"])
    found.take(rare, ["state a leader", "states leader leader"])
    for number in range(2, 30):
        found.parents[number] = common.number
        found.take(Storm(number, 1, common.faults), ["state a leader"])
    found.parents.clear()
    for number in range(30, 130):
        found.storm(number)
    parents = list(found.parents.values())
    assert parents.count(rare.number) > 10 * parents.count(common.number)


def test_a_change_is_within_the_bounds_and_near() -> None:
    first = Drawing(SPACE, generator(7, 3)).storm(3)
    shared = 0
    for number in range(100, 160):
        changed = ChangedDrawing(SPACE, generator(7, number)).changed(first, number)
        assert 1 <= len(changed.faults) <= SPACE.most
        for one in changed.faults:
            assert SPACE.begin_ns <= one.begin_ns < one.end_ns <= SPACE.end_ns
            assert SPACE.shortest_ns <= one.end_ns - one.begin_ns <= SPACE.longest_ns
        shared += bool(set(changed.faults) & set(first.faults))
    assert shared > 30
