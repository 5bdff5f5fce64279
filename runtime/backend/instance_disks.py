"""Where a power failure of an instance (`crash power`) can be carried out: in virtual time, with
files in the instance's own directory (runtime/backend/local/disk.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.types import PRIVATE, Event
from runtime.backend.instance import Instance
from runtime.errors import UnfitError
from runtime.options import VIRTUAL, RunOptions


def check(plan: Plan, options: RunOptions) -> None:
    """Raises UnfitError where it cannot be."""
    found = capabilities.power_failure(plan)
    if found is None:
        return
    if options.time != VIRTUAL:
        message = f"{found} in real time: this machine's disk is that of all programs"
        raise UnfitError(found, message, "add --time virtual, or write `crash` alone")
    if options.hosts:
        message = f"{found} with --hosts: agents start the programs there"
        raise UnfitError(found, message, "leave --hosts out")
    topology = plan.topology
    wanted = watched(plan)
    for node in topology.nodes:
        service = topology.services[node.service] if node.is_instance else None
        if service is None or node.name not in wanted:
            continue
        if service.fs == PRIVATE or (service.image and not service.exec):
            what = "fs=private" if service.fs == PRIVATE else "an image"
            message = f"{found}: {service.name} has {what}, and only of files in an instance's own"
            hint = "state exec= without fs=private, and keep data in the folder that it begins in"
            raise UnfitError(found, f"{message} directory is it known what was synced", hint)


def watched(plan: Plan) -> frozenset[str]:
    """Instances whose power may fail: those of events, and all where a `when` has one."""
    if any(capabilities.FAILS_POWER.search(one.text) for one in plan.topology.reactions):
        return frozenset(node.name for node in plan.topology.nodes if node.is_instance)
    return frozenset(event.target for event in plan.events if "power_seed" in event.args)


def unwatched(events: Iterable[Event], instances: Mapping[str, Instance]) -> str:
    """Why these new events cannot be; '' if they can."""
    for event in events:
        one = instances.get(event.target)
        if "power_seed" in event.args and one is not None and not one.can_lose_power:
            return (
                f"what {event.target} has synced is not known, since the experiment has no"
                " `crash power` of it"
            )
    return ""
