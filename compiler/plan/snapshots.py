"""From a topology and its timeline to the epochs of the plan: states and routes, as differences.

Input: a Topology and its events in order. Output: for each epoch what changed in it (states of
nodes and links, next hops). Source: docs/plan.md; the collapsing of paths itself is left to
compiler.plan.paths.path, which needs only this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.plan.routes.routing import Routes
from compiler.plan.routes.table import RouteDelta
from compiler.plan.state import epochs
from compiler.plan.types import Epoch, Event, Topology


def snapshots(topology: Topology, events: Iterable[Event]) -> Iterator[tuple[Epoch, RouteDelta]]:
    """One pair per epoch, in order. Raises PlanError if an event is impossible in its state."""
    routes = Routes(topology)
    for epoch in epochs(topology, events):
        yield epoch, routes.apply(epoch.links)
