"""Sets of equal links (`routing ecmp`): which they are, against networkx; how plans have them; and
which of them a flow takes."""

from __future__ import annotations

import random
import re
import struct
from array import array
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product, starmap
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.analysis.history import History
from compiler.plan.format import HEADER, ROUTES, PlanError
from compiler.plan.numbered_draws import bits
from compiler.plan.paths.collapse import Collapse
from compiler.plan.paths.flows import PROBES, SCTP, TCP, UDP, FlowChoice, FlowTuple
from compiler.plan.paths.many_pairs import between
from compiler.plan.paths.path import Paths
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan, decode
from compiler.plan.routes.core import Core
from compiler.plan.routes.routing import Routes
from compiler.plan.routes.table import RouteReader, RouteWriter
from compiler.plan.storage.delivery import complete
from compiler.plan.types import Event, Link, Topology
from compiler.plan.writer import encode
from tests.plan.networks import (
    PLAIN,
    SECOND,
    build,
    contents,
    networks,
    random_topology,
    timeline,
)
from tests.plan.oracle import Network
from tests.plan.routes.test_routes_reference import batches
from tests.plan.test_reader import refused, signed

Case = tuple[Topology, tuple[Event, ...]]
ECMP = ("ecmp",)


def equal_links(
    core: Core, topology: Topology, now: dict[int, LinkState], root: int
) -> list[tuple[int, ...]]:
    """Of each row those on shortest paths to a node of the core."""
    towards = nx.MultiDiGraph()
    towards.add_node(root)
    for link in (link for links in core.out for link in links):
        src, dst = topology.links[link].src, topology.links[link].dst
        if now[link].up and (dst == root or dst >= core.endpoints):
            towards.add_edge(dst, src, key=link, weight=now[link].delay_ns * 10**9 + 1)
    far = nx.single_source_dijkstra_path_length(towards, root)
    found = []
    for node, links in zip(core.rows, core.out, strict=True):
        ends = [(link, topology.links[link].dst) for link in links if node != root]
        found.append(
            tuple(
                link
                for link, dst in ends
                if dst in far
                and towards.has_edge(dst, node, link)
                and far[node] == far[dst] + towards[dst][node][link]["weight"]
            )
        )
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**48))
def test_sets_are_those_of_networkx_whatever_changes(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 5), rnd.randint(0, 10), ECMP)
    routes, now = Routes(topology), dict[int, LinkState]()
    now.update((link, PLAIN._replace(up=False)) for link in range(len(topology.links)))
    core, width = routes.core, len(routes.core.columns)
    for batch in batches(rnd, topology, 6):
        now.update(batch)
        before = routes.table[:]
        delta = routes.apply(batch)
        changed = [cell for cell, value in enumerate(before) if value != routes.table[cell]]
        assert list(delta.cells) == changed
        for column, root in enumerate(core.columns):
            wanted = equal_links(core, topology, now, root)
            values = routes.table[column::width]
            assert [core.leads(row, value) for row, value in enumerate(values)] == wanted


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**48))
def test_what_is_written_is_read_and_no_group_twice(seed: int) -> None:
    """Strictly: groups in the order of their first use, each of them used."""
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 5), rnd.randint(0, 10), ECMP)
    routes, writer = Routes(topology), RouteWriter(Core(topology))
    tables = []
    for batch in batches(rnd, topology, 5):
        writer.add(routes.apply(batch))
        tables.append(routes.table[:])
    core = Core(topology)
    reader = RouteReader(writer.encode(), topology, core, len(tables))
    assert core.groups == routes.core.groups
    assert [reader.table(epoch) for epoch in range(len(tables))] == tables
    reader.verify()


def all_paths(network: Network, src: str, dst: str) -> set[tuple[str, ...]]:
    """The names of the links of every shortest path."""
    bridges = [name for name in network.nodes if "." not in name]
    view = nx.MultiDiGraph(network.graph.subgraph([*bridges, src, dst]))
    if not nx.has_path(view, src, dst):
        return set()
    found = nx.all_shortest_paths(view, src, dst, weight="weight")
    steps = (starmap(network.best, pairwise(nodes)) for nodes in found)
    return {links for each in steps for links in product(*each)}


