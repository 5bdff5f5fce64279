"""Ends an instance whose program is not known: all processes of its pod, the sandbox included. Or
pauses it: all but the sandbox.

kubelet then makes the pod's containers anew, the gate first, which holds the instance until it
joins again. That takes kubelet at least half a second, and nothing that came later is signalled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from compiler.plan.event_kinds import SIGNALS
from compiler.plan.types import DEFAULT_GRACE_NS, Service, Topology
from runtime.agent.pod.podprocesses import Census, Member, pod_of_process, status_of

# How long the programs of services may take to end, and by which signal they are told.

SPARE_SECONDS = 1.0  # what outlives a program has it to end, and tstorm-hold to say so


@dataclass(frozen=True, slots=True)
class PodEnding:
    stop: signal.Signals = signal.SIGTERM
    grace_seconds: float = DEFAULT_GRACE_NS / 1e9

    @property
    def whole_seconds(self) -> float:
        """Until nothing is left."""
        return self.grace_seconds + SPARE_SECONDS


def ending_of(service: Service) -> PodEnding:
    stop = signal.Signals[service.stop] if service.stop else signal.SIGTERM
    return PodEnding(stop, (service.grace_ns or DEFAULT_GRACE_NS) / 1e9)


def longest_seconds(topology: Topology) -> float:
    """Of all services."""
    return max((ending_of(service).whole_seconds for service in topology.services), default=0.0)


DEFAULT = PodEnding()
LOOK_SECONDS = 0.02
KILL_SECONDS = 0.3  # from the first SIGKILL on, for processes that were started meanwhile


async def crash(uid: str, pods: Census) -> str:
    """SIGKILL to all processes of one of this host's pods, once at least. '' when nothing is left,
    else why."""
    loop = asyncio.get_running_loop()
    group = await _look(uid, pods)
    if not group:
        return "nothing of it was running"
    end = loop.time() + KILL_SECONDS
    while True:
        refused = _signal(group, uid, pods.wanted(), signal.SIGKILL)
        if refused:
            return refused
        await asyncio.sleep(LOOK_SECONDS)
        group = await _look(uid, pods)
        if not group:
            return ""
        if loop.time() > end:
            return f"process {group[0].pid} of its pod does not end"


async def leave(uid: str, pods: Census, ending: PodEnding = DEFAULT) -> str:
    """The stop signal to the first process of each container but the sandbox, which keeps the
    network; the rest of a container ends with it. SIGKILL to what is left after the grace, and to
    the sandbox when it is alone."""
    loop = asyncio.get_running_loop()
    group = _without_sandbox(await _look(uid, pods))
    end = loop.time() + ending.grace_seconds
    first = [member for member in group if _is_first(member)] or group
    refused = _signal(first, uid, pods.wanted(), ending.stop)
    _signal(group, uid, pods.wanted(), signal.SIGCONT)  # else one that is paused does not see it
    while group and not refused and loop.time() < end:
        await asyncio.sleep(LOOK_SECONDS)
        group = _without_sandbox(await _look(uid, pods))
    return refused or await crash(uid, pods)


def _is_first(member: Member) -> bool:
    return status_of(member.pid).get("NSpid", "").split()[1:] == ["1"]


async def signal_all(uid: str, pods: Census, number: signal.Signals) -> str:
    """To all but the sandbox."""
    group = _without_sandbox(await _look(uid, pods))
    if not group:
        return "nothing of it was running"
    return _signal(group, uid, pods.wanted(), number)


async def carry_out(what: str, uid: str, pods: Census, ending: PodEnding) -> str:
    """`what` is any of event_kinds.PROCESS_KINDS but a join. '' if it is done, else why not."""
    if what in SIGNALS:
        return await signal_all(uid, pods, signal.Signals[SIGNALS[what]])
    ends: Mapping[str, Callable[[str, Census], Awaitable[str]]]
    ends = {"leave": partial(leave, ending=ending), "crash": crash}
    return await ends[what](uid, pods)


async def _look(uid: str, pods: Census) -> list[Member]:
    return (await pods.look()).get(uid, [])


def _without_sandbox(group: list[Member]) -> list[Member]:
    """CRI-O has none; the others have an eldest process of this name."""
    sandbox = bool(group) and status_of(group[0].pid).get("Name") == "pause"
    return group[1:] if sandbox else group


def _signal(
    group: Iterable[Member], uid: str, pods: Collection[str], number: signal.Signals
) -> str:
    """'' or why one of them could not be signalled."""
    for member in group:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(member.pid)
            try:
                if pod_of_process(member.pid, pods) == uid:  # and none that has its number since
                    signal.pidfd_send_signal(descriptor, number)
            except PermissionError as error:
                return f"process {member.pid} of its pod may not be signalled: {error.strerror}"
            finally:
                os.close(descriptor)
    return ""
