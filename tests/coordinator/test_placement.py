"""Instances go to hosts in turn, in the plan's order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.types import Topology
from runtime.coordinator.placement import NO_HOST, place, planned
from runtime.errors import RunError

TEXT = """service a img=x replicas=3
service b img=x replicas=2
bridge s1
bridge s2
link a--s1 latency=1
link b--s2 latency=1
link s1--s2 latency=1
"""


def topology(text: str = TEXT) -> Topology:
    return compile_source(text).plan.topology


def test_in_turn_by_service_and_index() -> None:
    names = [node.name for node in topology().nodes]
    assert names == ["a.0", "a.1", "a.2", "b.0", "b.1", "s1", "s2"]
    assert place(topology(), 2) == (0, 1, 0, 1, 0, NO_HOST, NO_HOST)
    assert place(topology(), 1) == (0, 0, 0, 0, 0, NO_HOST, NO_HOST)
    assert place(topology(), 7) == (0, 1, 2, 3, 4, NO_HOST, NO_HOST)


def test_addresses_are_those_of_the_plan() -> None:
    found = planned(topology(), 2)
    assert found.hosts == place(topology(), 2)
    assert found.addresses == tuple((f"10.77.0.{n}", f"fd77:7473::{n}") for n in range(1, 6))
    assert found.networks == ("10.77.0.0/16", "fd77:7473::/64")


@given(st.integers(1, 30), st.integers(1, 12))
def test_hosts_differ_by_one_at_most(replicas: int, hosts: int) -> None:
    text = f"service a img=x replicas={replicas}\nbridge s\nlink a--s latency=1\n"
    placed = place(topology(text), hosts)
    counts = Counter(host for host in placed if host != NO_HOST)
    assert sum(counts.values()) == replicas
    assert set(counts) <= set(range(hosts))
    assert max(counts.values()) - min(counts[host] for host in range(hosts)) <= 1


@pytest.mark.parametrize("hosts", [0, -1, 1025])
def test_a_number_of_hosts_that_is_none_is_refused(hosts: int) -> None:
    with pytest.raises(RunError, match=f"a run cannot have {hosts} hosts .*from 1 to 1024"):
        place(topology(), hosts)
