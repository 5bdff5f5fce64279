"""Bulk composition against single paths, figure by figure; what C leaves to larger integers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.plan.format import MAX_INT, PPB, PlanError
from compiler.plan.paths import collapse
from compiler.plan.paths.collapse import Collapse, RouteRow
from compiler.plan.paths.path import Paths
from compiler.plan.properties import LinkState
from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import MS, PLAIN, SECOND, build, contents, listing, networks, timeline

Case = tuple[Topology, tuple[Event, ...]]


def states(case: Case) -> Iterator[NetworkState]:
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    for at_ns in sorted({0, *(event.at_ns for event in events)}):
        yield plan.state_at(at_ns)


def check_row(row: RouteRow, paths: Paths, dests: Sequence[int]) -> None:
    assert list(row.dests) == list(dests)
    for at, dest in enumerate(dests):
        found = paths.path(row.source, dest) if dest != row.source else None
        wanted = (0, 0, 0, 0, 0)
        if found and found.reachable:
            figures = found.totals
            wanted = (*(value or 0 for value in figures), len(found.links))  # type: ignore[assignment]
        have = tuple(column[at] for column in row.totals)
        assert (*have, row.hops[at]) == wanted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=5, bridges=8, length=15))
def test_rows_agree_with_paths(case: Case) -> None:
    collapsed = Collapse(case[0])
    everybody = range(collapsed.core.endpoints)
    for state in states(case):
        paths = Paths(state)
        rows = list(collapsed.rows(state, everybody))
        assert [row.source for row in rows] == list(everybody)
        for row in rows:
            check_row(row, paths, everybody)


@settings(max_examples=100, deadline=None)
@given(networks(services=6, bridges=6, length=3), st.randoms(use_true_random=False), st.data())
def test_any_sources_and_destinations_in_any_order(
    case: Case, rnd: random.Random, data: st.DataObject
) -> None:
    collapsed = Collapse(case[0])
    count = collapsed.core.endpoints
    members = st.lists(st.integers(0, count - 1), max_size=12)
    sources, dests = data.draw(members), data.draw(members)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collapse, "_BLOCK_BYTES", rnd.choice([0, 100, 1000]))
        for state in states(case):
            rows = list(collapsed.rows(state, sources, dests))
            assert [row.source for row in rows] == sources
            for row in rows:
                check_row(row, Paths(state), dests)


def chain(*links: LinkState) -> NetworkState:
    """a - p1 - p2 … - z with these links, the same in both directions."""
    names = ["a", *(f"p{i}" for i in range(1, len(links))), "z"]
    wired = [(names[i], names[i + 1], link, link) for i, link in enumerate(links)]
    topology = build([("a", 1), ("z", 1)], names[1:-1], wired)
    return decode(encode(contents(topology, timeline(topology)))).state_at(0)


def only(state: NetworkState) -> RouteRow:
    """From a to z, held against the single path."""
    [row] = Collapse(state.topology).rows(state, [0], [1])
    check_row(row, Paths(state), [1])
    return row


STRANGE = [0, 1, 2, 3, 5, 10**8, 5 * 10**8, PPB - 1, PPB, 123_456_789, 998_046_875, 999_999_488]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(STRANGE), st.integers(0, PPB)), min_size=2, max_size=12))
def test_any_loss_is_rounded_exactly(losses: list[int]) -> None:
    only(chain(*(PLAIN._replace(loss_ppb=loss) for loss in losses)))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(0, 10), st.integers(0, 2**32), st.integers(2**62, MAX_INT), st.just(2**31)
        ),
        min_size=2,
        max_size=9,
    )
)
def test_any_jitter_is_rounded_exactly(jitters: list[int]) -> None:
    links = [PLAIN._replace(delay_ns=MAX_INT, jitter_ns=jitter) for jitter in jitters]
    only(chain(*links))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60_000), min_size=2, max_size=5), st.integers(-3, 3))
def test_jitter_beside_a_half_is_rounded_exactly(legs: list[int], beside: int) -> None:
    """r^2 + r is the largest square that still rounds down to r."""
    root = sum(leg * leg for leg in legs) + beside
    square = root * root + root + beside
    jitters = []
    while square > 0 and len(jitters) < 60:
        jitters.append(int(square**0.5) if square < 2**50 else 2**25)
        jitters[-1] = min(jitters[-1], 2**25)
        square -= jitters[-1] ** 2
    links = [PLAIN._replace(jitter_ns=max(0, jitter)) for jitter in (*jitters, 0, 0)]
    only(chain(*links))


def test_a_tie_that_fixed_point_cannot_tell_goes_up() -> None:
    """2^29 * 2^6 m * 5^12 * 5^12 * 5^12 ppb kept: half a ppb exactly, in 45 decimals."""
    kept = [2**29, 2**6 * 15_600_001, 5**12, 5**12, 5**12]
    product, unit = 1, PPB ** (len(kept) - 1)
    for one in kept:
        product *= one
    assert 2 * product % unit == 0
    assert product % unit
    state = chain(*(PLAIN._replace(loss_ppb=PPB - one) for one in kept))
    assert only(state).totals.loss_ppb[0] == PPB - product // unit


def test_figures_beyond_64_bits_are_exact() -> None:
    far = PLAIN._replace(delay_ns=MAX_INT, jitter_ns=MAX_INT)
    row = only(chain(*[far] * 6))
    assert row.totals.delay_ns[0] == 6 * MAX_INT
    assert row.totals.jitter_ns[0] > 2 * MAX_INT
    assert only(chain(far, far)).totals.delay_ns[0] == 2 * MAX_INT


def test_unlimited_is_more_than_any_rate() -> None:
    rates = [0, MAX_INT, 0]
    limited = only(chain(*(PLAIN._replace(rate_bps=rate) for rate in rates)))
    free = only(chain(PLAIN._replace(rate_bps=0), PLAIN._replace(rate_bps=0)))
    assert (limited.totals.rate_bps[0], free.totals.rate_bps[0]) == (MAX_INT, 0)


def test_a_state_after_another() -> None:
    """The links of the first are not taken for those of the second."""
    topology = listing()
    events = timeline(topology, (SECOND, "link_down", "s1->s2"))
    collapsed = Collapse(topology)
    first, second = states((topology, events))
    for state in (first, second, first):
        [row] = collapsed.rows(state, [0], [2])
        assert bool(row.hops[0]) == (state is first)


def test_rows_taken_in_turns() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "link_down", "s1->s2"))
    collapsed = Collapse(topology)
    first, second = states((topology, events))
    turns = zip(collapsed.rows(first, range(4)), collapsed.rows(second, range(4), [2]), strict=True)
    for one, other in turns:
        check_row(one, Paths(first), range(4))
        check_row(other, Paths(second), [2])


def test_a_circle_in_the_table_is_an_error_not_a_hang() -> None:
    state = chain(PLAIN, PLAIN, PLAIN, PLAIN)
    core, p2 = state.core, 3
    column = core.column_of[core.anchor[1]]
    back = [state.topology.links[link].name for link in core.out[core.row_of[p2]]].index("p2->p1")
    state.table[core.row_of[p2] * len(core.columns) + column] = back + 1
    with pytest.raises(PlanError, match=r"routes\.bin: epoch 0 routes in a circle"):
        list(Collapse(state.topology).rows(state, [0, 1]))
    [row] = Collapse(state.topology).rows(state, [1], [0])
    assert row.totals.delay_ns[0] == 4 * MS


def test_a_route_over_a_link_that_is_down_is_an_error() -> None:
    topology = listing()
    state = decode(encode(contents(topology, timeline(topology)))).state_at(0)
    link = next(i for i, item in enumerate(topology.links) if item.name == "s1->s2")
    links = list(state.links)
    links[link] = links[link]._replace(up=False)
    with pytest.raises(PlanError, match="over link 4, which is down"):
        list(Collapse(topology).rows(replace(state, links=links), [0], [2]))


def test_nobody_and_nothing() -> None:
    empty = build([], ["s"], [])
    state = decode(encode(contents(empty, ()))).state_at(0)
    assert list(Collapse(empty).rows(state, [])) == []
    topology = listing()
    state = decode(encode(contents(topology, timeline(topology)))).state_at(0)
    assert [list(row.hops) for row in Collapse(topology).rows(state, [1, 0], [])] == [[], []]
