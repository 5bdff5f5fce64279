"""Topologies of other tools: what they become, what is said of the rest, and hostile files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.paths.path import path
from compiler.sources import SourceFolder
from tdl.diagnostics import Sink
from tdl.formats import as_tdl
from tdl.formats.readers import translate
from tdl.formats.topologies.graphs import distance_m
from tdl.parser import parse_partial
from tests.formats.goldens import TDL, TOLD, TOPOLOGIES
from tstorm.topologies.load_topology import load_topology

FOREIGN = {
    case: (TOPOLOGIES.folder / case / TOPOLOGIES.file_of(case)).read_bytes()
    for case in TOPOLOGIES.cases
}
END = "at 10m quit\n"


@pytest.mark.parametrize("case", TOPOLOGIES.cases)
def test_it_becomes_what_is_recorded(case: str) -> None:
    recorded = {
        name: (TOPOLOGIES.folder / case / name).read_text(encoding="utf-8") for name in (TDL, TOLD)
    }
    assert TOPOLOGIES.documents(case) == recorded


@pytest.mark.parametrize(
    "case", [one for one in TOPOLOGIES.cases if one != "shadow"]
)  # it ends by itself
def test_the_text_that_is_printed_compiles_to_the_same_network_and_events(case: str) -> None:
    sources = SourceFolder(TOPOLOGIES.folder / case, load_topology)
    own = compile_source(TOPOLOGIES.statement(case) + END, sources=sources)
    printed = compile_source((TOPOLOGIES.folder / case / TDL).read_text() + END, sources=sources)
    assert own.topology.nodes == printed.topology.nodes
    assert own.topology.links == printed.topology.links
    assert [(e.at_ns, e.kind, e.target) for e in own.events] == [
        (e.at_ns, e.kind, e.target) for e in printed.events
    ]


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        (("0", "0"), ("0", "180"), 20_015_087),  # half of the circumference
        (("90", "0"), ("0", "77"), 10_007_543),
        (("51.47", "-0.4543"), ("40.6413", "-73.7781"), 5_540_000),  # London to New York
        (("1", "1"), ("1", "1"), 0),
    ],
)
def test_distances_are_those_of_great_circles(
    a: tuple[str, str], b: tuple[str, str], metres: int
) -> None:
    from decimal import Decimal

    first, second = ((Decimal(x), Decimal(y)) for x, y in (a, b))
    found = distance_m(first, second)
    assert abs(found - metres) <= max(1, metres // 500)
    assert found == distance_m(second, first)


PAIR = '{"Routerid": 1, "Clientcount": 1, "Client_IP1": "10.0.0.1", "Server_IP": "10.0.0.9"}'
OTHER = PAIR.replace('d": 1', 'd": 2').replace("0.1", "0.2").replace("0.9", "0.8")
LINKS = f"""{{"Linksimulation": {{
 "Routerpairs": [
{PAIR}],
 "Linkproperties": [{{"Routerid": 1, "properties": [{{
   "throughput_1_forward": "40Mbps"
 }}]}}]}}}}"""


@pytest.mark.parametrize(
    ("name", "text", "code", "line", "col"),
    [
        ("a.xml", "<experiment>\n<services>\n</experiment>", "TS0508", 3, 3),
        ("a.xml", "<topology/>", "TS0501", 1, 1),
        ("a.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<experiment/>", "TS0506", 1, 13),
        ("a.xml", "<experiment>\n  <nodes/>\n</experiment>", "TS0501", 2, 3),
        (
            "a.xml",
            "<experiment><services>\n<service name='a' image='x'/>\n<service name='a'/>"
            "</services></experiment>",
            "TS0501",
            3,
            10,
        ),
        (
            "a.xml",
            "<experiment><bridges><bridge name='a'/><bridge name='b'/></bridges><links>\n"
            "<link origin='a' dest='b' latency='5 loss=1'/></links></experiment>",
            "TS0501",
            2,
            27,
        ),
        (
            "a.xml",
            "<experiment><bridges><bridge name='a'/><bridge name='b'/></bridges><links>\n"
            "<link origin='a' dest='b' upload='5MB'/></links></experiment>",
            "TS0501",
            2,
            27,
        ),
        (
            "a.xml",
            "<experiment><bridges><bridge name='a'/></bridges><dynamic>\n"
            "<schedule name='a' time='1' action='crash'/></dynamic></experiment>",
            "TS0501",
            2,
            29,
        ),
        ("a.yaml", "experiment:\n  servers:\n    name: a\n", "TS0501", 2, 3),
        ("a.yaml", "experiment:\n  links:\n    orig: a\n    dest: b\n", "TS0501", 3, 5),
        ("a.yaml", "topology:\n  nodes:\n    a: {kind: linux}\n  links:\n"
                   "    - endpoints: ['a:eth1', 'b:eth1']\n", "TS0501", 5, 29),
        ("a.yaml", "topology:\n  nodes:\n    a: {kind: linux}\n  links:\n"
                   "    - endpoints: ['a:eth1', 'host:eth1']\n", "TS0502", 5, 29),
        ("a.yaml", "topology:\n  nodes:\n    a: {kind: linux, cpu: '1 2'}\n", "TS0501", 3, 27),
        ("a.yaml", "hosts: {}\nnetwork: {graph: {type: graphml}}\n", "TS0501", 2, 25),
        ("a.yaml", "hosts:\n  a:\n    network_node_id: 7\n"
                   "network: {graph: {type: 1_gbit_switch}}\n", "TS0501", 3, 22),
        ("a.yaml", 'hosts: {}\nnetwork:\n  graph:\n    type: gml\n'
                   '    inline: "graph [ node [ id 0 ]\\nedge [ source 0 target 1 ] ]"\n',
         "TS0501", 5, 13),
        ("a.yaml", "hosts: {}\nnetwork:\n  graph:\n    type: gml\n    inline: |\n"
                   "      graph [ node [ id 0 ]\n      edge [ source 0 target 1 ] ]\n",
         "TS0501", 7, 1),
        ("a.gml", "graph [\n  node [ id 0 ]\n  edge [ source 0 target 1 ]\n]", "TS0501", 3, 3),
        ("a.gml", "graph [\n  node [ id 0 ]\n", "TS0508", 1, 1),
        ("a.gml", "graph [ node [ id 0 ] node [ id 1 ]\n"
                  "edge [ source 0 target 1 delay slow ] ]", "TS0501", 2, 32),
        ("a.graphml", "<graphml/>", "TS0501", 1, 1),
        ("a.json", LINKS.replace(', "Server_IP"', ', "Server"'), "TS0501", 3, 1),
        ("a.json", LINKS.replace('count": 1', 'count": 2'), "TS0501", 3, 32),
        ("a.json", LINKS.replace("Client_IP1", "Client_IP2").replace("1_f", "2_f"),
         "TS0501", 3, 49),
        ("a.json", LINKS.replace("10.0.0.9", "10.0.0.1"), "TS0501", 3, 74),
        ("a.json", LINKS.replace("10.0.0.9", "10.0.0.300"), "TS0501", 3, 74),
        ("a.json", LINKS.replace("}],", f"}}, {OTHER}],"), "TS0502", 3, 160),
        ("a.json", LINKS.replace("}],", f"}}, {PAIR}],"), "TS0501", 3, 100),
        ("a.json", LINKS.replace('[{"Routerid": 1, "p', '[{"Routerid": 7, "p'), "TS0501", 4, 34),
        ("a.json", LINKS.replace("40Mbps", "40"), "TS0501", 5, 28),
        ("a.json", LINKS.replace("40Mbps", "40MB"), "TS0501", 5, 28),
        ("a.json", LINKS.replace("_1_f", "_2_f"), "TS0501", 5, 4),
        ("a.json", LINKS.replace("throughput_1", "troughput_1"), "TS0501", 5, 4),
        ("a.json", LINKS.replace('40Mbps"', '40Mbps",'), "TS0508", 5, 36),
        ("a.json", LINKS.replace('40Mbps"', '40Mbps", "throughput_1_forward": "1Mbps"'),
         "TS0508", 5, 38),
        ("a.json", '{"a": {"b": 1}}', "TS0501", 1, 1),
        ("lab.conf", "pc1[0]=A\npc1 = 3\n", "TS0508", 2, 1),
        ("lab.conf", "pc1[0]=A/02:00:00:00:00:01\npc2[0]=A # as Kathara says\n", "TS0508", 2, 1),
        ("lab.conf", "pc1[0]=A\npc2[0]='A\"\n", "TS0508", 2, 1),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_place(
    tmp_path: Path, name: str, text: str, code: str, line: int, col: int
) -> None:
    (tmp_path / name).write_text(text)
    partial = parse_partial(f'include "{name}"\n', SourceFolder(tmp_path))
    first = next(one for one in partial.diagnostics if one.code.startswith("TS05"))
    assert (first.code, first.span.file) == (code, name)
    assert (first.span.line, first.span.col) == (line, col)


PIECES = sorted({word for data in FOREIGN.values() for word in data.split()})


@given(st.data())
def test_no_file_breaks_a_reader(data: st.DataObject) -> None:
    """A file of a tool in which pieces are cut out, doubled or put in from others."""
    case = data.draw(st.sampled_from(TOPOLOGIES.cases))
    content = bytearray(FOREIGN[case])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(at, min(len(content), at + 60)))
        content[at:end] = data.draw(st.sampled_from(PIECES) | st.binary(max_size=8))
    file = TOPOLOGIES.file_of(case)
    sink = Sink()
    words = ["rtt"] if file.endswith(".csv") else []
    found = translate(
        [file, *words], lambda _name: None, lambda _path: bytes(content), _nothing, sink
    )
    lines = bytes(content).count(b"\n") + 2
    assert all(1 <= one.span.line <= lines and one.span.col >= 1 for one in sink.found)
    assert found is not None or sink.failed


@pytest.mark.parametrize(
    ("name", "text", "code", "line"),
    [
        ("m.csv", ",a,b\na,0,1\nb,1,0,3\n", "TS0501", 3),
        ("m.csv", ",a,b\na,0,fast\nb,1,0\n", "TS0501", 2),
        ("m.csv", ",a,b\na,0,1\na,1,0\n", "TS0501", 3),
        ("m.json", '{"a": {"b": 1,}}', "TS0508", 1),
        ("m.json", '{"a": 7}', "TS0501", 1),
        ("m.json", '{"a": {"b": 1, "b": 2}}', "TS0508", 1),
        ("m.json", "[[0, 1], [1, 0]]", "TS0501", 1),
        ("m.json", "{}", "TS0501", 1),
        ("m.csv", "", "TS0501", 1),
        ("m.csv", ",a,b\n", "TS0501", 1),
        ("m.csv", ",a,b,b\na,0,1,2\n", "TS0501", 1),
        ("m.csv", "0,5,7\n5,0,9\n7,9,0\n", "TS0501", 1),
        ("m.csv", f",a,b\na,0,{'9' * 5000}\nb,1,0\n", "TS0501", 2),
        ("m.csv", ",a,b\na,0,1\nb,,0\n", "TS0973", 2),  # of one direction only
    ],
)
def test_what_is_wrong_with_a_matrix_has_its_place(
    tmp_path: Path, name: str, text: str, code: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    partial = parse_partial(f'matrix "{name}" one-way\n', SourceFolder(tmp_path))
    first = partial.diagnostics[0]
    assert (first.code, first.span.file, first.span.line) == (code, name, line)


def test_a_place_that_may_be_a_slip_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(",fra,iad\nfra,0,1\niad,1,0\nidd,1,0\n")
    partial = parse_partial('matrix "m.csv" rtt\n', SourceFolder(tmp_path))
    (slip,) = partial.diagnostics
    assert (slip.code, slip.span.line) == ("TS0973", 4)
    assert slip.message == "'idd' has a row and no column"
    assert slip.hint is not None
    assert "'iad'" in slip.hint


def test_a_matrix_in_json_is_that_in_csv(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("from;fra;iad\nfra;;88.2\niad;90ms;-\n")
    (tmp_path / "m.json").write_text('{"fra": {"iad": 88.2}, "iad": {"fra": "90ms"}}')
    sources = SourceFolder(tmp_path)
    end = "service a exec=true\nlink a--fra\nat 1s quit\n"
    one, other = (
        compile_source(f'matrix "{name}" one-way\n{end}', sources=sources).topology
        for name in ("m.csv", "m.json")
    )
    assert one.links == other.links
    assert one.routing == "direct"
    delays = {link.name: link.state.delay_ns for link in one.links}
    assert (delays["fra->iad"], delays["iad->fra"]) == (88_200_000, 90_000_000)


REGIONS = [
    "fra",
    "iad",
    "syd",
    "sin",
    "lhr",
    "nrt",
    "gru",
    "bom",
    "cdg",
    "pdx",
    "cpt",
    "arn",
    "hkg",
]


@pytest.mark.parametrize("way", ["rtt", "one-way"])
def test_all_156_pairs_of_13_regions_have_what_was_measured(tmp_path: Path, way: str) -> None:
    """With `rtt` half of the round trip each way, with `one-way` each direction its own."""
    ms = {
        (a, b): 3 + (x * y if way == "rtt" else 7 * x + y)
        for x, a in enumerate(REGIONS)
        for y, b in enumerate(REGIONS)
        if a != b
    }
    rows = [[a, *(f"{ms.get((a, b), 0)}.4" for b in REGIONS)] for a in REGIONS]
    table = "\n".join(",".join(row) for row in [["", *REGIONS], *rows])
    (tmp_path / "m.csv").write_text(table)
    text = "".join(f"service on-{one}\nlink on-{one}--{one}\n" for one in REGIONS)
    text = f'matrix "m.csv" {way}\n{text}at 1s quit\n'
    plan = compile_source(text, sources=SourceFolder(tmp_path)).plan
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    state, checked = plan.state_at(0), 0
    for (a, b), value in ms.items():
        found = path(state, numbers[f"on-{a}.0"], numbers[f"on-{b}.0"])
        assert found.totals is not None
        assert len(found.links) == 3
        wanted = (value * 10 + 4) * 100_000 // (2 if way == "rtt" else 1)
        assert found.totals.delay_ns == wanted
        checked += 1
    assert checked == 156


GRAPHML = """<graphml><key id="k" for="edge" attr.name="latency"><default>3</default></key>
<key id="b" for="edge" attr.name="Bandwidth"><default>1000000</default></key>
<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"/><edge source="b" target="c"><data key="k">4</data></edge>
</graph></graphml>"""


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        (
            "a.graphml",
            GRAPHML,
            ["link a--b latency=3ms up=1Mb symmetric", "link b--c latency=4ms up=1Mb symmetric"],
        ),
        (
            "a.gml",
            'graph [ node [ id 0 label "New York" ] node [ id 1 label "New_York" ]\n'
            'edge [ source 0 target 1 delay 1 jitter 0.1 LinkSpeed "45" LinkSpeedUnits "M" ] ]',
            ["link New_York_2--New_York latency=1ms jitter=0.1ms up=45Mb symmetric"],
        ),
        (  # the k-th edge there and the k-th back are one link
            "a.gml",
            "graph [ directed 1 node [ id 0 label a ] node [ id 1 label b ]\n"
            "edge [ source 0 target 1 delay 1m30s ] edge [ source 0 target 1 delay 2 ]\n"
            "edge [ source 1 target 0 delay 3 ] edge [ source 1 target 0 delay 4 ] ]",
            [
                "link a->b name=a_b_1 latency=90000ms",
                "link a->b name=a_b_2 latency=2ms",
                "link b->a name=a_b_1 latency=3ms",
                "link b->a name=a_b_2 latency=4ms",
            ],
        ),
        (
            "a.yaml",
            "hosts: {}\nnetwork:\n  use_shortest_path: false\n  graph: {type: 1_gbit_switch}\n",
            ["routing direct"],
        ),
    ],
)
def test_what_a_file_says_of_all_is_there(
    tmp_path: Path, name: str, text: str, lines: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    partial = parse_partial(f'include "{name}"\n', SourceFolder(tmp_path))
    assert partial.diagnostics == ()
    written = "".join(map(as_tdl.text, partial.translations)).splitlines()
    assert [line for line in written if line.startswith(("link", "routing"))] == lines


REPLICAS = """<experiment><services><service name="a" image="x" replicas="3"/></services>
<bridges><bridge name="s"/></bridges><links><link origin="a" dest="s" upload="1Mbps"/></links>
<dynamic><schedule name="a" time="1" action="join" amount="2"/></dynamic></experiment>"""
SELF = """hosts:
  a: {network_node_id: 0}
  b: {network_node_id: 0}