def named(plan: Plan, links: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(plan.topology.links[link].name for link in links)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=3, bridges=8, length=12, routings=ECMP), st.integers(0, 2**16 - 1))
def test_paths_are_all_shortest_ones_and_a_flow_has_one_of_them(case: Case, port: int) -> None:
    """Of a whole plan, in each of its epochs; and everybody who follows a flow says the same."""
    plan = decode(encode(contents(*case)))
    plan.verify(deep=True)
    instances = [node.name for node in plan.topology.nodes if node.service >= 0]
    flow = FlowTuple(TCP, port, 80)
    for epoch in plan.epochs:
        state, network = plan.state_at(epoch.at_ns), Network(*case, epoch.at_ns)
        every, sparse = Paths(state, flow), Paths(plan.sparse_at(epoch.at_ns), flow)
        for a, src in enumerate(instances):
            for b, dst in enumerate(instances):
                if a == b:
                    continue
                wanted = all_paths(network, src, dst)
                count, found = every.equal(a, b, 1000)
                assert {named(plan, one.path.links) for one in found} - {()} == wanted
                assert count == len(found) == max(len(wanted), 1)
                assert every.equal(a, b, 1)[0] == count
                assert sum(one.share for one in found) == 1
                one = every.path(a, b)
                assert not wanted or named(plan, one.links) in wanted
                assert one.shared == (count > 1)
                assert sparse.path(a, b) == one
                history = History(plan, {(a, b): flow, (b, a): flow.back()})
                walk = history.walk(a, b, epoch.index)
                assert (walk.links if walk.arrives else ()) == one.links
                assert walk.shared == one.shared or not wanted


@settings(max_examples=20, deadline=None)
@given(networks(services=3, bridges=6, length=6, routings=ECMP))
def test_in_bulk_are_the_paths_of_probes(case: Case) -> None:
    plan = decode(encode(contents(*case)))
    state, everyone = plan.state_at(plan.end_ns), range(plan.core.endpoints)
    paths = Paths(state)
    wanted = [paths.path(a, b) for a in everyone for b in everyone if a != b]
    assert list(between(state, everyone, everyone)) == wanted
    rows = Collapse(plan.topology).rows(state, everyone)
    hops = [row.hops[b] for row in rows for b in everyone if b != row.source]
    assert hops == [len(one.links) for one in wanted]


@settings(max_examples=20, deadline=None)
@given(networks(services=3, bridges=6, length=6, routings=ECMP))
def test_routes_are_made_again_to_the_byte(case: Case) -> None:
    files = encode(contents(*case))
    assert complete({**files, ROUTES: b""}) == files


def star(ways: int) -> Topology:
    """a and b, with so many ways of two links between their bridges."""
    middles = [f"m{i:03}" for i in range(ways)]
    links = [("a", "in", PLAIN, PLAIN), ("b", "out", PLAIN, PLAIN)]
    links += [(end, middle, PLAIN, PLAIN) for middle in middles for end in ("in", "out")]
    return build([("a", 1), ("b", 1)], ["in", "out", *middles], links, "ecmp")


def test_a_set_has_64_links_at_most_the_first_by_name() -> None:
    plan = decode(encode(contents(star(70), timeline(star(70)))), lazy=False)
    count, found = Paths(plan.state_at(0)).equal(0, 1, 100)
    middles = [plan.topology.links[one.path.links[1]].name for one in found]
    assert count == 64
    assert middles == [f"in->m{i:03}" for i in range(64)]
    assert {one.share for one in found} == {Fraction(1, 64)}


