"""What is written or copied directly is what the general way makes of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.plan.encoding import (
    event_from_json,
    event_line,
    state_from_json,
    state_to_json,
)
from compiler.plan.event_kinds import KINDS
from compiler.plan.format import DISTRIBUTIONS, MAX_INT, Place, PlanError, canonical
from compiler.plan.properties import COMPOSED, PROPERTIES, RARE, LinkState, Totals
from compiler.plan.types import Event

whole = st.integers(0, MAX_INT)
names = st.sampled_from(["rate_bps", "delay_ns", "jitter_ns", "loss_ppb", "queue_bytes"])
words = st.dictionaries(st.just("distribution"), st.sampled_from(DISTRIBUTIONS))
arguments = st.builds(lambda a, b: {**a, **b}, st.dictionaries(names, whole), words)
# Targets of a plan are plain names; quotes, controls and surrogate pairs must be written right too.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
events = st.builds(Event, whole, whole, st.sampled_from(KINDS), texts, arguments, whole)
sets = st.builds(Event, whole, whole, st.just("set"), texts, arguments.filter(bool), whole)


@given(events)
def test_an_event_is_written_in_canonical_form(event: Event) -> None:
    record = {**asdict(event), "args": dict(event.args)}
    assert event_line(event) == canonical(record)


@given(sets)
def test_an_event_is_read_as_it_was(event: Event) -> None:
    small = {key: min(value, 10**9) if isinstance(value, int) else value
             for key, value in event.args.items()}  # fmt: skip
    event = replace(event, args=small)
    line = event_line(event)
    assert event_from_json(json.loads(line), Place("timeline.jsonl", 1)) == event


def test_the_table_is_in_the_order_of_the_records() -> None:
    """Records are made and read by place."""
    assert ("up", *(row.field for row in PROPERTIES)) == LinkState._fields
    assert tuple(row.field for row in COMPOSED) == Totals._fields
    assert PROPERTIES[: len(COMPOSED)] == COMPOSED, "a path's totals begin a state"
    texts = [row for row in PROPERTIES if row.words or row.table or row.form]
    assert all(row in texts or 0 < row.most <= row.stored for row in PROPERTIES)


def test_rare_properties_stand_at_the_end_and_only_where_one_is_not_zero() -> None:
    assert all(row.rare for row in PROPERTIES[-RARE:])
    assert not any(row.rare for row in PROPERTIES[:-RARE])
    place = Place("snapshots.jsonl", 3)
    plain = LinkState(True, 0, 5, 0, 0, 1, "normal")
    for state in (plain, plain._replace(reorder_ns=7), plain._replace(burst_milli=8000)):
        assert state_from_json(state_to_json(state), place) == state
    assert state_to_json(plain) == [1, 0, 5, 0, 0, 1, "normal"]
    with pytest.raises(PlanError, match="left out where they are 0"):
        state_from_json([*state_to_json(plain), *[0] * RARE], place)
    with pytest.raises(PlanError, match="a list of 7"):
        state_from_json([*state_to_json(plain), 0], place)
