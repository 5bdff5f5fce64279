"""`external`: what a plan has of machines behind network cards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.pipeline import compile_source
from compiler.plan.format import Place, PlanError
from compiler.plan.parts.services import service_from_json, service_to_json
from compiler.plan.reader import decode
from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES, refusal, to_blame
from runtime.backend.local.cards import beyond
from runtime.backend.onehost.staging import declaration_lines
from runtime.rundir.etchosts import text
from tdl.diagnostics import TdlError

TEXT = """\
service a
external pc if=eth1 address=10.1.1.123
external tv if=eth2.7 prefix=10.2.0.0/16 own=192.168.2.50/24 gateway=192.168.2.1 tags=far
bridge s1
link a--s1
link pc--s1 latency=5ms
link tv--s1
"""


def test_a_node_leads_to_what_is_behind_the_card() -> None:
    topology = compile_source(TEXT).topology
    states = [link.state for link in topology.links]
    nodes = [line for line in declaration_lines(topology, states) if line.startswith("node ")]
    assert nodes[1].endswith("behind=10.1.1.123/32") and nodes[2].endswith("behind=10.2.0.0/16")
    assert "behind" not in nodes[0] + nodes[3]
    assert beyond(topology.services, 1) == (("10.2.0.0", 16),)
    assert len(beyond(topology.services, 0)) == 2


def test_a_name_is_that_of_one_machine_or_of_the_card() -> None:
    names = text(compile_source(TEXT).topology, hops=True)
    assert "10.1.1.123 pc.0 pc-0 pc\n" in names
    assert "10.77.0.3 tv.0 tv-0 tv\n" in names
    assert names.count("pc.0") == 1


def test_plans_keep_externals() -> None:
    for service in compile_source(TEXT).topology.services:
        json = service_to_json(service)
        assert ("external" in json) == (service.external is not None)
        assert service_from_json(json, Place("t", 0), 0) == service
        if service.external is None:
            continue
        for wrong in ("10.1.0.1/8", "fd00::/64", "x"):
            other = replace(service, external=replace(service.external, behind=wrong))
            with pytest.raises(PlanError, match="addresses of the external"):
                service_from_json(service_to_json(other), Place("t", 0), 0)


@pytest.mark.parametrize("way", [KUBERNETES, COMPOSE])
def test_elsewhere_it_is_refused_with_the_line(way: str) -> None:
    plan = decode(compile_source(TEXT).files)
    found = to_blame(plan, way)
    assert "(external pc)" in refusal(plan, way)
    assert found is not None and found.line == 2


OWN = {
    "own=10.3.0.9/24 gateway=10.3.0.8": None,
    "own=10.3.0.0/31": None,
    "own=10.3.0.1/24": "TS0721",  # the machine's: the run would answer in its place
    "own=10.3.0.9/24 gateway=10.3.0.9": "TS0721",
    "own=10.3.0.0/24": "TS0721",
    "own=10.3.0.255/24": "TS0721",
    "own=10.3.0.9/24 gateway=10.3.0.255": "TS0721",
}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("at 5s tags=far restart", "TS0724"),
        ("at 5s pc.0 pause for 1s", "TS0724"),
        ("from 1s to 5s churn 1", "TS0724"),
        ("at 5s pc join 1", "TS0724"),
        ("expect log pc 'x'", "TS0408"),
        ("quit when pc exits", "TS0136"),
        ("external x if=eth3 address=10.1.1.123\nlink x--s1", "TS0722"),
        ("external x if=eth3 prefix=10.1.0.0/16\nlink x--s1", None),
        ("external x if=eth3 prefix=10.0.0.0/8\nlink x--s1", "TS0722"),
        ("external x if=eth3 address=fd00::1\nlink x--s1", "TS0721"),
        ("external x if=eth3 address=10.3.0.1 own=10.3.0.9\nlink x--s1", "TS0721"),
        ("external x if=eth3 address=10.3.0.1 own=10.3.0.9/24 gateway=10.4.0.1\nlink x--s1",
         "TS0721"),
        *(
            (f"external x if=eth3 address=10.3.0.1 {words}\nlink x--s1", code)
            for words, code in OWN.items()
        ),
        ("external x if=a/b address=10.3.0.1\nlink x--s1", "TS0720"),
        ("external x if=eth3\nlink x--s1", "TS0720"),
        ("external x if=eth3 address=10.3.0.1 replicas=2\nlink x--s1", "TS0012"),
        ("at 5s pc disconnect\nat 6s pc reconnect\nfrom 7s to 9s pc--s1 flap 1s", None),
        ("at 5s partition pc;tv\nat 6s heal\nat 7s pc--s1 set loss=1%", None),
    ],
)  # fmt: skip
def test_what_may_be_said_of_externals(line: str, code: str | None) -> None:
    end = "" if line.startswith("quit") else "at 60s quit\n"
    if code is None:
        compile_source(f"{TEXT}{line}\n{end}")
        return
    with pytest.raises(TdlError) as caught:
        compile_source(f"{TEXT}{line}\n{end}")
    found = [one for one in caught.value.diagnostics if one.code == code]
    assert found and found[0].span.line == TEXT.count("\n") + 1, caught.value
