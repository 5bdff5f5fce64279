"""Simulations that are used more than once: several hosts over one of the simulated networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.simulation.networks import Network
from tests.simulation.simulation import Exchange, Plain, Simulation, interest


def spread(instances: int, hosts: int) -> list[int]:
    """Instance n on host n mod N, as agents are placed."""
    return [instance % hosts for instance in range(instances)]


def plain(network: Network, placement: Sequence[int], host: int) -> Plain:
    """The plain exchange of one host."""
    return Plain(host, network, interest(network, sorted(network.routes), placement))


def simulate(
    network: Network, placement: Sequence[int], *, loss: float = 0.0, seed: int = 0, **more: Any
) -> Simulation:
    """With the plain exchange."""

    def prepare(host: int) -> Exchange:
        return plain(network, placement, host)

    return Simulation(network, placement, prepare, loss=loss, seed=seed, **more)


def change(sim: Simulation, at_ns: int, network: Network, placement: Sequence[int]) -> None:
    """Another network for all, the same instances on it."""
    known = interest(network, sorted(network.routes), placement)

    def then() -> None:
        for host in sim.hosts:
            assert isinstance(host.exchange, Plain)
            host.exchange.epoch(network, known)

    sim.change(at_ns, network, then)
