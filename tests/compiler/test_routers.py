"""`router`, `lan`, `address=` and `addresses auto`: what a plan has of links that carry frames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.frame_domains import FrameDomains
from compiler.plan.paths.path import path
from compiler.plan.reader import decode
from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES, refusal
from compiler.plan.rules.consistency import topology as check
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.rules.property_limits import HOP_EXACT, PATHS
from compiler.plan.types import Node, Topology, device_mac
from tdl.diagnostics import Severity, TdlError

TEXT = """\
service a
service b replicas=2
service r replicas=2 router
lan l
link a--r.0 address=10.1.0.2/24,fd00::2/64--10.1.0.1/24,fd00::1/64 latency=1ms
link r.0--r.1 address=10.0.0.1/30--10.0.0.2/30 latency=5ms
link b--l address=10.2.0.11/24+ latency=2ms
link l--r.1 address=10.2.0.1/24
at 5s r.0--r.1 leave
"""


def _topology(text: str = TEXT) -> Topology:
    return compile_source(text).topology


def _nodes(text: str = TEXT) -> dict[str, Node]:
    return {node.name: node for node in _topology(text).nodes}


def _codes(text: str, severity: Severity = Severity.ERROR) -> list[tuple[str, int]]:
    try:
        found = compile_source(text).diagnostics
    except TdlError as error:
        found = tuple(error.diagnostics)
    return [(one.code, one.span.line) for one in found if one.severity is severity]


def test_ends_have_the_addresses_that_the_text_gives_them() -> None:
    nodes = _nodes()
    assert (nodes["a.0"].ipv4, nodes["a.0"].ipv6) == ("10.1.0.2", "fd00::2")
    assert nodes["a.0"].prefixes == (24, 64)
    assert nodes["r.0.eth1"].ipv4 == "10.0.0.1"
    assert (nodes["b.0"].ipv4, nodes["b.1"].ipv4) == ("10.2.0.11", "10.2.0.12")
    assert nodes["r.1.eth1"].ipv4 == "10.2.0.1"
    assert nodes["l"] == Node("l", -1, "", "", (), frames=True)


def test_who_is_no_router_has_the_only_one_as_its_gateway() -> None:
    nodes = _nodes()
    assert nodes["a.0"].gateways == ("10.1.0.1", "fd00::1")
    assert nodes["b.1"].gateways == ("10.2.0.1", "")
    assert nodes["r.0"].gateways == ("", "")
    none = TEXT.replace("11/24+", "11/24+ gateway=none")
    assert _nodes(none)["b.0"].gateways == ("", "")
    other = TEXT.replace("11/24+", "11/24+ gateway=10.2.0.9")
    assert _nodes(other)["b.0"].gateways == ("10.2.0.9", "")


def test_a_reader_finds_the_same_and_plain_plans_say_nothing_of_frames() -> None:
    compilation = compile_source(TEXT)
    assert decode(compilation.files, lazy=False).topology == compilation.topology
    plain = compile_source("service a replicas=2\nbridge s\nlink a--s").files["topology.json"]
    assert b"frames" not in plain and b"router" not in plain


def test_paths_are_within_what_hears_each_other() -> None:
    plan = compile_source(TEXT).plan
    number = {node.name: at for at, node in enumerate(plan.topology.nodes)}
    state = plan.state_at(0)

    def reaches(src: str, dst: str) -> bool:
        return path(state, number[src], number[dst]).reachable

    assert reaches("a.0", "r.0") and reaches("r.0.eth1", "r.1") and reaches("b.0", "b.1")
    assert not reaches("a.0", "r.0.eth1") and not reaches("a.0", "b.0")
    links = [(link.src, link.dst) for link in plan.topology.links]
    domains = FrameDomains(plan.topology.nodes, links)
    assert domains.by_programs(number["a.0"], number["b.1"])
    assert not domains.by_programs(number["b.0"], number["r.1.eth1"])
    ends = list(range(7))
    assert domains.pairs_by_programs(ends) == 7 * 7 - (2**2 + 2**2 + 3**2)


def test_addresses_auto_fills_what_is_not_said() -> None:
    text = """\
