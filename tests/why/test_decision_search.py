"""The search finds the moment that decides, whatever else draws."""

import itertools
import random
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tstorm.why.decision import Decision
from tstorm.why.decision_search import SURE, Estimate, Search

MOMENTS = 4000


def drawn(salt: int, at_ns: int, number: int) -> float:
    return random.Random(f"{salt} {at_ns} {number}").random()


class World:
    """A branch fails with probability `shares[k]` until `steps[k]`, and always from the last on."""

    def __init__(self, steps: list[int], shares: list[float], salt: int = 0) -> None:
        self.steps, self.shares, self.salt, self.asked = steps, shares, salt, 0

    def branches(self, at_ns: int, first: int) -> Iterator[bool]:
        for number in itertools.count(first):
            self.asked += 1
            part = sum(at_ns >= step for step in self.steps)
            yield part == len(self.steps) or drawn(self.salt, at_ns, number) < self.shares[part]


def searched(world: World, most: int = 200, moments: int = MOMENTS) -> Search:
    search = Search(range(1, moments + 1), world.branches, most)
    search.carry_out()
    return search


@given(st.integers(2, MOMENTS), st.floats(0, 0.4))
def test_the_moment_that_decides_is_found(step: int, share: float) -> None:
    search = searched(World([step], [share]))
    low, high = search.decided
    # Where a branch fails with 0.4, sixteen in a row do once in two million times.
    assert search.is_narrow
    assert (search.moments[low], high) == (step - 1, step - 1)
    assert search.jumps()[-1].before.at_ns == step - 1


@given(st.integers(2, MOMENTS))
def test_no_more_branches_than_allowed_are_looked_at(step: int) -> None:
    world = World([step], [0.5])
    search = searched(world, most=30)
    assert world.asked == 30 - search.left <= 30
    low, high = search.decided
    assert low < high


def test_a_moment_that_was_not_tried_again_says_so() -> None:
    done = searched(World([5], [0.0]), moments=8)
    assert done.is_narrow and done.is_tried_again
    spent = done.most - done.left
    cut = searched(World([5], [0.0]), most=20, moments=8)
    assert spent > 20 and cut.is_narrow and not cut.is_tried_again
    for search, said in ((done, False), (cut, True)):
        *_, last = Decision("run", [], 8, search, []).text()
        assert ("fewer than 16 branches of that moment were tried" in last) == said


def test_an_interrupted_answer_says_so_first() -> None:
    done = searched(World([5], [0.0]), moments=8)
    first, *_ = Decision("run", [], 8, done, [], stopped=True).text()
    asked = f"{done.most - done.left} of {done.most} branches"
    assert first.startswith(f"INCOMPLETE: interrupted after {asked}")
    assert not any("INCOMPLETE" in line for line in Decision("run", [], 8, done, []).text())


def test_what_could_not_be_recorded_is_said_to_be_missing() -> None:
    done = searched(World([5], [0.0]), moments=8)
    for known in (True, False):
        found = Decision("run", [], 8, done, [], knows_packets=known)
        assert any("packets are not told" in line for line in found.text()) != known
        assert found.to_json()["knows_packets"] == known


def test_what_the_plan_has_decided_is_decided_at_the_start() -> None:
    search = searched(World([0], [0.0]))
    assert search.decided == (-1, 0)
    assert (search.known[0].runs, search.jumps()) == (SURE, [])


def test_a_jump_before_the_decision_is_told_where_there_is_one() -> None:
    """Where it is there it is told three times in four, mostly to one part in forty; where there is
    none, hardly ever."""
    worlds = range(20)
    two = [searched(World([1500, 3000], [0.05, 0.5], salt), most=150) for salt in worlds]
    assert {search.jumps()[-1].before.at_ns for search in two} == {2999}
    firsts = [search.jumps()[0] for search in two if len(search.jumps()) == 2]
    assert len(firsts) >= 14
    near = [one for one in firsts if abs(one.before.at_ns - 1500) < 100]
    assert len(near) >= 12
    assert all(one.after and one.before.share < one.after.share < 1 for one in near)
    single = [searched(World([3000], [0.3], salt), most=150) for salt in worlds]
    assert sum(len(search.jumps()) > 1 for search in single) <= 1


def test_the_same_branches_give_the_same_search() -> None:
    one, two = (searched(World([77], [0.3])) for _ in range(2))
    assert one.course == two.course


@given(st.integers(1, 200), st.data())
def test_an_interval_holds_its_share_and_narrows(runs: int, data: st.DataObject) -> None:
    fails = data.draw(st.integers(0, runs))
    low, high = Estimate(0, 0, runs, fails).interval
    assert 0 <= low <= fails / runs <= high <= 1
    more = Estimate(0, 0, 4 * runs, 4 * fails).interval
    assert more[1] - more[0] <= high - low
