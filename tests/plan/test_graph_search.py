"""compiler.plan.graph_search against networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from compiler.plan.graph_search import components, easiest_way

NODES = range(8)
Edges = dict[tuple[int, int], int]  # and how hard each is
EDGES = st.dictionaries(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), st.integers(0, 3)
)


def graph_of(edges: Edges) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(NODES)
    graph.add_weighted_edges_from((*edge, weight) for edge, weight in edges.items())
    return graph


@given(EDGES)
def test_components_are_those_of_networkx_and_edges_lead_to_earlier_ones(edges: Edges) -> None:
    graph = graph_of(edges)
    found = list(components(NODES, graph.successors))
    assert {frozenset(one) for one in found} == {
        frozenset(one) for one in nx.strongly_connected_components(graph)
    }
    place = {node: number for number, one in enumerate(found) for node in one}
    assert all(place[far] <= place[node] for node, far in edges)


@given(EDGES)
def test_a_way_is_a_way_and_none_is_easier(edges: Edges) -> None:
    graph, numbers = graph_of(edges), list(edges)
    way = easiest_way(
        0,
        7,
        (0,),
        lambda node, so_far, _edge: [
            ((so_far[0] + edges[edge],), edge[1], number)
            for number, edge in enumerate(numbers)
            if edge[0] == node
        ],
    )
    if way is None:
        assert not nx.has_path(graph, 0, 7)
        return
    nodes = [0, *(node for _, node in way)]
    assert nodes[-1] == 7
    assert [numbers[edge] for edge, _ in way] == list(pairwise(nodes))
    assert sum(edges[numbers[edge]] for edge, _ in way) == nx.dijkstra_path_length(graph, 0, 7)
