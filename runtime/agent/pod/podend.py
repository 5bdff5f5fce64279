"""Ends an instance whose program is not known: all processes of its pod, the sandbox included.

kubelet then makes the pod's containers anew, the gate first, which holds the instance until it
joins again. That takes kubelet at least half a second, and nothing that came later is signalled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress

from runtime.agent.pod.podprocesses import Census, Member, pod_of_process, status_of

GRACE_SECONDS = 5.0  # from SIGTERM to SIGKILL, as in a local run
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


async def leave(uid: str, pods: Census) -> str:
    """SIGTERM to all but the sandbox, which keeps the network; SIGKILL to what is left of them
    after the grace, and to the sandbox when it is alone."""
    loop = asyncio.get_running_loop()
    group = _without_sandbox(await _look(uid, pods))
    end = loop.time() + GRACE_SECONDS
    refused = _signal(group, uid, pods.wanted(), signal.SIGTERM)
    while group and not refused and loop.time() < end:
        await asyncio.sleep(LOOK_SECONDS)
        group = _without_sandbox(await _look(uid, pods))
    return refused or await crash(uid, pods)


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
