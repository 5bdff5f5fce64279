"""Nodes, links, addresses and queues of the expanded topology."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from compiler import queues
from compiler.declare import replicas
from compiler.draws import link_seed
from compiler.pipeline import compile_source
from compiler.plan.reader import decode
from compiler.plan.routes.core import Core

TEXT = """\
bootstrapper agent:2
routing hops
seed 9
service web img=nginx exec="sh -c 'sleep 5'" replicas=2 tags=front;app env=A:1 port=80
service db img=postgres command=['x', 'y'] entrypoint=['/bin/db', '-v'] replicas=2
bridges s1 s2 tags=core
link s1--web latency=5 jitter=1 loss=1% up=10Mb down=20Mb queue=64KB dist=uniform tags=access
link db--s2 up=8Gb symmetric
link s1--s2 latency=1
link web--db up=128Kb
"""


MS = 10**6
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tdl"))


@pytest.mark.parametrize("text", [TEXT, *(path.read_text() for path in EXAMPLES)])
def test_a_reader_of_the_plan_finds_the_same_topology(text: str) -> None:
    """So that nobody has to read it who has compiled it."""
    compilation = compile_source(text)
    assert compilation.plan.topology is compilation.topology
    assert decode(compilation.files, lazy=False).topology == compilation.topology


def test_nodes_come_by_service_then_bridges() -> None:
    topology = compile_source(TEXT).topology
    assert [node.name for node in topology.nodes] == ["web.0", "web.1", "db.0", "db.1", "s1", "s2"]
    assert [node.service for node in topology.nodes] == [0, 0, 1, 1, -1, -1]
    assert topology.nodes[1].tags == ("front", "app")
    assert topology.nodes[4].tags == ("core",)
    assert (topology.bootstrapper, topology.routing) == ("agent:2", "hops")


EVENTS = """\
at 1s pg.0--pg.3 leave
at 2s pg.2->pg.1 set up=1Mb
at 30s pg.1 crash
at 40s quit
"""
MESH = f"""\
service pg replicas=4
link pg--pg latency=9ms up=5Mb down=7Mb tags=x
{EVENTS}
at 3s pg--pg set latency=8ms
at 4s pg.2--pg set loss=1%
at 5s pg.2->pg set rate=9Mb
"""
WRITTEN_OUT = f"""\
service pg replicas=4
for i < j in 0..3 {{
  link pg.$i--pg.$j latency=9ms up=5Mb down=7Mb tags=x
}}
{EVENTS}
for i < j in 0..3 {{ at 3s pg.$i--pg.$j set latency=8ms }}
for i in 0;1;3 {{
  at 4s pg.2--pg.$i set loss=1%
  at 5s pg.2->pg.$i set rate=9Mb
}}
"""


def test_a_service_linked_with_itself_is_a_link_of_each_two_instances() -> None:
    mesh, written = (compile_source(text) for text in (MESH, WRITTEN_OUT))
    assert len(mesh.topology.links) == 12
    assert mesh.topology == written.topology
    told = [
        {(e.at_ns, e.kind, e.target, *e.args.items()) for e in one.events}
        for one in (mesh, written)
    ]
    assert told[0] == told[1]


def test_a_link_may_be_declared_one_direction_at_a_time() -> None:
    text = """service a replicas=2