network:
  graph:
    type: gml
    inline: |
      graph [ node [ id 0 ]
      edge [ source 0 target 0 latency "40 ms" packet_loss 0.3 ] ]
"""


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("a.xml", REPLICAS, 1, "replicas of a is not carried over"),
        ("a.yaml", SELF, 9, "latency 40 ms, packet_loss 0.3 between a and b"),
        ("a.gml", "graph [ directed 1 node [ id 0 ] node [ id 1 ]\n"
                  "edge [ source 0 target 1 delay 1 ] ]", 2, "without one that leads back: 1"),
        ("a.yaml", "topology:\n  nodes:\n    a: {kind: linux, env: {A: $HOME}}\n", 3,
         "env of a is taken as it is"),
        ("a.yaml", "topology:\n  nodes:\n    a: {kind: linux, network-mode: host}\n", 3,
         "network-mode of a cannot be carried over"),
        ("lab.conf", "LAB_NAME=x\n", 1, "the lab has no device"),
    ],
)  # fmt: skip
def test_nothing_is_left_out_without_a_word(
    tmp_path: Path, name: str, text: str, line: int, said: str
) -> None:
    (tmp_path / name).write_text(text)
    partial = parse_partial(f'include "{name}"\n', SourceFolder(tmp_path))
    found = [one for one in partial.diagnostics if said in one.message]
    assert [(one.span.file, one.span.line) for one in found] == [(name, line)]


def _nothing(_path: str) -> bytes:
    return b""


def test_bounds_hold() -> None:
    deep = b"<experiment>" * 100
    many = b"<experiment><services>" + b"<service name='a'/>" * 200_001
    for data in (deep, many, b"<a>" + b"x" * (17 << 20)):
        sink = Sink()
        assert translate(["a.xml"], lambda _n: None, lambda _p: data, _nothing, sink) is None  # noqa: B023
        assert [one.code for one in sink.found] == ["TS0506"]
    sink = Sink()
    nested = b"graph [ " * 100
    assert translate(["a.gml"], lambda _n: None, lambda _p: nested, _nothing, sink) is None
    assert [one.code for one in sink.found] == ["TS0508"]


def test_the_text_gives_services_of_a_link_simulation_their_programs(tmp_path: Path) -> None:
    (tmp_path / "links.json").write_bytes(FOREIGN["link-simulation"])
    text = 'include "links.json"\nservice server exec="sleep 9" replicas=2\nat 1s quit\n'
    found = compile_source(text, sources=SourceFolder(tmp_path)).topology
    assert {node.name for node in found.nodes} >= {"client_3.0", "server.1"}
    states = {link.name: link.state for link in found.links}
    there, back = states["client_2.0->server.1"], states["server.1->client_2.0"]
    assert (there.rate_bps, there.delay_ns) == (50_000_000, 5_000_000)
    assert (back.rate_bps, back.delay_ns, back.loss_ppb) == (10_000_000, 2_000_000, 15_000_000)


def test_what_reads_json_is_said_where_it_is_the_other(tmp_path: Path) -> None:
    (tmp_path / "links.json").write_bytes(FOREIGN["link-simulation"])
    partial = parse_partial('matrix "links.json" rtt\n', SourceFolder(tmp_path))
    assert [(one.code, one.hint) for one in partial.diagnostics] == [
        ("TS0501", 'write include "links.json"')
    ]
