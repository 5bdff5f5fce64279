"""Simulations of a compiled plan, with the real metadata between agents.

Input: a text in the language. Output: a Simulation whose view is what agents see of the plan.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.metadata import Metadata
from runtime.agent.path.prefetcher import PlanView
from runtime.agent.share.solver import Flow, solve
from runtime.agent.vocabulary import View
from runtime.coordinator.placement import place
from tests.simulation.simulation import Exchange, Simulation

KEY = bytes(32)
RUN = b"simulation"

Pair = tuple[int, int]


class Planned:
    """A plan over so many hosts, and simulations of it."""

    def __init__(self, text: str, hosts: int) -> None:
        self.plan: Plan = compile_source(text).plan
        self.placement = place(self.plan.topology, hosts)
        self.hosts = hosts
        self.names = {node.name: at for at, node in enumerate(self.plan.topology.nodes)}
        self._starts = [0] * hosts
        self._agents: dict[int, Metadata] = {}  # the present one of each host

    def view(self, at_ns: int = 0) -> PlanView:
        return PlanView(self.plan.state_at(at_ns))

    def exchange(self, host: int, at_ns: int = 0) -> Metadata:
        """A new agent's, in the place of the host's one before; the others are told."""
        self._starts[host] += 1
        starts = [max(start, 1) for start in self._starts]
        made = self._agents[host] = Metadata(KEY, RUN, host, starts)
        for agent in self._agents.values():
            agent.announce(starts)
        self.met(made, self.plan.state_at(at_ns), at_ns)
        return made

    def met(self, metadata: Metadata, state: NetworkState, now_ns: int) -> None:
        metadata.epoch(state.epoch, Interest(state, self.placement, self.hosts), now_ns)

    def simulate(
        self, *, at_ns: int = 0, loss: float = 0.0, seed: int = 0, **more: Any
    ) -> Simulation:
        """Of the network as it is at that time of the plan, and stays."""

        def prepare(host: int) -> Exchange:
            return self.exchange(host, at_ns)

        instances = [host for host in self.placement if host >= 0]
        view = self.view(at_ns)
        return Simulation(view, instances, prepare, loss=loss, seed=seed, **more)

    def change(self, sim: Simulation, now_ns: int, at_ns: int) -> None:
        """From now on the network is as at another time of the plan."""
        state = self.plan.state_at(at_ns)

        def then() -> None:
            for host in sim.hosts:
                assert isinstance(host.exchange, Metadata)
                self.met(host.exchange, state, now_ns)

        sim.change(now_ns, PlanView(state), then)

    def shares(self, view: View, demands: Mapping[Pair, int]) -> dict[Pair, int]:
        """The model's shares in b/s of flows with these demands (UNLIMITED: greedy)."""
        pairs, flows, capacities = sorted(demands), [], {}
        for pair in pairs:
            path = view.path(*pair)
            assert path is not None
            flows.append(Flow(path.links, path.rtt_ns, demands[pair]))
            capacities |= {link: view.capacity(link) for link in path.links}
        rates = (share.allocation_bps for share in solve(flows, capacities).shares)
        return dict(zip(pairs, rates, strict=True))


def random_text(seed: int, instances: int, bridges: int) -> str:
    """A random tree of bridges with a few more links, one instance each at random bridges."""
    source = random.Random(seed)
    names = [f"b{number}" for number in range(bridges)]
    lines = [f"seed {seed}", f"bridges {' '.join(names)}"]
    edges = {(source.randrange(bridge), bridge) for bridge in range(1, bridges)}
    for _ in range(bridges // 3):
        a, b = sorted(source.sample(range(bridges), 2))
        edges.add((a, b))
    for a, b in sorted(edges):
        delay, rate = source.randint(1, 20), source.choice((10, 20, 50, 100))
        lines.append(f"link b{a}--b{b} latency={delay}ms up={rate}Mb symmetric")
    for number in range(instances):
        lines.append(f"service n{number} img=x")
        delay, rate = source.randint(1, 5), source.choice((50, 100))
        home = source.choice(names)
        lines.append(f"link n{number}--{home} latency={delay}ms up={rate}Mb symmetric")
    lines += [f"at 0s n{number} join" for number in range(instances)]
    return "\n".join([*lines, "at 60s quit", ""])