service b
link a->b latency=16ms up=5Mb tags=x
link b->a latency=17ms jitter=1ms rate=7Mb queue=64KB loss=1% dist=uniform tags=y
at 1s a->b set up=6Mb
at 1s b->a set rate=8Mb
"""
    whole = text.replace("a->b latency=16ms up=5Mb tags=x", "a--b latency=16ms up=5Mb tags=x;y")
    whole = "".join(line for line in whole.splitlines(True) if not line.startswith("link b->a"))
    one, both = (compile_source(each) for each in (text, whole))
    assert [link.name for link in one.topology.links] == [link.name for link in both.topology.links]
    assert {link.tags for link in one.topology.links} == {("x", "y")}
    there, back = (link.state for link in one.topology.links[:2])
    assert there == both.topology.links[0].state
    assert (back.delay_ns, back.jitter_ns, back.rate_bps) == (17 * MS, MS, 7_000_000)
    assert (back.loss_ppb, back.queue_bytes, back.distribution) == (10_000_000, 64_000, "uniform")
    queues_set = {e.target: "queue_bytes" in e.args for e in one.events if e.kind == "set"}
    stated = {"b.0->a.0": False, "b.0->a.1": False}
    assert queues_set == {"a.0->b.0": True, "a.1->b.0": True, **stated}


PARALLEL = """seed 9
service a replicas=2
bridge s
link a--s name=fast latency=1ms up=1Gb down=2Gb
link s->a name=slow latency=20ms
link a->s name=slow latency=30ms
at 1s fast set up=3Gb
at 1s slow:s->a.1 set loss=1%
at 2s a.0--s leave
"""


def test_links_between_the_same_two_are_told_apart_by_their_names() -> None:
    compilation = compile_source(PARALLEL)
    topology = compilation.topology
    assert [link.name for link in topology.links] == [
        *("fast:a.0->s", "fast:s->a.0", "fast:a.1->s", "fast:s->a.1"),
        *("slow:s->a.0", "slow:a.0->s", "slow:s->a.1", "slow:a.1->s"),
    ]
    assert len({link.seed for link in topology.links}) == 8
    assert [link.state.delay_ns // MS for link in topology.links] == [1] * 4 + [20, 30] * 2
    targets = [(event.at_ns, event.target) for event in compilation.events if event.args]
    assert targets == [(10**9, f"fast:a.{i}->s") for i in range(2)] + [(10**9, "slow:s->a.1")]
    down = [event.target for event in compilation.events if event.kind == "link_down"]
    assert down == ["fast:a.0->s", "fast:s->a.0", "slow:s->a.0", "slow:a.0->s"]


def test_a_partition_cuts_all_links_between_two_and_counts_them() -> None:
    """One link to c is fewer than two to b."""
    text = "service x\nservice y\nbridges b c\nlink x--b\nlink y--c\n"
    text += "link b--c name=one\nlink b--c name=two\nat 1s partition {}\n"
    for groups, cut in (
        ("b;c", ["one:b->c", "one:c->b", "two:b->c", "two:c->b"]),
        ("x;y", ["y.0->c", "c->y.0"]),
        ("x;y c", ["x.0->b", "b->x.0"]),
    ):
        events = compile_source(text.format(groups)).events
        assert [event.target for event in events if event.kind == "link_down"] == cut


def test_a_mesh_grows_with_its_service() -> None:
    text = "service pg\nlink pg--pg\nat 0s pg join 2\nat 5s pg join 3\nat 9s pg--pg set loss=1%\n"
    grown = compile_source(text)
    assert len(grown.topology.links) == 20
    assert sum(event.kind == "set" for event in grown.events) == 20


def test_addresses() -> None:
    topology = compile_source(TEXT).topology
    assert topology.nodes[0].ipv4 == "10.77.0.1"
    assert topology.nodes[3].ipv6 == "fd77:7473::4"
    bridge = topology.nodes[4]
    assert (bridge.ipv4, bridge.ipv6) == ("10.77.255.254", "fd77:7473::1:0")
    silent = compile_source("hops silent\n" + TEXT).topology
    assert silent.nodes[4].ipv4 == silent.nodes[4].ipv6 == ""
    assert (topology.hops, topology.hops_at) == ("", ("", 0))
    assert (silent.hops, silent.hops_at) == ("silent", ("", 1))
    many = compile_source("service a replicas=700\nbridge s\nlink a--s\n").topology
    assert many.nodes[299].ipv4 == "10.77.1.44"
    assert many.nodes[699].ipv6 == "fd77:7473::2bc"
    for node in many.nodes[:700]:
        assert ipaddress.ip_address(node.ipv4) in ipaddress.ip_network("10.77.0.0/16")
        assert ipaddress.ip_address(node.ipv6).compressed == node.ipv6


def test_services_are_carried_whole() -> None:
    web, db = compile_source(TEXT).topology.services
    assert (web.image, web.exec, web.replicas) == ("nginx", ("sh", "-c", "sleep 5"), 2)
    assert (web.env, web.ports, web.tags) == ((("A", "1"),), (80,), ("front", "app"))
    assert (db.command, db.entrypoint, db.exec) == (("x", "y"), ("/bin/db", "-v"), ())
    assert (web.command, web.entrypoint) == ((), ())


def test_links_are_pairs_of_directions() -> None:
    topology = compile_source(TEXT).topology
    assert [link.name for link in topology.links] == [
        *("s1->web.0", "web.0->s1", "s1->web.1", "web.1->s1"),
        *("db.0->s2", "s2->db.0", "db.1->s2", "s2->db.1"),
        *("s1->s2", "s2->s1"),
        *("web.0->db.0", "db.0->web.0", "web.0->db.1", "db.1->web.0"),
        *("web.1->db.0", "db.0->web.1", "web.1->db.1", "db.1->web.1"),
    ]
    for index, link in enumerate(topology.links):
        back = topology.links[index ^ 1]
        assert (link.src, link.dst) == (back.dst, back.src)
        assert link.seed == link_seed(9, link.name) < 2**63


def test_link_properties() -> None:
    links = {link.name: link for link in compile_source(TEXT).topology.links}
    there, back = links["s1->web.1"].state, links["web.1->s1"].state
    assert (there.rate_bps, back.rate_bps) == (10_000_000, 20_000_000)
    for state in (there, back):
        assert (state.delay_ns, state.jitter_ns) == (5_000_000, 1_000_000)
        assert (state.loss_ppb, state.queue_bytes) == (10_000_000, 64_000)
        assert (state.up, state.distribution) == (True, "uniform")
    assert links["s1->web.0"].tags == ("access",)
    assert links["db.1->s2"].state.rate_bps == links["s2->db.1"].state.rate_bps == 8 * 10**9
    assert links["web.0->db.0"].state.rate_bps == 128_000
    assert links["db.0->web.0"].state.rate_bps == 0


def test_default_queues() -> None:
    """50 ms of the rate, within bounds; an unlimited link never uses its queue."""
    assert queues.default_bytes(100_000_000) == 625_000
    assert queues.default_bytes(1_000_000) == 30_000
    assert queues.default_bytes(8 * 10**9) == 16 * 1024 * 1024
    assert queues.default_bytes(0) == 16 * 1024 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "service a replicas=3\nbridges s t\nlink a--s\nlink s--t",
        "service a replicas=3\nservice b replicas=2\nbridges s t\nlink a--s\nlink a--t\nlink b--s",
        "service a replicas=3\nservice b replicas=2\nlink a--b",
        "service a replicas=3\nservice b\nservice c\nbridge s\nlink a--b\nlink c--s",
        "service a replicas=2 supervisor\nservice b\nbridges s t\nlink b--t",
    ],
)
def test_the_size_of_the_routing_table_is_foreseen(text: str) -> None:
    compiled = compile_source(text)
    core = Core(compiled.topology)
    counts = {service.name: service.replicas for service in compiled.topology.services}
    assert replicas._table(compiled.model.declared, counts) == (len(core.rows), len(core.columns))