def test_flows_are_shared_out_evenly_and_stay_when_another_link_goes() -> None:
    """Of 4,000 flows; each link has a thousand within four standard deviations."""
    topology = star(4)
    links = tuple(i for i, link in enumerate(topology.links) if link.name.startswith("in->m"))
    taken: dict[int, int] = dict.fromkeys(links, 0)
    for port in range(4000):
        choice = FlowChoice(topology, 0, 1, FlowTuple(UDP, port, 9))
        link = choice.link(links)
        taken[link] += 1
        for gone in links:
            left = tuple(one for one in links if one != gone)
            assert gone == link or choice.link(left) == link
    assert max(abs(count - 1000) for count in taken.values()) < 4 * (4000 * 3 / 16) ** 0.5


def test_links_of_one_bridge_behind_another_are_chosen_apart() -> None:
    """Else flows that went left once would all go left again."""
    topology = star(4)
    links = [i for i, link in enumerate(topology.links) if link.name.startswith("in->m")]
    first, second = (links[0], links[1]), (links[2], links[3])
    both = [0, 0]
    for port in range(2000):
        choice = FlowChoice(topology, 0, 1, FlowTuple(TCP, port, 9))
        if choice.link(first) == first[0]:
            both[choice.link(second) == second[0]] += 1
    assert abs(both[0] - both[1]) < 4 * sum(both) ** 0.5


def test_the_number_of_a_flow_by_hand() -> None:
    """docs/plan.md, Equal paths: five draws, each with the number before as its key."""
    a, b = star(2).nodes[:2]
    assert (a.ipv4, b.ipv6) == ("10.77.0.1", "fd77:7473::2")
    key = bits(bits(bits(bits(0, 0x0A4D0001 << 32), 0), 0x0A4D0002 << 32), 0)
    tcp = bits(key, 4 << 60 | 6 << 52 | 5001 << 16 | 80)
    assert FlowTuple(TCP, 5001, 80).number(a, b) == tcp
    assert FlowTuple(TCP, 80, 5001).back().number(a, b) == tcp
    assert PROBES.number(a, b) == bits(key, 4 << 60 | 253 << 52)
    high = 0xFD777473 << 32
    key = bits(bits(bits(bits(0, high), 1), high), 2)
    six = FlowTuple(UDP, 1, 2, label=0xABCDE, version=6)
    assert six.number(a, b) == bits(key, 6 << 60 | 17 << 52 | 0xABCDE << 32 | 1 << 16 | 2)
    assert FlowTuple(TCP, version=6).number(a, star(2).nodes[2]) is None
    assert FlowTuple(TCP, version=6).number(a, b, "ipv4") is None
    assert FlowTuple(TCP).number(a, b, "ipv6") == FlowTuple(TCP, version=6).number(a, b)


ROOT = Path(__file__).resolve().parents[3]
FORTY = range(40)
KNOWN = {
    "udp": [FlowTuple(UDP, 1000 + i, 2000) for i in FORTY],
    "tcp": [FlowTuple(TCP, 1000 + i, 2000) for i in FORTY],
    "sctp": [FlowTuple(SCTP, 1000 + i, 2000) for i in FORTY],
    "udp6": [FlowTuple(UDP, 1000 + i, 2000, version=6) for i in FORTY],
    "label": [FlowTuple(UDP, 1000, 2000, label=0xFFFD8 + i, version=6) for i in FORTY],
    "protocol": [FlowTuple(200 + i) for i in FORTY],
    "fragment": [FlowTuple(UDP) for _ in FORTY],
}


def test_the_engine_takes_the_same_links() -> None:
    """Its own test sends these packets, and has the links that it must see them on."""
    text = (ROOT / "tcal_c/pktd/core/tests/test_spread.c").read_text(encoding="utf-8")
    there = dict(re.findall(r'{"(\w+)", "([123]{40})"}', text))
    links = tuple(Link(f"{i}", 0, 1, 10 + i, (), PLAIN) for i in range(4))
    topology = replace(star(2), links=links)
    for name, flows in KNOWN.items():
        taken = (FlowChoice(topology, 0, 1, flow).link((1, 2, 3)) for flow in flows)
        assert "".join(map(str, taken)) == there.pop(name)
    assert not there


