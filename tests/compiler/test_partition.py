"""partition really separates and heal really restores, whatever else happens to the links."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.expand import bystanders
from compiler.pipeline import compile_source, elaborate
from compiler.plan.types import Event, Topology
from tdl import ast
from tdl.diagnostics import Severity, Sink
from tdl.parser import parse


@st.composite
def experiments(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    """A connected network, links that come and go, and a partition from 10 s to 20 s."""
    bridges = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    services = ["a", "b", "c", "d"][: draw(st.integers(2, 4))]
    lines = [f"service {name} replicas={draw(st.integers(1, 3))}" for name in services]
    lines += [f"bridge {name}" for name in bridges]
    pairs = [(bridges[draw(st.integers(0, i - 1))], bridges[i]) for i in range(1, len(bridges))]
    pairs += [(name, draw(st.sampled_from(bridges))) for name in services]
    more = [(a, b) for i, a in enumerate(bridges) for b in bridges[i + 1 :]]
    pairs += [pair for pair in more if pair not in pairs and draw(st.booleans())]
    lines += [f"link {a}--{b} latency=1" for a, b in pairs]
    for _ in range(draw(st.integers(0, 4))):
        a, b = draw(st.sampled_from(pairs))
        start = draw(st.integers(1, 18))
        end = draw(st.integers(start + 1, 30))
        lines.append(f"from {start}s to {end}s {a}--{b} flap {draw(st.integers(1, 9))}s")
    groups: list[list[str]] = [[] for _ in range(draw(st.integers(2, len(services))))]
    for i, name in enumerate(draw(st.permutations(services))):
        groups[i % len(groups)].append(name)
    if draw(st.booleans()):
        groups[0].append(bridges[0])
    lines.append("at 10s partition " + ";".join(" ".join(group) for group in groups))
    lines.append("at 20s heal")
    return "\n".join(lines) + "\n", groups


def graph_at(topology: Topology, down: set[str]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(node.name for node in topology.nodes)
    names = [node.name for node in topology.nodes]
    up = (link for link in topology.links if link.name not in down)
    graph.add_edges_from((names[link.src], names[link.dst]) for link in up)
    return graph


def side_of(name: str, groups: list[list[str]]) -> int:
    found = [i for i, group in enumerate(groups) if name.split(".")[0] in group]
    return found[0] if found else -1


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiment=experiments())
def test_no_path_between_groups_until_heal(experiment: tuple[str, list[list[str]]]) -> None:
    text, groups = experiment
    file, _ = parse(text)
    sink = Sink()
    model, timeline = elaborate(file, sink)
    assert not sink.failed, sink.found
    others = tuple(s for s in file.statements if not is_partition(s))
    _, plain = elaborate(ast.File(others), Sink())
    down: set[str] = set()
    moments = sorted({event.at_ns for event in timeline.events})
    for moment in moments:
        for event in timeline.events:
            if event.at_ns == moment and event.kind in ("link_down", "link_up"):
                (down.add if event.kind == "link_down" else down.remove)(event.target)
        graph = graph_at(model.topology, down)
        if 10 * 10**9 <= moment < 20 * 10**9:
            for part in nx.weakly_connected_components(graph):
                assert len({side_of(name, groups) for name in part} - {-1}) <= 1
        if moment >= 20 * 10**9:
            assert down == down_at(plain.events, moment)


def is_partition(statement: ast.Statement) -> bool:
    return isinstance(statement, ast.Dynamic) and isinstance(
        statement.action, ast.Partition | ast.Heal
    )


def down_at(events: Iterable[Event], moment: int) -> set[str]:
    down: set[str] = set()
    for event in events:
        if event.at_ns <= moment and event.kind == "link_down":
            down.add(event.target)
        elif event.at_ns <= moment and event.kind == "link_up":
            down.remove(event.target)
    return down


def targets(text: str, kind: str = "link_down") -> list[str]:
    return [event.target for event in compile_source(text).events if event.kind == kind]


STAR = """\
service a replicas=3
service b
service c
bridge hub
link a--hub
link b--hub
link c--hub
"""


def test_the_bridge_between_goes_where_fewer_links_are_cut() -> None:
    assert targets(STAR + "at 1s partition a;b") == ["b.0->hub", "hub->b.0"]
    assert targets(STAR + "at 1s partition b;a") == ["b.0->hub", "hub->b.0"]


def test_a_tie_goes_to_the_group_written_first() -> None:
    assert targets(STAR + "at 1s partition b;c") == ["c.0->hub", "hub->c.0"]
    assert targets(STAR + "at 1s partition c;b") == ["b.0->hub", "hub->b.0"]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiment=experiments())
def test_one_way_nothing_gets_from_the_first_group_to_the_second(
    experiment: tuple[str, list[list[str]]],
) -> None:
    """And the links of the other direction are as they are without it."""
    text, groups = experiment
    if len(groups) != 2:
        return
    one_way = text.replace(";".join(" ".join(g) for g in groups), "->".join(map(" ".join, groups)))
    assert one_way != text
    found: list[set[str]] = []
    for written in (text, one_way):
        sink = Sink()
        model, timeline = elaborate(parse(written)[0], sink)
        assert not sink.failed, sink.found
        down: set[str] = set()
        for event in timeline.events:
            if event.at_ns <= 10 * 10**9 and event.kind in ("link_down", "link_up"):
                (down.add if event.kind == "link_down" else down.discard)(event.target)
        found.append(down)
    both, ahead = found
    assert ahead <= both
    graph = graph_at(model.topology, ahead)
    first, second = (
        [n for n in graph if "." in n and side_of(n, groups) == side] for side in (0, 1)
    )
    assert not any(nx.has_path(graph, a, b) for a in first for b in second)


def test_three_groups_around_one_bridge() -> None:
    cut = targets(STAR + "at 1s partition b;c;a")
    assert cut == ["b.0->hub", "hub->b.0", "c.0->hub", "hub->c.0"]


def test_instances_of_one_service_can_be_apart() -> None:
    cut = targets(STAR + "at 1s partition a;a.0 b")
    assert cut == ["a.0->hub", "hub->a.0", "b.0->hub", "hub->b.0"]


def test_a_link_that_comes_up_does_not_open_the_partition() -> None:
    """It is down at the cut, and would lead from one side to the other at 3 s."""
    text = """\
