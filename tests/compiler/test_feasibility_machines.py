"""Rates and round trips against machines: by brute force over all instants and all pairs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.feasibility import underlay
from compiler.feasibility.machine_budget import peak
from compiler.feasibility.warnings import Machines
from compiler.pipeline import compile_source
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, decode
from compiler.plan.state import StateAt, epochs
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import MS, contents, networks

Drawn = tuple[Topology, tuple[Event, ...]]


@settings(max_examples=100, deadline=None)
@given(networks(services=4, bridges=5, length=20))
def test_the_peak_is_the_first_greatest_sum_of_what_instances_can_send(drawn: Drawn) -> None:
    topology, events = drawn
    state, sums = StateAt(topology), []
    for epoch in epochs(topology, events):
        state.advance(epoch)
        rates = [
            now.rate_bps
            for link, now in zip(topology.links, state.links, strict=True)
            if now.up and topology.nodes[link.src].service >= 0
        ]
        sums.append((epoch.at_ns, sum(rates), sorted(rates)))
    at_ns, most_bps, load = peak(topology, events)
    assert most_bps == max(total for _, total, _ in sums)
    if most_bps:
        first = next(item for item in sums if item[1] == most_bps)
        assert (at_ns, most_bps, sorted(rate for _, rate in load.carriers())) == first


def plan_of(drawn: Drawn) -> Plan:
    return decode(encode(contents(*drawn)))


@settings(max_examples=100, deadline=None)
@given(networks(services=4, bridges=5, length=12), st.integers(1, 8 * MS))
def test_short_round_trips_are_those_of_all_pairs_in_all_states(
    drawn: Drawn, underlay_ns: int
) -> None:
    plan = plan_of(drawn)
    instances = sum(node.service >= 0 for node in plan.topology.nodes)
    service = [node.service for node in plan.topology.nodes]
    expected: dict[tuple[int, int], list[tuple[int, int, tuple[int, int]]]] = {}
    for epoch in plan.epochs:
        paths = Paths(plan.state_at(epoch.at_ns))
        for pair in combinations(range(instances), 2):
            rtt_ns = paths.path(*pair).rtt_ns
            if rtt_ns is not None and rtt_ns < underlay_ns:
                services = (service[pair[0]], service[pair[1]])
                expected.setdefault(services, []).append((rtt_ns, epoch.at_ns, pair))
    moments, left_out = underlay._moments(plan)
    assert left_out == 0
    least_ns, _ = underlay._least(plan)
    assert all(rtt_ns >= least_ns for found in expected.values() for rtt_ns, *_ in found)
    found = underlay.find(plan, moments, underlay_ns)
    assert found.keys() == expected.keys()
    for services, short in found.items():
        assert (short.rtt_ns, short.at_ns, short.pair) == min(expected[services])
        assert short.pairs == {pair for *_, pair in expected[services]}


def test_what_was_not_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["service a replicas=2", "bridge s1", "link a--s1 latency=1"]
    lines += [f"at {second}s a--s1 set latency+=1" for second in range(1, 10)]
    lines += ["at 10s a--s1 set latency=0.1"]
    text = "\n".join(lines) + "\n"
    machines = Machines(underlay_ns=MS)
    (all_of_them,) = compile_source(text, machines=machines).diagnostics
    assert "looked at" not in all_of_them.message
    monkeypatch.setattr(underlay, "ROWS", 6)
    (some,) = compile_source(text, machines=machines).diagnostics
    assert some.message == f"{all_of_them.message} (looked at 3 of 11 states)"
    lines[-1] = "at 10s a--s1 set latency=9"
    lines[4:4] = ["at 1500ms a--s1 set latency=0.1"]
    text = "\n".join(lines) + "\n"
    (nothing,) = compile_source(text, machines=machines).diagnostics
    assert "as far as could be seen: looked at 3 of 12 states" in nothing.message
    assert nothing.span.line == 3
    assert compile_source(text, machines=Machines(underlay_ns=MS // 4)).diagnostics == ()


def test_more_pairs_of_services_than_are_named_are_counted() -> None:
    text = "".join(f"service a{i}\nlink a{i}--s1 latency=0.1\n" for i in range(5)) + "bridge s1\n"
    found = compile_source(text, machines=Machines(underlay_ns=MS)).diagnostics
    assert [d.code for d in found] == ["TS0920"] * 6
    (rest,) = [d.message for d in found if "other pairs" in d.message]
    assert rest.startswith("5 more pairs of instances, of 5 other pairs of services, are nearer")
