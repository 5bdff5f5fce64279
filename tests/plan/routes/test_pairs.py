"""All pairs at once: what compiler.plan.paths.path says of each, in order."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import HealthCheck, given, settings

from compiler.plan.paths import many_pairs
from compiler.plan.paths.path import Paths
from compiler.plan.reader import decode
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import contents, listing, networks, timeline
from tests.plan.test_oracle import moments

Case = tuple[Topology, tuple[Event, ...]]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=5, bridges=8, length=20))
def test_agrees_with_paths_one_by_one(case: Case) -> None:
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    for at_ns in moments(events):
        state = plan.state_at(at_ns)
        paths = Paths(state)
        joined = [i for i in range(state.core.endpoints) if state.nodes[i] != "down"]
        some = joined[::2]
        for sources, dests in ((joined, joined), (some, joined), (joined, some)):
            wanted = [paths.path(a, b) for a in sources for b in dests if a != b]
            for block in (1, 2, 64):
                with patch.object(many_pairs, "BLOCK", block):
                    assert list(many_pairs.between(state, sources, dests)) == wanted


def test_nobody_there() -> None:
    state = decode(encode(contents(listing(), timeline(listing())))).state_at(0)
    assert list(many_pairs.between(state, [], [])) == []
    assert list(many_pairs.between(state, [0], [])) == []
    assert list(many_pairs.between(state, [0], [0])) == []
