"""Delta debugging finds what a failure needs, and does not ask more than it must."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tstorm.shrink.search import minimise


@pytest.mark.parametrize("needed", [set(), {3}, {0, 7}, {1, 2, 3}, {0, 4, 8}, set(range(9))])
def test_what_is_needed_is_what_is_left(needed: set[int]) -> None:
    assert minimise(range(9), lambda part: needed <= set(part)) == sorted(needed)


@given(st.integers(1, 24), st.randoms(use_true_random=False))
def test_nothing_single_can_be_left_out_of_what_is_left(count: int, draw: object) -> None:
    """Also where failures come and go as more is taken out."""
    answers: dict[tuple[int, ...], bool] = {tuple(range(count)): True}

    def fails(part: Sequence[int]) -> bool:
        return answers.setdefault(tuple(part), draw.random() < 0.3)  # type: ignore[attr-defined]

    left = minimise(range(count), fails)
    assert answers[tuple(left)]
    if len(left) > 1:
        for item in left:
            assert not answers[tuple(one for one in left if one != item)]


def test_one_cause_among_many_takes_few_tests() -> None:
    asked: list[int] = []

    def fails(part: Sequence[int]) -> bool:
        asked.append(len(part))
        return 77 in part

    assert minimise(range(128), fails) == [77]
    assert len(asked) <= 2 * 7 + 1
