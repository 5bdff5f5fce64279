"""Where nodes and labels are drawn: nothing lies on anything else, the same on each call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from math import cos, dist, hypot, pi, sin

import pytest

from compiler.pipeline import compile_source
from tests.plan.topologies import scale_free

pytest.importorskip("numpy")

from tstorm.plotting import rings, stress
from tstorm.plotting.node_placement import (
    Graph,
    NodePlacement,
    arranged,
    groups,
)
from tstorm.plotting.rings import RingLabel, Style

STYLE = Style(line=11, dot=3.5, pitch=12.5, spoke=14, step=0, link=22, margin=12)
DOTS = Style(line=7, dot=1.8, pitch=5.5, spoke=5, step=6, link=8, margin=6)


def graph(bridges: int, instances: int, links: list[tuple[int, int]], width: float = 40) -> Graph:
    """Instances come first, as in plans."""
    kinds = [False] * instances + [True] * bridges
    return Graph(kinds, links, [width] * len(kinds))


def free(size: int) -> Graph:
    text = scale_free(size, 2).encode()
    topology = compile_source(text, filename="x.tdl", seed=None).plan.topology
    return Graph(
        [node.service < 0 for node in topology.nodes],
        [(link.src, link.dst) for link in topology.links[::2]],
        [5.5 * len(node.name) for node in topology.nodes],
    )


def apart(one: RingLabel, two: RingLabel) -> bool:
    """Whether a line parts two boxes, which then is along a side of one of them."""
    for box in (one, two):
        corners = box.corners()
        for (x, y), (a, b) in pairwise(corners[:3]):
            normal = (y - b, a - x)
            spans = [
                [normal[0] * p + normal[1] * q for p, q in other.corners()] for other in (one, two)
            ]
            if max(spans[0]) <= min(spans[1]) + 1e-6 or max(spans[1]) <= min(spans[0]) + 1e-6:
                return True
    return False


def texts(layout: NodePlacement) -> list[RingLabel]:
    return [text for text in layout.texts if text is not None]


def inside(layout: NodePlacement) -> Iterator[bool]:
    spots = [*layout.places, *(corner for text in texts(layout) for corner in text.corners())]
    for x, y in spots:
        yield -0.1 <= x <= layout.width + 0.1 and -0.1 <= y <= layout.height + 0.1


def check(of: Graph, style: Style = STYLE) -> NodePlacement:
    """What holds for every network."""
    layout = arranged(of, style)
    assert all(inside(layout))
    assert all(apart(one, two) for one, two in combinations(texts(layout), 2))
    for place, other in combinations(layout.places, 2):
        assert dist(place, other) >= 1.9 * style.dot
    for node, text in product(range(len(layout.places)), texts(layout)):
        if text is not layout.texts[node] and not of.bridges[node]:
            dot = RingLabel(*layout.places[node], 0, style.dot, style.dot)
            assert apart(dot, text)
    assert arranged(of, style) == layout
    return layout


def test_fifty_nodes_of_which_no_label_lies_on_another() -> None:
    layout = check(free(50))
    assert len(texts(layout)) == 50


def test_a_large_ring_of_labels() -> None:
    layout = check(graph(1, 100, [(n, 100) for n in range(100)], 60))
    middle = layout.places[100]
    far = [dist(place, middle) for place in layout.places[:100]]
    assert max(far) - min(far) < 0.1
    assert len({round(text.angle) for text in texts(layout)}) > 50


def test_dots_without_labels_stand_on_several_rings() -> None:
    layout = check(graph(1, 100, [(n, 100) for n in range(100)], 0), DOTS)
    assert texts(layout) == []
    far = {round(dist(place, layout.places[100])) for place in layout.places[:100]}
    assert 1 < len(far) < 10


def test_few_labels_are_level() -> None:
    layout = check(graph(2, 4, [(0, 4), (1, 4), (2, 4), (3, 5), (4, 5)]))
    assert {text.angle for text in texts(layout)} == {0.0}


@pytest.mark.parametrize(
    "of",
    [
        graph(0, 1, []),
        graph(1, 0, []),
        graph(0, 2, [(0, 1)]),
        graph(0, 4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
        graph(0, 30, []),
        graph(3, 6, [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8)]),
        graph(2, 20, [(n, 20 + side) for n in range(20) for side in (0, 1)]),
        graph(12, 0, [(n, n + 1) for n in range(11)]),
    ],
    ids=["one", "one bridge", "two", "no bridge", "no link", "parts", "both", "chain"],
)
def test_odd_networks(of: Graph) -> None:
    check(of)


def test_an_instance_between_two_bridges_is_drawn_between_them() -> None:
    layout = check(graph(2, 3, [(0, 3), (0, 4), (1, 3), (2, 4)]))
    (x, y), (a, b), (c, d) = (layout.places[n] for n in (0, 3, 4))
    assert hypot(x - a, y - b) + hypot(x - c, y - d) < 1.1 * hypot(a - c, b - d)


def test_who_is_the_middle_of_a_group() -> None:
    assert groups(graph(1, 3, [(0, 3), (1, 3), (1, 2)])) == {1: [2], 3: [0]}
    assert groups(graph(0, 2, [(1, 0)])) == {0: [1]}


def test_instances_stand_where_no_link_leaves() -> None:
    assert rings.spread(1, [0.0]) == [pytest.approx(pi)]
    rays = [0.1, 0.4, 3.0]
    found = rings.spread(9, rays)
    for one, two in combinations([*found, *rays], 2):
        if not (one in rays and two in rays):
            assert dist((cos(one), sin(one)), (cos(two), sin(two))) > 0.15


def test_discs_never_overlap() -> None:
    # A wheel with a large hub: the shortest paths alone would put the rim too close together.
    radii = [60.0, *[20.0] * 40]
    links = {(0, n): 90.0 for n in range(1, 41)}
    found = stress.places(radii, links, 10)
    for one, two in combinations(range(41), 2):
        assert dist(found[one], found[two]) >= radii[one] + radii[two] + 10 - 0.01


def test_a_link_keeps_away_from_what_is_not_at_its_ends() -> None:
    links = {(0, 1): 40.0, (1, 2): 40.0, (0, 2): 40.0}
    places = stress.places([15.0, 15.0, 15.0], links, 8)
    area = abs(
        (places[1][0] - places[0][0]) * (places[2][1] - places[0][1])
        - (places[2][0] - places[0][0]) * (places[1][1] - places[0][1])
    )
    longest = max(dist(one, two) for one, two in combinations(places, 2))
    assert area / longest >= 15