# --- what a reader refuses ------------------------------------------------------------------------


def with_groups(numbers: list[int], *, cell: int | None = None) -> dict[str, bytes]:
    """A plan with these groups instead of its own: row 0 (`in`) has three links, and row 1."""
    files = encode(contents(star(3), timeline(star(3), (SECOND, "link_down", "in->m000"))))
    data = files[ROUTES]
    rows, columns, epochs, count = struct.unpack_from("<4I", data, 8)
    start = 24 + 24 * epochs
    block = array("H", numbers).tobytes()
    moved = len(block) - 2 * count
    head = struct.pack("<8s4I", b"TSROUTES", rows, columns, epochs, len(numbers))
    index = b""
    for epoch in range(epochs):
        changes, table, cells, base = struct.unpack_from("<QQII", data, 24 + 24 * epoch)
        places = (changes and changes + moved, table + moved)
        index += struct.pack("<QQII", *places, cells, base)
    files[ROUTES] = head + index + block + data[start + 2 * count :]
    return signed(files)


OWN = [0, 3, 1, 2, 3, 1, 3, 1, 2, 3, 0, 2, 2, 3]


def test_its_own_groups_are_accepted() -> None:
    files = encode(contents(star(3), timeline(star(3), (SECOND, "link_down", "in->m000"))))
    assert with_groups(OWN)[ROUTES] == files[ROUTES]
    decode(with_groups(OWN), lazy=False).verify(deep=True)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([*OWN[:-1], 4], "group 2: must be some of the 3 links of row 0, in order"),
        ([*OWN[:-2], 3, 2], "group 2: must be some of the 3 links of row 0, in order"),
        ([*OWN[:-2], 0, 2], "group 2: must be some of the 3 links of row 0, in order"),
        ([*OWN[:-4], 0, 1, 2], "group 2: not 2 to 64 links of a row"),
        ([*OWN[:-4], 9, 2, 1, 2], "group 2: not 2 to 64 links of a row"),
        (OWN[:-1], "group 2: not 2 to 64 links of a row"),
        ([*OWN, 0], "group 3: not 2 to 64 links of a row"),
        ([*OWN[:-4], *OWN[:5]], "group 2: stands there twice"),
        (OWN[:5], "row 1 names link 4 of 3"),
    ],
)
def test_groups_that_cannot_be(numbers: list[int], message: str) -> None:
    assert message in str(refused(with_groups(numbers)))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([*OWN[10:], *OWN[:10]], "routes over link"),
        ([*OWN, 1, 2, 1, 2], "a group is used nowhere"),
    ],
)
def test_groups_out_of_order_are_found_by_replaying(numbers: list[int], message: str) -> None:
    plan = decode(with_groups(numbers), lazy=False)
    with pytest.raises(PlanError) as error:
        plan.verify(deep=True)
        Paths(plan.state_at(SECOND)).path(0, 1)
    assert message in str(error.value)


def test_a_group_before_its_time_is_found() -> None:
    """The first epoch has the row's second group."""
    topology = star(3)
    routes, writer = Routes(topology), RouteWriter(Core(topology))
    delta = routes.apply(enumerate(link.state for link in topology.links))
    groups = ((0, (1, 2)), *delta.groups)
    cells = zip(delta.cells, delta.values, strict=True)
    values = array("H", (value + (value > 3 and cell < 2) for cell, value in cells))
    writer.add(type(delta)(delta.cells, values, groups))
    reader = RouteReader(writer.encode(), topology, Core(topology), 1)
    with pytest.raises(PlanError, match="has group 2 of row 0 before 1"):
        reader.verify()


def test_other_routings_have_no_groups() -> None:
    files = with_groups(OWN)
    files = {**files, HEADER: files[HEADER].replace(b'"ecmp"', b'"hops"')}
    files["topology.json"] = files["topology.json"].replace(b'"ecmp"', b'"hops"')
    assert "has groups, with routing hops" in str(refused(signed(files)))