service r replicas=3 router
service c replicas=2
lan l
lan m
addresses auto
link r.0--r.1
link r.1--r.2 address=10.0.0.1/30--10.0.0.2/30
link r.0--r.2
link c--l
link l--m
link r.2--m
"""
    nodes = _nodes(text)
    assert [nodes[one].ipv4 for one in ("r.0", "r.1")] == ["10.78.0.0", "10.78.0.1"]
    assert [nodes[one].ipv4 for one in ("r.0.eth1", "r.2.eth1")] == ["10.78.0.4", "10.78.0.5"]
    assert nodes["r.1.eth1"].ipv4 == "10.0.0.1"
    at_lan = [nodes[one].ipv4 for one in ("c.0", "c.1", "r.2.eth2")]
    assert at_lan == ["10.79.0.1", "10.79.0.2", "10.79.0.3"]
    assert nodes["c.0"].gateways == ("10.79.0.3", "")
    assert nodes["r.0"].prefixes == (31, 0)


@given(st.integers(1, 300))
def test_every_end_at_a_lan_gets_another_address_or_the_text_is_refused(replicas: int) -> None:
    text = f"service c replicas={replicas}\nlan l\naddresses auto\nlink c--l\n"
    if replicas > 254:
        assert {code for code, _ in _codes(text)} == {"TS0606"}
        return
    found = [node.ipv4 for node in _topology(text).nodes if node.service >= 0]
    assert len(set(found)) == replicas and all(one.startswith("10.79.0.") for one in found)


def test_a_plus_between_two_ends_takes_the_next_network() -> None:
    nodes = _nodes(
        "service hub router\nservice c replicas=3\nlink c--hub address=10.9.0.2/30+--10.9.0.1/30+\n"
    )
    assert [nodes[f"c.{k}"].ipv4 for k in range(3)] == ["10.9.0.2", "10.9.0.6", "10.9.0.10"]
    assert [nodes[f"c.{k}"].gateways[0] for k in range(3)] == ["10.9.0.1", "10.9.0.5", "10.9.0.9"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("service r router\nbridge s\nlink r--s", ("TS0600", 3)),
        ("lan l\nbridge s\nservice a\nlink a--l\nlink l--s", ("TS0600", 5)),
        ("service r router\nservice a\npath a--r abw=4Mb rtt=20ms", ("TS0600", 3)),
        ("service r router\nlan l\nlink r--l address=10.0.0.300/24", ("TS0601", 3)),
        ("service r router\nlan l\nlink r--l address=10.0.0.0/24", ("TS0601", 3)),
        ("service r router\nlan l\nlink r--l address=224.0.0.5/24", ("TS0601", 3)),
        ("service r router\nlan l\nlink r--l address=10.0.0.1/24,10.0.0.2/24", ("TS0601", 3)),
        ("service r router\nlan l\nlink r--l address=1.1.1.1/8--1.1.1.2/8--", ("TS0601", 3)),
        ("service r router\nlan l\nlink r--l gateway=here", ("TS0601", 3)),
        ("service c replicas=2\nlan l\nlink c--l address=10.0.0.1/24", ("TS0602", 3)),
        ("service a\nservice b\nlan l\nlan m\nlink l--m\nlink a--l address=10.0.0.1/8\n"
         "link b--m address=10.0.0.1/24", ("TS0602", 7)),
        ("service r router\nservice a\nlink a--r address=10.0.0.1/30--10.0.0.1/30", ("TS0602", 3)),
        ("service a\nlan l\nlan m\nlan n\nlink a--l\nlink l--m\nlink m--n\nlink n--l",
         ("TS0603", 8)),
        ("service a\nlan l\nbridge s\nlink a--l\nlink a--s", ("TS0604", 1)),
        ("service r replicas=2 router\nservice a\nlink a--r", ("TS0604", 2)),
        ("service a\nbridge s\nlink a--s address=10.0.0.1/24", ("TS0605", 3)),
        ("service a\nbridge s\nlink a--s gateway=10.0.0.1", ("TS0605", 3)),
        ("service a\nlan l\nlink a--l address=10.0.0.1/24--10.0.0.2/24", ("TS0605", 3)),
        ("service c replicas=7\nlan l\nlink c--l address=10.0.0.1/29+\n", ("TS0606", 3)),
        ("service r router\naddresses odd\nservice a\nlink a--r", ("TS0607", 2)),
        ("service r router\nservice a\nlink a--r address=10.0.0.1/30 gateway=10.0.0.9",
         ("TS0608", 3)),
        (TEXT + "expect rtt max a b < 30ms", ("TS0609", 10)),
        (TEXT + "expect throughput b.0 b.1 > 1Mb", ("TS0609", 10)),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_of_its_line(text: str, found: tuple[str, int]) -> None:
    assert _codes(text) == [found]


def test_what_may_not_be_meant_is_a_warning() -> None:
    one_link = "service r router\nservice a\nlink a--r"
    assert _codes(one_link, Severity.WARNING) == [("TS0983", 1)]
    several = "service r replicas=2 router\nservice a\nlan l\naddresses auto\n"
    several += "link r--l\nlink a--l\nlink r--r\n"
    assert _codes(several, Severity.WARNING) == [("TS0984", 6)]
    assert not _codes(TEXT, Severity.WARNING)


def test_the_words_are_names_elsewhere() -> None:
    text = "service lan\nservice addresses\nservice router\nbridge s\n"
    text += "link lan--s\nlink addresses--s\nlink router--s\nat 1s lan--s leave\nat 2s lan crash\n"
    assert not _codes(text)


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        ("10.0.0.1/24", "10.0.1.2/24", [4, 5]),
        ("10.0.0.1/16", "10.0.1.2/24", [5]),  # a may send to b, who cannot answer
        ("10.0.0.1/24", "10.0.0.2/16", []),
        ("10.0.0.1/32", "10.0.1.2/32", []),  # as for routes of programs to single addresses
        ("10.0.0.1/24,fd00::1/64", "10.0.0.2/24,fd01::1/64", [4, 5]),
        ("10.0.0.1/24", "fd01::1/64", []),
    ],
)
def test_an_address_that_reaches_nobody_is_warned_of(a: str, b: str, lines: list[int]) -> None:
    text = f"service a\nservice b\nlan l\nlink a--l address={a}\nlink b--l address={b}\n"
    assert _codes(text, Severity.WARNING) == [("TS0985", line) for line in lines]
    between = f"service a\nservice r router\nlink a--r address={a}--{b}\n"
    found = [code for code, _ in _codes(between, Severity.WARNING)]
    assert found.count("TS0985") == bool(lines)  # once for a statement


def test_what_has_no_frames_refuses_with_the_line() -> None:
    plan = compile_source(TEXT).plan
    for datapath in set(PATHS) - {HOP_EXACT}:
        found = misfit(plan, datapath)
        assert found is not None and found.line == 3 and "router" in found.what, datapath
    alone = compile_source("service a\nlan l\nlink a--l\n").plan
    for datapath in set(PATHS) - {HOP_EXACT}:
        found = misfit(alone, datapath)
        assert found is not None and found.line == 2 and "(lan)" in found.what
    for kind in (KUBERNETES, COMPOSE):
        assert refusal(plan, kind) and refusal(alone, kind), kind


def test_devices_have_addresses_of_their_own() -> None:
    assert device_mac(0x1234) == "02:54:53:01:12:34"
    assert len({device_mac(node) for node in range(65_535)}) == 65_535


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a.0", {"frames": False}),
        ("l", {"frames": False}),
        ("l", {"ipv4": "10.0.0.1", "prefixes": (24, 0)}),
        ("a.0", {"ipv4": "010.1.0.2"}),
        ("a.0", {"prefixes": (0, 64)}),
        ("r.0", {"gateways": ("nobody", "")}),
        ("r.0.eth1", {"gateways": ("", "fd00::1")}),
    ],
)
def test_a_reader_refuses_what_no_text_makes(name: str, changes: dict[str, object]) -> None:
    topology = _topology()
    check(topology)
    nodes = [
        replace(node, **changes) if node.name == name else node  # type: ignore[arg-type]
        for node in topology.nodes
    ]
    with pytest.raises(PlanError):
        check(replace(topology, nodes=tuple(nodes)))
