"""The solver against exact arithmetic, the published figures, and wrong input."""

from __future__ import annotations

import errno
import random
from array import array

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.agent.share import solver, tsshare
from runtime.agent.share.solver import NO_LINK, UNLIMITED, Flow, solve
from runtime.errors import MachineError
from tests.agent.share import oracle

MBIT = 1_000_000
MS = 1_000_000

# Paper 000 §5.4 by links: c1…c6 (0-5), b1->b2 (6), b2->b3 (7), s1…s6 (8-13).
DUMBBELL = {
    **{i: (50, 50, 10, 50, 50, 10)[i] * MBIT for i in range(6)},
    6: 50 * MBIT,
    7: 100 * MBIT,
    **{8 + i: 50 * MBIT for i in range(6)},
}
ONE_WAY_MS = (10, 5, 5, 10, 5, 5)


def client(i: int) -> Flow:
    """Greedy, from client i (0-5) to its server, in both directions the same delay."""
    behind_first = i < 3
    links = (i, *((6,) if behind_first else ()), 7, 8 + i)
    rtt_ms = 2 * (ONE_WAY_MS[i] + (10 if behind_first else 0) + 10 + 5)
    return Flow(links, rtt_ms * MS, UNLIMITED)


@pytest.mark.parametrize(
    "shares",
    [
        (23.08, 26.92),
        (18.46, 21.54, 10.0),
        (16.93, 19.75, 10.0, 23.70, 29.62),
        (15.05, 17.55, 10.0, 21.07, 26.33, 10.0),
    ],
    ids=lambda shares: f"{len(shares)} clients",
)
def test_the_dumbbell_of_the_paper(shares: tuple[float, ...]) -> None:
    found = solve([client(i) for i in range(len(shares))], DUMBBELL).shares
    assert [share.allocation_bps / MBIT for share in found] == pytest.approx(shares, abs=0.01)
    assert [share.bottleneck for share in found if share.allocation_bps == 10 * MBIT] == [
        i for i in (2, 5) if i < len(shares)
    ]


def test_one_sender_with_two_destinations() -> None:
    flows = [Flow((0, 1), 20 * MS, UNLIMITED), Flow((0, 2), 100 * MS, UNLIMITED)]
    found = solve(flows, {0: 100 * MBIT, 1: 0, 2: 0})
    assert [share.allocation_bps for share in found.shares] == [83_333_333, 16_666_666]
    assert [share.bottleneck for share in found.shares] == [0, 0]
    assert found.levels_bits == {0: pytest.approx(83_333_333.3 * 0.02)}


def test_who_wants_less_leaves_the_rest_and_may_come_back_to_its_share() -> None:
    flows = [Flow((0,), MS, 10 * MBIT), Flow((0,), MS, UNLIMITED)]
    modest, greedy = solve(flows, {0: 100 * MBIT}).shares
    assert modest == (10 * MBIT, NO_LINK, 90 * MBIT)
    assert greedy == (90 * MBIT, 0, 90 * MBIT)
    alone = solve(flows[:1], {0: 100 * MBIT})
    assert alone.shares == [(10 * MBIT, NO_LINK, 100 * MBIT)]
    assert alone.levels_bits == {}


def test_a_flow_without_a_limited_link_has_what_it_wants() -> None:
    flows = [Flow((5,), MS, UNLIMITED), Flow((), MS, 7), Flow((5, 6), 0, 3)]
    found = solve(flows, {5: 0})
    assert found.shares == [
        (UNLIMITED, NO_LINK, UNLIMITED),
        (7, NO_LINK, UNLIMITED),
        (3, NO_LINK, UNLIMITED),
    ]
    assert solve([], {}).shares == []


def test_the_least_of_several_links_that_fill_at_once_is_the_bottleneck() -> None:
    flows = [Flow((9, 4, 7), MS, UNLIMITED), Flow((7, 4), MS, UNLIMITED)]
    found = solve(flows, {4: 30 * MBIT, 7: 30 * MBIT, 9: 15 * MBIT})
    assert [share.bottleneck for share in found.shares] == [4, 4]
    assert sorted(found.levels_bits) == [4, 7, 9]


def test_a_parking_lot() -> None:
    """One flow over all of n links, one more on each: the long one has 1/(n+1) by its round trip
    of n times theirs, the others the rest."""
    hops = 6
    flows = [Flow(tuple(range(hops)), hops * MS, UNLIMITED)]
    flows += [Flow((i,), MS, UNLIMITED) for i in range(hops)]
    found = solve(flows, dict.fromkeys(range(hops), 70 * MBIT)).shares
    assert [share.allocation_bps for share in found] == [10 * MBIT] + [60 * MBIT] * hops


def test_many_flows_of_all_weights_on_one_link() -> None:
    """5,000 flows with round trips from 50 µs to 10 hours fill 10 Tb/s to within a bit a flow."""
    rtts = [int(50_000 * 1.0042**i) for i in range(5000)]
    flows = [Flow((0,), rtt, UNLIMITED) for rtt in rtts]
    # The heaviest are limited elsewhere, so that only light ones share what they leave.
    flows = [flow._replace(links=(0, 1 + i)) if i < 4000 else flow for i, flow in enumerate(flows)]
    capacities = {0: 10**13} | {1 + i: 1000 + i for i in range(4000)}
    exact = oracle_of_two_stages(flows, capacities)
    found = solve(flows, capacities).shares
    worst = max(abs(s.allocation_bps - want) for s, want in zip(found, exact, strict=True))
    assert worst <= 1


