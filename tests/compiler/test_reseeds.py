"""Draws of another seed from a moment on: what is before it stays, and all of it repeats."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.draws import UNDER_WAY_NS, reseeds, with_reseeds
from compiler.origin import explain_event
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan

SECOND = 10**9
TEXT = b"""service a replicas=20 exec="sleep 100"
bridge s
link a--s latency=1ms up=100Mb symmetric
from 1s to 20s a churn 8 replace 50%
from 2s to 18s a leave 3
at 4s a disconnect 2
at 12s a pause 2
from 13s to 16s a disconnect 2
at 25s quit"""


@cache
def planned(moments: tuple[tuple[int, int], ...] = ()) -> Plan:
    return compile_source(with_reseeds(TEXT, dict(moments))).plan


def until(plan: Plan, at_ns: int) -> list[object]:
    return [(one.at_ns, one.kind, one.target) for one in plan.events if one.at_ns < at_ns]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 24 * SECOND), st.integers(0, 2**63 - 1), st.integers(0, 9))
def test_events_before_the_moment_are_the_same(at_ns: int, seed: int, other: int) -> None:
    plan, branch = planned(), planned(((at_ns, seed),))
    assert until(plan, at_ns + UNDER_WAY_NS) == until(branch, at_ns + UNDER_WAY_NS)
    later = at_ns + 2 * SECOND
    twice = planned(((at_ns, seed), (later, other)))
    assert until(twice, later + UNDER_WAY_NS) == until(branch, later + UNDER_WAY_NS)


def test_events_after_the_moment_are_others_also_with_the_same_seed() -> None:
    for seed in (0, 1, 2):
        branch = planned(((10 * SECOND, seed),))
        assert branch.events != planned().events
        times = [one.at_ns for one in branch.events if one.kind == "leave"]
        assert len(times) == 3
        assert all(2 * SECOND <= one < 18 * SECOND for one in times)


def test_moments_take_the_place_of_those_before() -> None:
    once = with_reseeds(TEXT, {5: 1, 3: 2})
    assert once == TEXT + b"\n#: reseed 3 2\n#: reseed 5 1\n"
    assert reseeds(once) == ((3, 2), (5, 1))
    assert with_reseeds(once, {7: 9}) == TEXT + b"\n#: reseed 7 9\n"
    assert with_reseeds(TEXT, {}) == TEXT


def test_each_event_is_explained_by_the_seed_that_drew_it() -> None:
    branch = planned(((10 * SECOND, 5),))
    keys = set()
    for event in branch.events:
        story = explain_event(branch, event.seq)
        if story.origin.step is not None and story.origin.step.statement.start_ns == SECOND:
            keys.add(story.key)
    assert len(keys) == 2, "of the churn, by the plan's seed and by the other"
