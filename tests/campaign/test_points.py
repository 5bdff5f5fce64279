"""The points of a campaign, and that their names are names of files in its directory."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tstorm.campaign.points import Grid, Point, grid

VALUES = st.text(max_size=200)


def test_a_name_says_what_the_point_is() -> None:
    assert Point(3).name == "seed-3"
    assert Point(3, (("loss", "1%"), ("rtt", "20ms"))).name == "loss=1%25,rtt=20ms,seed-3"


@given(VALUES, VALUES)
def test_no_value_leaves_the_directory_and_no_two_have_one_name(one: str, other: str) -> None:
    names = [Point(1, (("a", value),)).name for value in (one, other)]
    assert (names[0] == names[1]) == (one == other)
    for name in names:
        assert name.isascii()
        assert name.isprintable()
        assert not {"/", "\\", "'", '"', " ", "\0"} & set(name)
        assert not name.startswith(".")
        assert len(name) <= 120


@pytest.mark.parametrize("value", ["../../etc", "/", "..", ".", "a,seed-9", "x=y", "~root", "\n"])
def test_hostile_values(value: str) -> None:
    assert Point(1, (("a", value),)).name.count(",") == 1
    assert "/" not in Point(1, ((value, "b"),)).name
    assert not Point(1, ((value, "b"),)).name.startswith(".")


def test_a_grid_has_every_combination_in_order() -> None:
    grid = Grid(range(1, 3), (("loss", ("0%",)), ("rtt", ("5ms", "9ms"))))
    names = [point.name for point in grid.points()]
    assert names == [
        "loss=0%25,rtt=5ms,seed-1",
        "loss=0%25,rtt=5ms,seed-2",
        "loss=0%25,rtt=9ms,seed-1",
        "loss=0%25,rtt=9ms,seed-2",
    ]
    assert grid.count == 4


@pytest.mark.parametrize(
    ("seeds", "values", "covered"),
    [
        (range(1, 4), ("a",), True),
        (range(9), ("b", "a"), True),
        (range(2, 9), ("a",), False),
        (range(1, 4), ("b",), False),
    ],
)
def test_a_larger_grid_goes_on_with_a_smaller_one(
    seeds: range, values: tuple[str, ...], covered: bool
) -> None:
    before = Grid(range(1, 4), (("x", ("a",)),))
    assert Grid(seeds, (("x", values),)).covers(before) is covered
    assert not Grid(seeds).covers(before)


def test_values_of_parameters_stand_between_commas() -> None:
    made = grid(range(1, 3), {"rtt": "5ms,9ms", "loss": "1%"})
    assert made == Grid(range(1, 3), (("loss", ("1%",)), ("rtt", ("5ms", "9ms"))))


def test_values_whose_combinations_no_number_counts_are_refused() -> None:
    with pytest.raises(click.UsageError, match="more than 10000 points"):
        grid(range(1, 3), {f"p{number}": "a,b" for number in range(63)})


MANY = ",".join(map(str, range(6000)))


@pytest.mark.parametrize("values", ["", "a,", ",a", "a,,b", "a,b,a", MANY])
def test_values_that_are_no_grid_are_refused(values: str) -> None:
    with pytest.raises(click.UsageError):
        grid(range(1, 3), {"x": values})