def oracle_of_two_stages(flows: list[Flow], capacities: dict[int, int]) -> list[float]:
    """For the test above: those with a link of their own have it, the rest share what is left."""
    from fractions import Fraction

    own = [capacities[flow.links[1]] if len(flow.links) > 1 else None for flow in flows]
    weights = [Fraction(1, flow.rtt_ns) for flow in flows]
    rest = capacities[0] - sum(rate for rate in own if rate is not None)
    total = sum(w for w, rate in zip(weights, own, strict=True) if rate is None)
    level = rest / total
    assert all(rate is None or level * w >= rate for w, rate in zip(weights, own, strict=True))
    return [
        level * w if rate is None else rate  # type: ignore[misc]
        for w, rate in zip(weights, own, strict=True)
    ]


rates = st.one_of(
    st.integers(1, 50), st.integers(1, 10**13), st.sampled_from([0, 10**6, 10**9, 10**13])
)
rtts = st.one_of(
    st.integers(0, 10**9),
    st.sampled_from([0, 20 * MS, 40 * MS, 3600 * 10**9]),
    st.integers(0, 10**14),
)
demands = st.one_of(st.just(UNLIMITED), st.integers(0, 100), st.integers(0, 10**13))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Flow], dict[int, int]]:
    count = draw(st.integers(1, 8))
    numbers = draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count, unique=True))
    capacities = {number: draw(rates) for number in numbers}
    flows = draw(
        st.lists(
            st.builds(
                Flow,
                st.lists(st.sampled_from(numbers), unique=True, max_size=5).map(tuple),
                rtts,
                demands,
            ),
            max_size=12,
        )
    )
    return flows, capacities


@given(problems())
@example(([Flow((0,), 3600 * 10**9, UNLIMITED), Flow((0,), 0, 0)], {0: 256_204_778_802}))
@settings(max_examples=400, deadline=None)
def test_it_is_exact(problem: tuple[list[Flow], dict[int, int]]) -> None:
    flows, capacities = problem
    exact, found = oracle.shares(flows, capacities), solve(flows, capacities)
    for flow, share, rate in zip(flows, found.shares, exact.rates, strict=True):
        if rate is None:
            assert share.allocation_bps == UNLIMITED
        else:
            assert abs(share.allocation_bps - rate) <= 1
            assert share.allocation_bps <= flow.demand_bps
        check_bottleneck(flow, share, found, exact)
    assert set(exact.levels) <= set(found.levels_bits)
    assert all(exact.left[link] < 1 for link in found.levels_bits)
    if set(exact.levels) == set(found.levels_bits):
        for flow, share, rate in zip(flows, found.shares, exact.rates, strict=True):
            want = oracle.entitlement(flow, rate, exact, capacities)
            assert (want is None) == (share.entitlement_bps == UNLIMITED)
            assert want is None or abs(share.entitlement_bps - want) <= 1
    for link, level in exact.levels.items():
        assert found.levels_bits[link] == pytest.approx(float(level / 10**9), rel=1e-9)


def check_bottleneck(
    flow: Flow, share: solver.Share, found: solver.Solution, exact: oracle.Exact
) -> None:
    """It has what it wants, or its bottleneck is full and nobody there has risen higher."""
    if share.bottleneck == NO_LINK:
        assert share.allocation_bps in (flow.demand_bps, UNLIMITED)
        return
    assert share.bottleneck in flow.links
    assert exact.left[share.bottleneck] < 1
    rtt_s = max(flow.rtt_ns, solver.LEAST_RTT_NS) / 1e9
    highest = found.levels_bits[share.bottleneck]
    assert (share.allocation_bps + 1) * rtt_s >= highest * (1 - 1e-9)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_flows_changes_nothing(
    problem: tuple[list[Flow], dict[int, int]], source: random.Random
) -> None:
    flows, capacities = problem
    order = list(range(len(flows)))
    source.shuffle(order)
    straight = solve(flows, capacities).shares
    mixed = solve([flows[i] for i in order], capacities).shares
    for at, i in enumerate(order):
        assert abs(mixed[at].allocation_bps - straight[i].allocation_bps) <= 1
    assert solve(flows, capacities).shares == straight


def test_large_random_networks_are_exact() -> None:
    source = random.Random(4)
    for _ in range(3):
        capacities = {i: source.choice((1, 10, 100, 1000)) * MBIT for i in range(30)}
        flows = [
            Flow(
                tuple(source.sample(range(30), source.randint(1, 6))),
                source.randint(0, 300) * MS,
                source.choice((UNLIMITED, UNLIMITED, source.randint(0, 50 * MBIT))),
            )
            for _ in range(80)
        ]
        exact = oracle.shares(flows, capacities)
        for share, rate in zip(solve(flows, capacities).shares, exact.rates, strict=True):
            assert rate is not None
            assert abs(share.allocation_bps - rate) <= 1


def test_numbers_out_of_range_are_refused() -> None:
    def ask(first: list[int], links: list[int]) -> int:
        result: int = tsshare.library().tsshare_solve(
            len(first) - 1,
            array("I", first),
            array("I", links),
            array("Q", [1] * 4),
            array("Q", [1] * 4),
            2,
            array("Q", [5, 5]),
            array("Q", [0] * 4),
            array("I", [0] * 4),
            array("Q", [0] * 4),
            array("d", [0] * 4),
        )
        return result

    assert ask([0, 1, 2], [0, 1]) == 0
    for first, links in (([1, 1], [0]), ([0, 2, 1], [0, 1]), ([0, 1], [2])):
        assert ask(first, links) == -errno.EINVAL


def test_no_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Poor:
        def tsshare_solve(self, *_: object) -> int:
            return -errno.ENOMEM

    monkeypatch.setattr(solver, "library", Poor)
    with pytest.raises(MachineError, match="no memory to share links between 1 flows"):
        solve([Flow((), 0, 0)], {})
