"""`interfaces`: an end point in the plan for each link of an instance."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.analysis.effects import effects
from compiler.analysis.plan_diff import compare_plans
from compiler.pipeline import Compilation, compile_source
from compiler.plan.format import EXPECTATIONS, PlanError
from compiler.plan.parts.expectations import from_json
from compiler.plan.paths.path import path
from compiler.plan.reader import decode
from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES, refusal
from compiler.plan.rules.consistency import topology as check
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.types import Topology, interfaces, owner_of
from tdl.diagnostics import TdlError

MS = 10**6
TEXT = """\
service phone replicas=2 tags=edge interfaces
service web
bridges wifi cell core
link phone--wifi latency=5ms
link phone--cell latency=40ms
link wifi--core latency=1ms
link cell--core latency=2ms
link web--core latency=1ms
at 5s phone.0--wifi leave
at 6s phone.0 disconnect
at 7s phone.0 reconnect
at 8s phone.1 crash
"""


def _compiled(text: str = TEXT) -> Compilation:
    return compile_source(text)


def _numbers(topology: Topology) -> dict[str, int]:
    return {node.name: number for number, node in enumerate(topology.nodes)}


def test_each_further_link_has_an_end_point_of_its_own() -> None:
    topology = _compiled().topology
    assert [(node.name, node.owner, node.interface) for node in topology.nodes[:5]] == [
        ("phone.0", -1, "eth0"),
        ("phone.1", -1, "eth0"),
        ("web.0", -1, "eth0"),
        ("phone.0.eth1", 0, "eth1"),
        ("phone.1.eth1", 1, "eth1"),
    ]
    assert [node.name for node in topology.nodes[5:]] == ["wifi", "cell", "core"]
    eth1 = topology.nodes[3]
    assert (eth1.ipv4, eth1.ipv6) == ("10.77.0.4", "fd77:7473::4")
    assert (eth1.service, eth1.tags) == (0, ("edge",))
    ends = {link.name: (link.src, link.dst) for link in topology.links}
    assert ends["phone.0->wifi"] == (0, 5)
    assert ends["phone.0->cell"] == (3, 6)
    assert ends["cell->phone.1"] == (6, 4)
    assert topology.services[0].interfaces_at == ("", 1)
    assert interfaces(topology.nodes) == {0: [3], 1: [4]}


def test_a_reader_finds_the_same_and_without_the_word_nothing_of_it_is_written() -> None:
    compilation = _compiled()
    assert decode(compilation.files, lazy=False).topology == compilation.topology
    plain = _compiled(TEXT.replace(" interfaces", ""))
    assert b"owner" not in plain.files["topology.json"]
    assert b"interfaces" not in plain.files["topology.json"]


def test_each_interface_has_the_paths_of_its_link() -> None:
    plan = _compiled().plan
    number = _numbers(plan.topology)
    state = plan.state_at(0)

    def delay(src: str, dst: str) -> int:
        found = path(state, number[src], number[dst])
        assert found.totals is not None
        return found.totals.delay_ns

    assert delay("phone.0", "web.0") == delay("web.0", "phone.0") == 7 * MS
    assert delay("phone.0.eth1", "web.0") == delay("web.0", "phone.0.eth1") == 43 * MS
    assert delay("phone.0", "phone.1.eth1") == 48 * MS
    sparse = plan.sparse_at(0)
    assert sparse.topology.nodes[3] == plan.topology.nodes[3]
    assert path(sparse, number["phone.0.eth1"], number["web.0"]).totals is not None  # type: ignore[arg-type]


def test_a_link_takes_its_interface_along_and_an_instance_all_of_them() -> None:
    plan = _compiled().plan
    number = _numbers(plan.topology)
    web = number["web.0"]

    def reachable(at_s: int, name: str) -> bool:
        return path(plan.state_at(at_s * 10**9), number[name], web).reachable

    assert not reachable(5, "phone.0")
    assert reachable(5, "phone.0.eth1")
    assert not reachable(6, "phone.0.eth1")
    assert reachable(7, "phone.0.eth1")
    assert not reachable(7, "phone.0")
    states = plan.folded_at(8 * 10**9).nodes
    assert states[number["phone.1"]] == states[number["phone.1.eth1"]] == "down"


def test_selectors_mean_instances_and_links() -> None:
    """The same text without the word has the same events."""
    plain = _compiled(TEXT.replace(" interfaces", ""))
    assert _compiled().events == plain.events


def test_packets_from_an_instance_are_those_of_all_its_interfaces() -> None:
    text = TEXT + "at 1s web--core set loss=1% only=to:phone.0\n"
    assert any(event.args.get("only") for event in _compiled(text).events)


def test_interfaces_count_where_packets_are_chosen_by_their_ends() -> None:
    """An engine is given them all."""
    lines = ["service a replicas={} interfaces", "service b", "bridges s t", "link a--s"]
    lines += ["link a--t", "link b--s", "link s--t", "at 1s b--s set loss=1% only=from:a"]
    text = "\n".join(lines)
    assert _compiled(text.format(32)).events
    with pytest.raises(TdlError) as raised:
        _compiled(text.format(33))
    [found] = [one for one in raised.value.diagnostics if one.code == "TS0248"]
    assert found.span.line == 8
    assert "names 33 instances with 33 further interfaces" in found.message


def test_pairs_of_one_instance_are_nobodys() -> None:
    """Of five end points, each phone has two."""
    plan = _compiled().plan
    joins = effects(plan, plan.events[0])
    assert joins.pairs == 5 * 4 - 2 * 2
    assert joins.changed["gained"].count == joins.pairs
    other = _compiled(TEXT.replace("latency=40ms", "latency=41ms")).plan
    found = compare_plans(plan, other).network
    assert found is not None
    nodes = plan.topology.nodes
    pairs = {divmod(pair, 5) for group in found.groups for pair in group.pairs}
    assert pairs
    assert all(owner_of(nodes, src) != owner_of(nodes, dst) for src, dst in pairs)


MANY = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["s1", "s2", "s3", "a", "b"])),
    min_size=1,
    max_size=7,
    unique_by=frozenset,
).filter(lambda pairs: all(one != other for one, other in pairs))


@given(MANY, st.integers(1, 3), st.sets(st.sampled_from("abcd")))
def test_links_stay_and_every_interface_has_one(
    pairs: list[tuple[str, str]], replicas: int, asking: set[str]
) -> None:
    services = {name for pair in pairs for name in pair if len(name) == 1}
    lines = [
        f"service {name} replicas={replicas}{' interfaces' if name in asking else ''}"
        for name in sorted(services)
    ]
    lines += ["bridges s1 s2 s3", *(f"link {one}--{other}" for one, other in pairs)]
    compilation = _compiled("\n".join(lines))
    plain, planned = compilation.model.topology, compilation.topology
    check(planned)
    assert [link.name for link in planned.links] == [link.name for link in plain.links]
    for before, after in zip(plain.links, planned.links, strict=True):
        for old, new in ((before.src, after.src), (before.dst, after.dst)):
            assert planned.nodes[owner_of(planned.nodes, new)].name == plain.nodes[old].name
    for index, node in enumerate(planned.nodes):
        own = [number for number, link in enumerate(planned.links) if link.src == index]
        if node.service >= 0 and planned.services[node.service].interfaces_at[1]:
            assert len(own) == 1
        elif node.service >= 0:
            assert node.owner < 0
    for owner, further in interfaces(planned.nodes).items():
        firsts = [
            min(number for number, link in enumerate(planned.links) if link.src == node)
            for node in (owner, *further)
        ]
        assert firsts == sorted(firsts)


@pytest.mark.parametrize("datapath", ["user", "kernel"])
def test_paths_between_hosts_cannot_carry_them(datapath: str) -> None:
    found = misfit(_compiled().plan, datapath)
    assert found is not None
    assert str(found) == "an interface for each link of phone (interfaces) is not possible"
    assert (found.file, found.line) == ("", 1)
    assert misfit(_compiled(TEXT.replace(" interfaces", "")).plan, datapath) is None


@pytest.mark.parametrize("way", [KUBERNETES, COMPOSE])
def test_clusters_cannot_either(way: str) -> None:
    assert "an interface for each link of phone (interfaces)" in refusal(_compiled().plan, way)


def _broken(topology: Topology, at: int, **values: object) -> Topology:
    nodes = list(topology.nodes)
    nodes[at] = replace(nodes[at], **values)  # type: ignore[arg-type]
    return replace(topology, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("at", "values", "words"),
    [
        (3, {"owner": 1}, "node 3 must be phone.1.eth1"),
        (3, {"owner": 2, "name": "web.0.eth1"}, "not an interface of its instance's service"),
        (3, {"name": "phone.0.eth2"}, "node 3 must be phone.0.eth1"),
        (3, {"owner": 5}, "belongs to no instance"),
        (3, {"tags": ()}, "not an interface of its instance's service"),
        (3, {"owner": -1}, "phone.1.eth1 does not come among interfaces"),
        (6, {"owner": 0}, "does not come among interfaces"),
        (3, {"ipv4": ""}, "'' is not an address"),
        (3, {"ipv4": "10.77.0.1"}, "appears twice"),
    ],
)
def test_a_plan_with_other_interfaces_is_none(
    at: int, values: dict[str, object], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        check(_broken(_compiled().topology, at, **values))


def test_an_interface_is_the_end_of_one_link() -> None:
    topology = _compiled().topology
    links = [
        replace(link, src=0)
        if link.name == "phone.0->cell"
        else replace(link, dst=0)
        if link.name == "cell->phone.0"
        else link
        for link in topology.links
    ]
    with pytest.raises(PlanError, match=r"phone\.0 is an interface, and not the end of one link"):
        check(replace(topology, links=tuple(links)))


def test_expectations_of_paths_name_interfaces() -> None:
    text = TEXT + (
        "expect rtt phone.0.eth1;phone.1 web < 90ms\n"
        "expect loss web phone.0.eth0 < 1%\n"
        "expect unreachable phone.1.eth1;phone web from 6s to 6500ms\n"
        "at 10s quit\n"
    )
    found = _compiled(text).plan.expectations
    assert [one.pairs for one in found] == [((1, 2), (3, 2)), ((2, 0),), ((0, 2), (1, 2), (4, 2))]
    assert found[1].text == "expect loss web phone.0.eth0 < 1%"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("rtt phone.0.eth2 web < 9ms", "TS0350", "phone.0 has phone.0.eth0, phone.0.eth1"),
        ("rtt phone.eth1 web < 9ms", "TS0350", "phone.0 has phone.0.eth0, phone.0.eth1"),
        ("rtt web.0.eth1 phone < 9ms", "TS0350", "its service says `interfaces`"),
        ("run 'true' ok on phone.0.eth1 at 1s", "TS0350", "write phone.0"),
        ("rtt phone.0.eth1 phone.0 < 9ms", "TS0407", "no path to itself"),
        ("rtt phne.0.eth1 web < 9ms", "TS0406", "there is no service"),
    ],
)
def test_what_is_no_interface_is_an_error(line: str, code: str, said: str) -> None:
    with pytest.raises(TdlError) as caught:
        _compiled(f"{TEXT}expect {line}\nat 10s quit\n")
    (one,) = caught.value.diagnostics
    assert one.code == code
    assert said in f"{one.message} {one.hint}"


def test_a_plan_expects_nothing_of_bridges() -> None:
    files = dict(_compiled(TEXT + "expect rtt phone.0.eth1 web < 9ms\nat 10s quit\n").files)
    wrong = files[EXPECTATIONS].replace(b"[3,2]", b"[5,2]")
    assert wrong != files[EXPECTATIONS]
    with pytest.raises(PlanError, match="pairs must be an integer from 0 to 4"):
        from_json(json.loads(wrong), 3, 5, 10**10)
