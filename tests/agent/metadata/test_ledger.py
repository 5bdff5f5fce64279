"""What is remembered of what others told."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.metadata.codec import value_of
from runtime.agent.metadata.ledger import AGE_NS, AGE_STEP_NS, LOOK_NS, Ledger
from runtime.agent.vocabulary import RemoteFlow

PLACEMENT = (0, 1, 2, 1)  # four instances
COUNT = len(PLACEMENT)


def path(src: int, dst: int) -> int:
    return src * COUNT + dst


def ledger() -> Ledger:
    return Ledger(3, COUNT, PLACEMENT)


def rates(flows: list[RemoteFlow]) -> dict[tuple[int, int], int]:
    return {(flow.src, flow.dst): flow.demand_bps for flow in flows}


def test_flows_come_out_as_they_were_told() -> None:
    told = ledger()
    values = [value_of(100, False), value_of(7, True)]
    assert told.take(1, 1, True, 5, [path(1, 0), path(3, 2)], values)
    assert told.take(2, 9, True, 6, [path(2, 0)], [value_of(50, False)])
    flows = told.flows(10)
    assert flows == [
        RemoteFlow(1, 0, 100, False, 1, 0),
        RemoteFlow(3, 2, 0, True, 1, 0, 700_000),
        RemoteFlow(2, 0, 50, False, 2, 0),
    ]
    told.take(1, 2, True, 20, [path(1, 0), path(3, 2)], [value_of(100, False), value_of(8, True)])
    again = told.flows(30)
    assert again[0] is flows[0], "nothing about it is new"
    assert again[1] == RemoteFlow(3, 2, 0, True, 1, 0, 800_000)


def test_ages_grow_in_steps_and_end_with_the_next_word() -> None:
    told = ledger()
    told.take(1, 1, True, 0, [path(1, 0)], [value_of(100, False)])
    for now_ns in range(0, AGE_NS, LOOK_NS):
        [flow] = told.flows(now_ns)
        assert flow.age_ns == now_ns // AGE_STEP_NS * AGE_STEP_NS
    told.take(1, 2, True, AGE_NS, [path(1, 0)], [value_of(100, False)])
    [flow] = told.flows(AGE_NS + LOOK_NS)
    assert flow.age_ns == 0


def test_rate_0_ends_a_flow_unless_it_is_greedy() -> None:
    told = ledger()
    told.take(1, 1, True, 0, [path(1, 0), path(3, 2)], [value_of(9, False)] * 2)
    told.take(1, 2, True, 0, [path(1, 0), path(3, 2)], [value_of(0, False), value_of(0, True)])
    assert list(told.flows(0)) == [RemoteFlow(3, 2, 0, True, 1, 0)]


@given(st.permutations(range(1, 6)))
def test_the_newest_wins_in_whatever_order_they_come(order: list[int]) -> None:
    """Message n says rate n of one flow, and of the other that it has ended at 4."""
    told = ledger()
    highest = 0
    for number in order:
        values = [value_of(number, False), value_of(number % 4, False)]
        told.take(1, number, number > highest, 0, [path(1, 0), path(1, 2)], values)
        highest = max(highest, number)
    assert rates(told.flows(0)) == {(1, 0): 5, (1, 2): 1}


def test_an_end_is_not_undone_by_what_came_before_it() -> None:
    told = ledger()
    told.take(1, 7, True, 0, [path(1, 0)], [value_of(0, False)])
    told.take(1, 6, False, 1, [path(1, 0)], [value_of(5, False)])
    assert len(told.flows(1)) == 0


def test_flows_are_forgotten_when_nobody_tells_of_them() -> None:
    told = ledger()
    told.take(1, 1, True, 0, [path(1, 0), path(1, 2)], [value_of(5, False)] * 2)
    told.take(1, 2, True, LOOK_NS, [path(1, 2)], [value_of(6, False)])
    assert rates(told.flows(AGE_NS)) == {(1, 0): 5, (1, 2): 6}
    assert rates(told.flows(AGE_NS + LOOK_NS)) == {(1, 2): 6}
    assert told.aged == 1
    assert rates(told.flows(AGE_NS + 2 * LOOK_NS)) == {}
    assert told.aged == 2


def test_ends_are_forgotten_too_and_not_counted() -> None:
    told = ledger()
    told.take(1, 1, True, 0, [path(1, 0)], [value_of(0, False)])
    told.flows(AGE_NS + 1)
    assert told.aged == 0
    told.take(1, 1, True, AGE_NS + 2, [path(1, 0)], [value_of(5, False)])
    assert rates(told.flows(AGE_NS + 2)) == {(1, 0): 5}, (
        "nothing is left of it, not even its number"
    )


def test_a_host_that_starts_again_takes_nothing_else_with_it() -> None:
    told = ledger()
    told.take(1, 1, True, 0, [path(1, 0)], [value_of(5, False)])
    told.take(2, 1, True, 0, [path(2, 0)], [value_of(6, False)])
    told.forget(1)
    assert rates(told.flows(0)) == {(2, 0): 6}


def test_only_a_flow_of_the_sender_is_entered() -> None:
    for src, dst in itertools.product(range(COUNT), repeat=2):
        told = ledger()
        own = PLACEMENT[src] == 1 and src != dst
        assert told.take(1, 1, True, 0, [path(src, dst)], [value_of(5, False)]) == own
        assert len(told.flows(0)) == own
    assert not ledger().take(1, 1, True, 0, [path(1, 0), COUNT * COUNT], [2, 2])
    assert not ledger().take(1, 1, True, 0, [2**62], [2])


def test_a_message_with_a_foreign_flow_is_not_entered_at_all() -> None:
    told = ledger()
    assert not told.take(1, 1, True, 0, [path(1, 0), path(2, 0)], [value_of(5, False)] * 2)
    assert len(told.flows(0)) == 0
