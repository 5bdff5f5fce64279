"""Metadata between agents: what is told, to whom, when; and what is made of what comes."""

from __future__ import annotations

from tests.agent.hosts import Hosts, dumbbell, flow


def test_flows_of_others_are_known() -> None:
    net = Hosts(dumbbell(4), [0, 1, 0, 1, 0, 1, 0, 1])
    net.flows[0] = [flow(0, 5, 10), flow(2, 7, 20, greedy=True)]
    net.flows[1] = [flow(1, 4, 30)]
    net.tick(2)
    assert net.known(1) == {(0, 5): (10_027_008, False), (2, 7): (20_054_016, True)}
    assert net.known(0) == {(1, 4): (30_015_488, False)}
    net.flows[0] = [flow(2, 7, 20, greedy=True)]
    net.tick()
    assert net.known(1) == {(2, 7): (20_054_016, True)}
