"""Timelines compared: an event more makes only itself differ."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from compiler.analysis.plan_diff import compare_plans
from compiler.analysis.timeline_diff import TimelineEntry, compare_timelines
from compiler.plan.types import Event
from tests.plan.networks import contents, networks

KINDS = ("link_up", "link_down", "set", "join")


def events(*given_: tuple[int, str, str, int]) -> tuple[Event, ...]:
    """(time, kind, target, delay) numbered in order."""
    return tuple(
        Event(seq, at_ns, kind, target, {"delay_ns": delay} if kind == "set" else {}, seq + 1)
        for seq, (at_ns, kind, target, delay) in enumerate(given_)
    )


def happens(event: Event) -> tuple[object, ...]:
    return event.at_ns, event.kind, event.target, tuple(event.args.items())


def counts(entries: tuple[TimelineEntry, ...]) -> dict[str, int]:
    return dict(Counter(entry.what for entry in entries))


happenings = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(KINDS), st.sampled_from("xyz"), st.integers(1, 2)),
    max_size=20,
).map(lambda found: events(*sorted(found, key=lambda one: one[0])))


@given(happenings)
def test_a_timeline_does_not_differ_from_itself(found: tuple[Event, ...]) -> None:
    assert compare_timelines(found, found) == ()


@given(happenings, st.integers(0, 4), st.sampled_from(KINDS))
def test_an_inserted_event_is_the_only_difference(
    found: tuple[Event, ...], at_ns: int, kind: str
) -> None:
    """Its number shifts all others, and so does its line."""
    place = sum(event.at_ns <= at_ns for event in found)
    rows = [(e.at_ns, e.kind, e.target, int(e.args.get("delay_ns", 1))) for e in found]
    more = events(*rows[:place], (at_ns, kind, "new", 1), *rows[place:])
    (entry,) = compare_timelines(found, more)
    assert (entry.what, entry.a, entry.b) == ("added", None, more[place])
    (entry,) = compare_timelines(more, found)
    assert (entry.what, entry.a, entry.b) == ("removed", more[place], None)


@given(happenings, happenings)
def test_entries_account_for_every_event(a: tuple[Event, ...], b: tuple[Event, ...]) -> None:
    """Taking the entries' events from both leaves the same; each event is told at most once."""
    entries = compare_timelines(a, b)
    told = [entry for entry in entries if entry.what != "reordered"]
    for side, all_events in (("a", a), ("b", b)):
        seqs = [event.seq for entry in told if (event := getattr(entry, side))]
        assert len(seqs) == len(set(seqs)) <= len(all_events)
    left = [
        Counter(happens(event) for event in all_events)
        - Counter(happens(event) for entry in told if (event := getattr(entry, side)))
        for side, all_events in (("a", a), ("b", b))
    ]
    assert left[0] == left[1]
    assert [entry.at_ns for entry in entries] == sorted(entry.at_ns for entry in entries)
    for entry in told:
        if entry.what == "moved":
            assert entry.a is not None
            assert entry.b is not None
            assert happens(entry.a)[1:] == happens(entry.b)[1:]
    same = [happens(event) for event in a] == [happens(event) for event in b]
    assert same == (entries == ())


def test_what_an_entry_is() -> None:
    before = events(
        (1, "join", "x", 1), (2, "set", "l", 1), (3, "link_down", "l", 1), (4, "join", "y", 1)
    )
    after = events(
        (1, "join", "x", 1), (2, "set", "l", 2), (5, "link_down", "l", 1), (6, "join", "z", 1)
    )
    found = compare_timelines(before, after)
    assert [(entry.what, entry.at_ns) for entry in found] == [
        ("changed", 2),
        ("moved", 3),
        ("removed", 4),
        ("added", 6),
    ]


def test_the_order_within_an_instant_counts_once() -> None:
    before = events(*((5, "join", name, 1) for name in "abcd"))
    after = events(*((5, "join", name, 1) for name in "dcba"))
    (entry,) = compare_timelines(before, after)
    assert (entry.what, entry.at_ns) == ("reordered", 5)
    assert counts(compare_timelines(before, after[:-1])) == {"removed": 1, "reordered": 1}


@given(networks(length=6))
def test_plans_of_the_same_are_equal(network: tuple[object, ...]) -> None:
    from compiler.plan.reader import decode
    from compiler.plan.writer import encode

    topology, timeline = network
    one = decode(encode(contents(topology, timeline)))  # type: ignore[arg-type]
    other = decode(encode(contents(topology, timeline, seed=2)))  # type: ignore[arg-type]
    assert compare_plans(one, one).equal
    diff = compare_plans(one, other)
    assert [(d.kind, d.field, d.a, d.b) for d in diff.topology] == [("experiment", "seed", 1, 2)]
    assert diff.timeline == ()
    assert diff.network is not None
    assert diff.network.groups == ()
    assert not diff.equal
