"""Which host an instance is on: a rule that everybody who has the plan can follow.

Instances in the plan's order (service by service, then by index) go to hosts in turn, so every
service is spread evenly and no host has more than one instance more than another.
"""

from __future__ import annotations

from compiler.plan.types import Topology
from runtime.errors import RunError
from runtime.options import MAX_HOSTS

NO_HOST = -1  # a bridge is nowhere


def place(topology: Topology, hosts: int) -> tuple[int, ...]:
    """The host of each node by its index, from 0; NO_HOST for bridges. Raises RunError."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise RunError(
            f"a run cannot have {hosts} hosts", f"give a whole number from 1 to {MAX_HOSTS}"
        )
    found: list[int] = []
    instances = 0
    for node in topology.nodes:
        if node.service < 0:
            found.append(NO_HOST)
        else:
            found.append(instances % hosts)
            instances += 1
    return tuple(found)
