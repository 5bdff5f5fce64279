"""Which links a partition cuts: against networkx and against trying everything."""

from __future__ import annotations

from itertools import product

import networkx as nx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compiler.expand import cut

Edge = tuple[int, int]


@st.composite
def problems(
    draw: st.DrawFn, least: int, most: int
) -> tuple[int, list[Edge], list[int], list[list[int]]]:
    nodes = draw(st.integers(most, 9))
    every = [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]
    edges = draw(st.lists(st.sampled_from(every), unique=True, max_size=16))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(edges), max_size=len(edges)))
    order = draw(st.permutations(range(nodes)))
    groups = draw(st.integers(least, most))
    extra = draw(st.integers(0, min(2, nodes - groups)))
    members = [[order[i]] for i in range(groups)]
    for i in range(extra):
        members[i % groups].append(order[groups + i])
    return nodes, edges, weights, members


def cost(edges: list[Edge], weights: list[int], side: list[int]) -> int:
    pairs = zip(edges, weights, strict=True)
    return sum(weight for (a, b), weight in pairs if side[a] != side[b])


def cheapest(
    nodes: int, edges: list[Edge], weights: list[int], groups: list[list[int]]
) -> tuple[int, int]:
    """The least weight, and the least number of nodes outside the first group at that weight."""
    fixed = {node: i for i, group in enumerate(groups) for node in group}
    choices = [[fixed[n]] if n in fixed else range(len(groups)) for n in range(nodes)]
    found: tuple[int, int] | None = None
    for side in product(*choices):
        here = (cost(edges, weights, list(side)), sum(at > 0 for at in side))
        found = here if found is None else min(found, here)
    assert found is not None
    return found


@given(problem=problems(2, 2))
def test_two_groups_are_cut_as_networkx_cuts_them(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    nodes, edges, weights, groups = problem
    side, _ = cut.assign(nodes, edges, weights, groups)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    for (a, b), weight in zip(edges, weights, strict=True):
        graph.add_edge(a, b, capacity=weight)
    for end, group in zip(("source", "sink"), groups, strict=True):
        for node in group:
            graph.add_edge(end, node)  # without a capacity: unlimited
    assert cost(edges, weights, side) == nx.minimum_cut_value(graph, "source", "sink")


@given(problem=problems(2, 2))
def test_ties_go_to_the_first_group(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    """Of all cheapest ways, the one with the fewest elements on the second side."""
    nodes, edges, weights, groups = problem
    side, _ = cut.assign(nodes, edges, weights, groups)
    found = (cost(edges, weights, side), sum(at > 0 for at in side))
    assert found == cheapest(nodes, edges, weights, groups)


@settings(deadline=None)
@given(problem=problems(3, 4))
def test_more_groups_are_cut_at_least_cost(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    nodes, edges, weights, groups = problem
    side, exact = cut.assign(nodes, edges, weights, groups)
    least, _ = cheapest(nodes, edges, weights, groups)
    assert exact
    assert cost(edges, weights, side) == least


@settings(deadline=None)
@given(problem=problems(3, 4))
def test_improvement_by_single_moves_stays_within_twice(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    """The way of large networks, forced on small ones."""
    nodes, edges, weights, groups = problem
    trials, cut.TRIALS = cut.TRIALS, 0
    try:
        side, exact = cut.assign(nodes, edges, weights, groups)
    finally:
        cut.TRIALS = trials
    least, _ = cheapest(nodes, edges, weights, groups)
    assert least <= cost(edges, weights, side) <= (1 if exact else 2) * least


@given(problem=problems(2, 4))
def test_groups_keep_their_members_and_everything_is_apart(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    nodes, edges, weights, groups = problem
    side, _ = cut.assign(nodes, edges, weights, groups)
    for number, group in enumerate(groups):
        assert {side[node] for node in group} == {number}
    kept = nx.Graph([(a, b) for a, b in edges if side[a] == side[b]])
    for part in nx.connected_components(kept):
        assert len({side[node] for node in part}) == 1


@given(problem=problems(2, 4))
def test_what_no_group_can_reach_is_on_no_side(
    problem: tuple[int, list[Edge], list[int], list[list[int]]],
) -> None:
    nodes, edges, weights, groups = problem
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(nodes))
    members = {node for group in groups for node in group}
    lonely = [n for n in range(nodes) if not members & nx.node_connected_component(graph, n)]
    assume(lonely)
    side, _ = cut.assign(nodes, edges, weights, groups)
    assert {side[node] for node in lonely} == {-1}
