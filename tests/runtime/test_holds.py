"""Which link changes wait for the end of a leaving instance's program."""

from __future__ import annotations

from compiler.plan.reader import Plan, read_plan
from compiler.plan.routes.behind import RouteGroup
from runtime.backend.onehost.link_holds import LinkHolds
from tests.runtime.support import Compile

TEXT = """
service server img=x replicas=2
service client img=x
bridge s1
link server--s1 latency=1
link client--s1 latency=1
link server--client latency=1
at 1s server.0 leave
at 2s server.0 join
at 3s server.1--s1 leave
at 3s server.1 crash
at 9s quit
"""


def states(plan: Plan) -> LinkHolds:
    return LinkHolds(plan.topology, plan.state_at(0).links)


def names(plan: Plan, links: set[int]) -> set[str]:
    return {plan.topology.links[index].name for index in links}


def test_a_leave_is_held_and_a_rejoin_gives_the_links_their_states(plan_of: Compile) -> None:
    plan = read_plan(plan_of(TEXT))
    holds = states(plan)
    now, held = holds.take(plan.epochs[1], {0}, set(), {"server.0"})
    assert now == []
    assert names(plan, held[0]) == {
        *("server.0->s1", "s1->server.0", "server.0->client.0", "client.0->server.0")
    }
    changes, later = holds.take(plan.epochs[2], set(), set(), {"server.0"})
    assert later == {}
    assert {index for index, state in changes if state.up} == held[0]
    assert holds.back([0], changes) == []
    assert holds.back([0], []) == []  # forgotten by now


def test_a_rejoin_cuts_what_is_down_for_its_own_reason(plan_of: Compile) -> None:
    plan = read_plan(plan_of(TEXT))
    holds = states(plan)
    _, held = holds.take(plan.epochs[1], {0}, set(), {"server.0"})
    restored = holds.back([0], [])
    assert {index for index, _ in restored} == held[0]
    assert not any(state.up for _, state in restored)


def test_a_crash_and_a_link_of_its_own_are_not_held(plan_of: Compile) -> None:
    plan = read_plan(plan_of(TEXT))
    first = plan.epochs[1]
    assert states(plan).take(first, set(), {0}, {"server.0"}) == (list(first.links), {})
    now, held = states(plan).take(first, {0}, {2}, {"server.0->s1"})
    assert names(plan, {index for index, _ in now}) == {
        *("server.0->s1", "server.0->client.0", "client.0->server.0")
    }
    assert names(plan, held[0]) == {"s1->server.0"}


def test_routes_of_who_leaves_end_when_it_is_cut_or_back(plan_of: Compile) -> None:
    """server.0 (node 0) and client.0 (2) have a link, and s1 between them."""
    plan = read_plan(plan_of(TEXT))
    ended = [
        RouteGroup(0, (), ((2, 2),)),
        RouteGroup(2, (), ((0, 1),)),
        RouteGroup(3, (), ((0, 0),)),
    ]
    other = RouteGroup(2, (5,), ((1, 1),))
    holds = states(plan)
    assert holds.routes([*ended, other], {0}) == [RouteGroup(2, (), ((1, 1),)), other]
    kept = [ended[0], RouteGroup(2, (), ((0, 0),)), ended[2]]
    assert holds.ended_routes([1]) == []
    assert holds.ended_routes([0, 2]) == kept
    assert holds.ended_routes([0]) == []
    assert holds.routes([*ended, other], ()) == [*ended, other]