bridges s1 s2 s3
link s1--s2
link s2--s3
link s1--s3
at 1s s1--s3 leave
at 2s partition s1;s3
at 3s s1--s3 join
at 4s heal
"""
    events = [(e.at_ns // 10**9, e.kind, e.target) for e in compile_source(text).events]
    assert events == [
        (1, "link_down", "s1->s3"),
        (1, "link_down", "s3->s1"),
        (2, "link_down", "s2->s3"),
        (2, "link_down", "s3->s2"),
        (4, "link_up", "s2->s3"),
        (4, "link_up", "s3->s2"),
        (4, "link_up", "s1->s3"),
        (4, "link_up", "s3->s1"),
    ]


def test_heal_undoes_several_partitions() -> None:
    text = STAR + "at 1s partition a;b\nat 2s partition a;c\nat 3s heal\n"
    down, up = targets(text), targets(text, "link_up")
    assert sorted(down) == sorted(up) == ["b.0->hub", "c.0->hub", "hub->b.0", "hub->c.0"]


def test_partition_of_absent_instances_cuts_their_links_too() -> None:
    text = STAR + "at 9s c join\nat 1s partition a b;c\n"
    compilation = compile_source(text)
    cut = [e.target for e in compilation.events if e.kind == "link_down"]
    assert cut == ["c.0->hub", "hub->c.0"]
    assert [d.code for d in compilation.diagnostics] == ["TS0911", "TS0914"]
    assert all(d.severity is Severity.WARNING for d in compilation.diagnostics)


MESH = """\
service a
service b
service c
link a--b
link a--c
link b--c
"""


def test_what_does_not_forward_is_not_in_the_way() -> None:
    """The cut went through c, as if packets from a to b could pass it."""
    assert targets(MESH + "at 1s partition a;b") == ["a.0->b.0", "b.0->a.0"]
    text = STAR + "service both\nbridge s\nlink hub--s\nlink both--hub\nlink both--s\nlink c--s\n"
    text = text.replace("link c--hub\n", "").replace("service c\n", "service c replicas=2\n")
    cut = targets(text + "at 1s partition a b;c")
    assert cut == ["hub->s", "s->hub"]


def others(text: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    (told,) = compile_source(text).timeline.cut_off.values()
    return [(one.who, one.whom) for one in told]


def test_who_else_is_cut_off_is_known() -> None:
    assert others(MESH + "at 1s partition a;b") == []
    assert others(STAR + "at 1s partition a;b") == [(("c.0",), ("b.0",))]
    assert others(STAR + "at 1s partition b;a") == [(("c.0",), ("b.0",))]
    assert others(STAR + "at 1s partition a b;c") == []


def test_who_is_behind_a_bridge_that_is_named_is_meant_with_it() -> None:
    text = STAR.replace("link b--hub", "bridges far lan\nlink hub--far\nlink far--lan\nlink b--lan")
    assert others(text + "at 1s partition hub;far") == []
    assert others(text + "at 1s partition a;far") == [(("c.0",), ("b.0",))]


def test_a_group_that_is_cut_off_one_by_one_loses_itself() -> None:
    text = STAR.replace("service b\n", "service b replicas=2\n")
    found = others(text + "at 1s partition a c;b")
    assert found == [(("b.0", "b.1"), ())]
    assert others(text + "link b--c\nat 1s partition a;b") == [(("b.0",), ("b.1",))]


def test_too_many_positions_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bystanders, "MOST_KINDS", 2)
    assert others(STAR + "at 1s partition a;b") == [((), ())]


def test_parts_that_do_not_touch_are_tried_apart() -> None:
    """Twelve bridges between three groups are too many ways together, and few one by one."""
    lines = "".join(f"link {end}--m$i\n" for end in ("a", "b", "c"))
    text = "bridges a b c m[0..11]\nfor i in 0..11 {\n" + lines + "}\n"
    compilation = compile_source(text + "at 1s partition a;b;c\nat 2s heal\n")
    assert compilation.diagnostics == ()
    assert len([e for e in compilation.events if e.kind == "link_down"]) == 2 * 24


def test_a_one_way_partition_of_what_is_apart_in_that_direction_cuts_nothing() -> None:
    text = STAR + "at 1s hub->b leave\nat 2s partition a->b\nat 3s heal\n"
    assert "TS0911" in {one.code for one in compile_source(text).diagnostics}
    text = text.replace("a->b", "b->a")
    assert "TS0911" not in {one.code for one in compile_source(text).diagnostics}
