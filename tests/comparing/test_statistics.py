"""Tests and intervals, beside definitions that are carried out literally and published figures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tstorm.comparing import intervals, ranks

FEW = st.lists(st.integers(0, 5), min_size=1, max_size=5)


def literally(first: list[int], second: list[int]) -> float:
    """Every way to divide the values: how many are as far from the middle, or farther."""
    values = [*first, *second]
    doubled = [2 * sum(o < v for o in values) + sum(o == v for o in values) + 1 for v in values]
    middle = Fraction(sum(doubled) * len(first), len(values))
    sums = [sum(chosen) for chosen in combinations(doubled, len(first))]
    distance = abs(sum(doubled[: len(first)]) - middle)
    return sum(abs(one - middle) >= distance for one in sums) / len(sums)


@given(FEW, FEW)
def test_the_exact_test_is_its_definition(first: list[int], second: list[int]) -> None:
    assert ranks.probability(first, second) == pytest.approx(literally(first, second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Without ties the two-sided probability of the extreme is 2 / C(n+m, n).
        ([1, 2, 3], [4, 5, 6], 0.1),
        ([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
        ([7, 7, 7], [7, 7], 1.0),
        ([], [1], 1.0),
    ],
)
def test_known_probabilities(first: list[float], second: list[float], expected: float) -> None:
    assert ranks.probability(first, second) == pytest.approx(expected)
    assert ranks.probability(second, first) == pytest.approx(expected)


def test_with_many_values_the_limit_is_near_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = Random(1)
    first = [draw.randrange(20) for _ in range(30)]
    second = [draw.randrange(2, 22) for _ in range(35)]
    limit = ranks.probability(first, second)
    monkeypatch.setattr(ranks, "EXACT", 65)
    exact = ranks.probability(first, second)
    assert 0.001 < exact < 0.2
    assert limit == pytest.approx(exact, rel=0.1)


def test_what_so_many_values_can_show_at_least() -> None:
    assert ranks.least(3, 3) == pytest.approx(0.1)
    assert ranks.least(1, 1) == 1.0
    assert ranks.least_of_pairs(6) == ranks.probability_of_pairs([1, 2, 3, 4, 5, 6]) == 2 / 2**6
    assert ranks.least_of_pairs(1) == ranks.probability_of_pairs([-3.5]) == 1.0


def every_sign(differences: list[int]) -> float:
    """Every way to choose the signs: how many are as far from the middle, or farther."""
    apart = [one for one in differences if one]
    sizes = [abs(one) for one in apart]
    doubled = [2 * sum(o < v for o in sizes) + sum(o == v for o in sizes) + 1 for v in sizes]

    def distance(signs: tuple[bool, ...]) -> int:
        above = sum(rank for rank, up in zip(doubled, signs, strict=True) if up)
        return abs(2 * above - sum(doubled))

    found = distance(tuple(one > 0 for one in apart))
    ways = [distance(signs) for signs in product((False, True), repeat=len(apart))]
    return sum(one >= found for one in ways) / len(ways)


@given(st.lists(st.integers(-4, 4), max_size=8))
def test_the_exact_test_of_pairs_is_its_definition(differences: list[int]) -> None:
    assert ranks.probability_of_pairs(differences) == pytest.approx(every_sign(differences))
    assert ranks.probability_of_pairs([-one for one in differences]) == ranks.probability_of_pairs(
        differences
    )


def test_the_published_example_of_pairs() -> None:
    """Hollander and Wolfe 1973, p. 29 ff.: depression of nine patients at two visits; V = 40."""
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    apart = [b - a for a, b in zip(before, after, strict=True)]
    assert ranks.probability_of_pairs(apart) == pytest.approx(2 * 0.01953, abs=1e-4)


def test_of_shares_it_is_the_exact_test_of_mcnemar() -> None:
    """Those that changed are 10 and 2: twice the tail of a coin that is thrown twelve times."""
    tail = sum(math.comb(12, number) for number in range(3)) / 2**12
    assert ranks.probability_of_pairs([1] * 10 + [-1] * 2 + [0] * 9) == pytest.approx(2 * tail)


def test_with_many_pairs_the_limit_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(1)
    apart = [draw.randrange(-15, 22) for _ in range(60)]
    limit = ranks.probability_of_pairs(apart)
    monkeypatch.setattr(ranks, "EXACT_PAIRS", 60)
    exact = ranks.probability_of_pairs(apart)
    assert 0.001 < exact < 0.2
    assert limit == pytest.approx(exact, rel=0.1)


@settings(max_examples=20)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30))
def test_the_median_is_that_of_the_library(values: list[int]) -> None:
    assert intervals.median(values) == median(values)


def literal_bootstrap(first: list[float], second: list[float]) -> list[float]:
    draw = Random(5)
    return sorted(
        median(draw.choices(second, k=len(second))) - median(draw.choices(first, k=len(first)))
        for _ in range(4000)
    )


@pytest.mark.parametrize("sizes", [(5, 6), (21, 30), (250, 300)])
def test_the_interval_is_that_of_drawing_again(sizes: tuple[int, int]) -> None:
    """Also beyond the size from which positions come from their limit."""
    draw = Random(2)
    first = [draw.gauss(10, 2) for _ in range(sizes[0])]
    second = [draw.gauss(13, 2) for _ in range(sizes[1])]
    low, high = intervals.of_difference(first, second)
    drawn = literal_bootstrap(first, second)
    width = drawn[3899] - drawn[100]
    assert low == pytest.approx(drawn[100], abs=0.15 * width)
    assert high == pytest.approx(drawn[3899], abs=0.15 * width)
    assert (low, high) == intervals.of_difference(first, second)


def test_values_that_are_all_the_same_leave_no_doubt() -> None:
    assert intervals.of_difference([3, 3], [5, 5, 5]) == (2, 2)
    assert intervals.of_difference([3], [1]) == (-2, -2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [  # Newcombe 1998, table II, method 10
        ((48, 80), (56, 70), (0.0524, 0.3339)),
        ((3, 10), (9, 10), (0.1705, 0.8090)),
        ((0, 29), (5, 56), (-0.0381, 0.1926)),
    ],
)
def test_intervals_of_shares_are_the_published_ones(
    first: tuple[int, int], second: tuple[int, int], expected: tuple[float, float]
) -> None:
    found = intervals.of_shares(first, second)
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_interval_of_paired_shares_is_the_published_one() -> None:
    """Newcombe 1998, table III, method 10: 20, 12, 2 and 16 of 50."""
    both = [(True, True)] * 20 + [(False, True)] * 12 + [(True, False)] * 2 + [(False, False)] * 16
    assert intervals.of_paired_shares(both) == pytest.approx((0.0562, 0.3292), abs=1e-4)


def test_pairs_that_have_nothing_to_do_with_each_other_are_as_two_samples() -> None:
    both = [(False, True)] * 4 + [(False, False)] * 6
    assert intervals.of_paired_shares(both) == intervals.of_shares((0, 10), (4, 10))


def test_the_interval_of_a_median_is_that_of_drawing_again() -> None:
    draw = Random(2)
    values = [draw.gauss(3, 2) for _ in range(25)]
    again = Random(5)
    drawn = sorted(median(again.choices(values, k=25)) for _ in range(4000))
    low, high = intervals.of_median(values)
    width = drawn[3899] - drawn[100]
    assert low == pytest.approx(drawn[100], abs=0.15 * width)
    assert high == pytest.approx(drawn[3899], abs=0.15 * width)
    assert intervals.of_median([2, 2]) == (2, 2)


def test_holm_makes_the_smallest_count_most() -> None:
    found = ranks.adjusted([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert ranks.adjusted([0.9, 0.8]) == [1.0, 1.0]
    assert ranks.adjusted([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_makes_nothing_surer(found: list[float]) -> None:
    made = ranks.adjusted(found)
    for one, other in zip(found, made, strict=True):
        assert one <= other <= 1.0
        assert not math.isnan(other)
    assert [made[n] for n in sorted(range(len(found)), key=found.__getitem__)] == sorted(made)
