"""The answer of a probe that has arrived, against the first of all that are nearest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.probing.roundtrip import answer

MOMENT = st.integers(0, 60)


@given(st.lists(st.tuples(MOMENT, MOMENT), unique_by=lambda one: one[0]), MOMENT, MOMENT)
def test_it_is_the_nearest_one_within_reach(
    back: list[tuple[int, int]], arrived_ns: int, reach_ns: int
) -> None:
    back.sort()
    near = [one for one in back if abs(one[0] - arrived_ns) <= reach_ns]
    near.sort(key=lambda one: (abs(one[0] - arrived_ns), one[0]))
    assert answer(back, arrived_ns, reach_ns) == (near[0][1] if near else None)
