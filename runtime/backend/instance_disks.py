"""Disks of single instances: power failures (`crash power`) and faults (`set disk=`).

Both are about files in the instance's own directory, of programs that the run starts on this
machine. A power failure needs to know what was synced (runtime/backend/local/disk.py), which is
known in virtual time only; faults are made by the instance's first process (tcal_c/ns/faults.c).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.types import PRIVATE, Event, Service
from runtime.backend.instance import (
    CALLS_HEARD,
    HEARD,
    NOT_HEARD,
    WRITES_HEARD,
    Incarnation,
    Instance,
)
from runtime.backend.instance_settings import InstanceSettings
from runtime.errors import UnfitError
from runtime.options import VIRTUAL, RunOptions
from runtime.schedule import Schedule, Step

if TYPE_CHECKING:
    from compiler.plan.rules.datapath_fit import Misfit

_FIRST_KERNEL = (5, 19)  # SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV


def check(plan: Plan, options: RunOptions) -> None:
    """Raises UnfitError where they cannot be."""
    failure = capabilities.power_failure(plan)
    if failure is not None:
        if options.time != VIRTUAL:
            message = f"{failure} in real time: this machine's disk is that of all programs"
            raise UnfitError(failure, message, "add --time virtual, or write `crash` alone")
        _check_own(failure, plan, watched(plan), "is it known what was synced")
    fault = capabilities.disk_fault(plan)
    if fault is not None:
        if options.time != VIRTUAL and (why := _lacking(platform.machine(), platform.release())):
            raise UnfitError(fault, f"{fault} in real time: {why}", "add --time virtual")
        _check_own(fault, plan, heard(plan), "are calls heard")


def _lacking(processor: str, kernel: str) -> str:
    """Why this machine's kernel tells nobody what programs ask of files; '' if it does."""
    if processor != "x86_64":
        return f"system calls of {processor} are not known"
    found = re.match(r"([0-9]+)\.([0-9]+)", kernel)
    if found is None or tuple(map(int, found.groups())) < _FIRST_KERNEL:
        first = ".".join(map(str, _FIRST_KERNEL))
        return f"that needs Linux {first} (seccomp), and this is {kernel}"
    return ""


def _check_own(found: Misfit, plan: Plan, wanted: Iterable[str], known: str) -> None:
    topology, names = plan.topology, frozenset(wanted)
    for node in topology.nodes:
        service = topology.services[node.service] if node.is_instance else None
        if service is None or node.name not in names:
            continue
        what, hint = _elsewhere(service)
        if what:
            message = f"{found}: {service.name} has {what}, and only of files in an instance's own"
            raise UnfitError(found, f"{message} directory {known}", hint)


def _elsewhere(service: Service) -> tuple[str, str]:
    """By what programs of a service have files that are not in their instance's own directory, and
    what to do; '' if they have none."""
    if service.fs == PRIVATE or (service.image and not service.exec):
        what = "fs=private" if service.fs == PRIVATE else "an image"
        return what, "state exec= without fs=private, and keep data in the folder that it begins in"
    if service.cwd:
        return f"cwd={service.cwd}", "leave cwd= out: programs begin in their instance's directory"
    for mount in service.mounts:
        if not mount.read_only:
            what = f"mount={mount.source}:{mount.target}"
            return what, f"write {what}:ro, and keep data in the folder that the program begins in"
    return "", ""


def watched(plan: Plan) -> frozenset[str]:
    """Instances whose power may fail: those of events, and all where a `when` has one."""
    if _in_a_when(plan, capabilities.FAILS_POWER):
        return _all(plan)
    return frozenset(event.target for event in plan.events if "power_seed" in event.args)


def heard(plan: Plan) -> Mapping[str, str]:
    """Instances whose disk may have a fault, in the same way, or whose power may fail, and what is
    heard of their programs for that: one of HEARD."""
    found = dict.fromkeys(watched(plan), WRITES_HEARD)
    if _in_a_when(plan, capabilities.SETS_DISK):
        every = CALLS_HEARD if _in_a_when(plan, capabilities.FAILS_CALLS) else WRITES_HEARD
        found |= dict.fromkeys(_all(plan), every)
    for event in plan.events:
        if event.kind == "disk":
            found[event.target] = max(found.get(event.target, NOT_HEARD), _needs(event), key=_more)
    return found


def _in_a_when(plan: Plan, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(one.text) for one in plan.topology.reactions)


def _all(plan: Plan) -> frozenset[str]:
    return frozenset(node.name for node in plan.topology.nodes if node.is_instance)


def _needs(event: Event) -> str:
    return CALLS_HEARD if event.args["fault"] == "error" else WRITES_HEARD


def _more(heard: str) -> int:
    return HEARD.index(heard)


def unwatched(events: Iterable[Event], instances: Mapping[str, Instance]) -> tuple[str, str]:
    """Why these new events cannot be, and what to write into the experiment; '' if they can."""
    for event in events:
        one = instances.get(event.target)
        if one is None:
            continue
        if "power_seed" in event.args and not one.can_lose_power:
            what = f"what {event.target} has synced is not known, since the experiment has no"
            return f"{what} `crash power` of it", f"at 9s {event.target} crash power"
        if event.kind == "disk" and _more(one.heard) < _more(_needs(event)):
            error = event.args["fault"] == "error"
            text = f"set disk={'error' if error else ''}".rstrip()
            what = f"what {event.target} asks of its disk is not heard, since the experiment has no"
            example = f"at 9s {event.target} set disk={'error:1%' if error else 'ok'}"
            return f"{what} `{text}` of it", example
    return "", ""


class InstanceDisks:
    """Those with a fault."""

    def __init__(self, schedule: Schedule) -> None:
        self._settings = InstanceSettings("disk", schedule.disks)

    def take_effect(
        self, step: Step, begun: Mapping[str, Incarnation], instances: Mapping[str, Instance]
    ) -> None:
        """What a step says of disks, and the disks of lives that begin with it."""
        for name, incarnation, event in self._settings.of_step(step, begun, instances):
            instances[name].set_disk(incarnation, event.args)
