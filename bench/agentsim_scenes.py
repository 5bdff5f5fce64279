"""Simulations that are used more than once: several hosts over one of the simulated networks."""

from __future__ import annotations

from collections.abc import Sequence

from bench.agentsim import Exchange, Plain, Simulation, interest
from bench.agentsim_networks import Network


def spread(instances: int, hosts: int) -> list[int]:
    """Instance n on host n mod N, as agents are placed."""
    return [instance % hosts for instance in range(instances)]


def simulate(
    network: Network, placement: Sequence[int], *, loss: float = 0.0, seed: int = 0, **more: int
) -> Simulation:
    """With the plain exchange."""
    known = interest(network, sorted(network.routes), placement)

    def prepare(host: int) -> Exchange:
        return Plain(host, network, known)

    return Simulation(network, placement, prepare, loss=loss, seed=seed, **more)
