"""`tstorm plot --topology` as DOT, Mermaid and GraphML, read by readers of these formats."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import pydot
import pytest

from compiler.pipeline import compile_source
from tests.cli.support import status, tstorm

SOURCE = """\
service a replicas=2 tags=x
service b
bridges s1 s2
link a--s1 latency=1ms up=10Mb down=20Mb
link s1--b name=fast latency=2ms rate=1Gb loss=1%
link s1--b name=slow latency=5ms
link s1--s2 latency=1us
at 1s fast leave
at 2s a.1 disconnect
at 3s quit
"""


@pytest.fixture
def plain(tmp_path: Path) -> str:
    path = tmp_path / "net.tdl"
    path.write_text(SOURCE)
    return str(path)


def plotted(plain: str, name: str, at: str = "0s") -> str:
    target = Path(plain).parent / name
    done = tstorm("plot", plain, "--topology", "--at", at, "-o", str(target))
    assert status(done) == 0, done.output + repr(done.exception)
    return target.read_text()


def test_graphml_is_read_by_networkx_with_every_property(plain: str) -> None:
    graph = nx.parse_graphml(plotted(plain, "n.graphml", "2500ms"))
    assert graph.is_multigraph() and graph.is_directed()
    assert sorted(graph) == ["a.0", "a.1", "b.0", "s1", "s2"]
    assert graph.nodes["a.1"]["state"] == "cut"
    assert graph.nodes["a.1"]["service"] == "a"
    assert graph.nodes["s1"]["kind"] == "bridge"
    rates = [one["rate_bps"] for one in graph.get_edge_data("a.0", "s1").values()]
    assert rates == [10**7]
    between = {one["name"]: one for one in graph.get_edge_data("s1", "b.0").values()}
    assert {name: one["up"] for name, one in between.items()} == {"fast": False, "slow": True}
    assert between["fast"]["loss_ppb"] == 10**7
    assert between["slow"]["delay_ns"] == 5 * 10**6


def test_graphml_is_read_back_by_import(plain: str) -> None:
    plotted(plain, "n.graphml")
    done = tstorm("import", str(Path(plain).parent / "n.graphml"))
    assert status(done) == 0, done.output
    assert "link a_0->s1 latency=1ms up=10Mb" in done.stdout
    there, here = (
        compile_source(one, filename="n.tdl", seed=None).plan.topology
        for one in (SOURCE.encode(), done.stdout.encode())
    )
    assert [one.state for one in here.links] == [one.state for one in there.links]


def test_import_says_which_links_were_down(plain: str) -> None:
    plotted(plain, "n.graphml", "1500ms")
    done = tstorm("import", str(Path(plain).parent / "n.graphml"))
    assert "edges that are down: 2" in done.stderr


# Of what pydot calls in its own parser.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dot_is_read_by_pydot(plain: str) -> None:
    graphs = pydot.graph_from_dot_data(plotted(plain, "n.dot", "1500ms"))
    assert graphs is not None and len(graphs) == 1
    (graph,) = graphs
    nodes = [one for one in graph.get_nodes() if one.get_name() not in ("node", "edge")]
    labels = {str(one.get_name()): str(one.get("label")).strip('"') for one in nodes}
    assert sorted(labels.values()) == ["a.0", "a.1", "b.0", "s1", "s2"]
    lines = [
        (
            labels[str(one.get_source())],
            labels[str(one.get_destination())],
            str(one.get("label")).strip('"'),
        )
        for one in graph.get_edges()
    ]
    assert ("a.0", "s1", "1ms 10Mb") in lines
    assert ("s1", "a.0", "1ms 20Mb") in lines
    assert ("s1", "b.0", "fast 2ms 1Gb 1% loss down") in lines
    assert len(lines) == 4 + 2 + 1  # unlike directions are two


def test_mermaid_has_its_grammar(plain: str) -> None:
    lines = plotted(plain, "n.mmd", "2500ms").splitlines()
    assert lines[:4] == ["---", 'title: "net at 2.5s"', "---", "flowchart LR"]
    node = re.compile(r'  n\d+(\["[^"]*"\]|\(\["[^"]*"\]\))')
    link = re.compile(r'  n\d+ (---|-->|-\.-|-\.->)\|"[^"|]*"\| n\d+')
    for line in lines[4:]:
        assert node.fullmatch(line) or link.fullmatch(line), line
    assert any("a.1 #40;cut#41;" in line for line in lines)
    assert any("-.-" in line and "fast" in line for line in lines)


def test_lines_of_an_instance_with_several_interfaces_name_them(tmp_path: Path) -> None:
    path = tmp_path / "phone.tdl"
    path.write_text(
        "service phone interfaces\nbridges s t\n"
        "link phone--s\nlink phone--t latency=1ms\nlink s--t\n"
    )
    found = plotted(str(path), "n.mmd")
    assert re.findall(r'\|"(.*)"\|', found) == ["eth0 0s", "eth1 1ms", "0s"]
    assert found.count("phone.0") == 1


def test_bytes_repeat_and_other_pictures_refuse_these_suffixes(plain: str) -> None:
    for suffix in ("dot", "mmd", "graphml"):
        assert plotted(plain, f"1.{suffix}") == plotted(plain, f"2.{suffix}")
    done = tstorm("plot", plain, "--pair", "a.0", "b.0", "-o", "x.dot")
    assert status(done) == 2
    assert "only the network (--topology) can be a .dot" in done.output
