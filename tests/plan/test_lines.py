"""What is written or copied directly is what the general way makes of it."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import asdict, fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compiler.expand.world import LinkNow
from compiler.plan.encoding import event_from_json, event_line
from compiler.plan.format import DISTRIBUTIONS, MAX_INT, Place, canonical
from compiler.plan.state import _changed
from compiler.plan.types import KINDS, Event, LinkState
from tests.plan.networks import PLAIN

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


@given(arguments, st.booleans())
def test_a_changed_state_is_a_replaced_one(changes: dict[str, Any], up: bool) -> None:
    assert _changed(PLAIN, up=up, **changes) == replace(PLAIN, up=up, **changes)
    assert all(getattr(_changed(PLAIN), field.name) == getattr(PLAIN, field.name)
               for field in fields(LinkState))  # fmt: skip


def test_a_copied_link_has_every_field() -> None:
    """Each field differs from the others and from the defaults."""
    link = LinkNow(1, 2, 3, 4, 5, True, "pareto", 6, 7)
    assert len(fields(LinkNow)) == 9
    again = link.copy()
    assert again == copy(link) == link
    assert again is not link
