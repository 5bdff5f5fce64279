"""What a run reached, of which other runs are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.pipeline import compile_source
from tstorm.hunt import novelty

PLAN = compile_source(
    "service a\nservice b\nlink a--b latency=1ms\nat 9s quit\nexpect rtt a b < 8ms\n"
).plan
TEXT = PLAN.expectations[0].text


def test_states_are_told_of_services_changes_and_all_instances_at_once() -> None:
    said = [(1, "db.0", "leader"), (2, "db.1", "follower"), (5, "db.1", "leader")]
    assert set(novelty.states(said)) == {
        *("state db leader", "state db follower", "state db follower>leader"),
        *("states leader", "states follower leader", "states leader leader"),
    }


def test_the_order_of_states_matters_and_their_moments_do_not() -> None:
    one = [(1, "db.0", "a"), (2, "db.1", "b")]
    later = [(at + 100, name, state) for at, name, state in one]
    other = [(2, "db.1", "b"), (3, "db.0", "a")]
    assert list(novelty.states(one)) == list(novelty.states(later))
    assert set(novelty.states(one)) != set(novelty.states(other))


def test_a_program_that_counts_in_its_state_is_bounded() -> None:
    said = [(at, "db.0", str(at)) for at in range(10_000)]
    assert len(list(novelty.states(said))) <= novelty.MOST_STATES + 2


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("state=leader", "leader"),
        ("12 db state: x.y z", "x.y"),
        ("estate=9", None),
        ("state", None),
    ],
)
def test_states_are_words_in_lines(line: str, state: str | None) -> None:
    found = novelty._STATE.search(line)
    assert (found and found[1]) == state


@pytest.mark.parametrize(
    ("figure", "halvings"), [(16_000_000, 0), (5_000_000, 2), (7_900_000, 7), (None, None)]
)
def test_figures_near_their_bounds_are_told_by_how_near(
    figure: int | None, halvings: int | None
) -> None:
    rows: list[dict[str, Any]] = [{"text": TEXT, "figure": figure}, {"text": "no such"}]
    found = list(novelty._near(rows, PLAN))
    assert found == ([] if halvings is None else [f"near {TEXT} {halvings}"])


def test_figures_are_told_by_their_size() -> None:
    rows = [{"name": "x", "value": value} for value in ("9", "-1000.5", "1e300", None)]
    assert list(novelty._figures(rows)) == ["figure x 4", "figure x -10", "figure x 60"]
