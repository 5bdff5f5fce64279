"""Starts and ends the programs of this host's own instances, where a tstorm-hold keeps each of them
(docs/hold.md): a step that has taken effect here is carried out here, and said.

Nothing happens for instances of which no process was told: in a local run that are all, since the
nursery starts and ends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from runtime.agent.pod import names, podprocesses
from runtime.agent.pod.hold import ORDERS, Hold
from runtime.agent.pod.podprocesses import Kept, Member, NotFoundError
from runtime.agent.pod.reach import reach
from runtime.agent.process.orders import OrderError, Probe
from runtime.schedule import Schedule

Say = Callable[[Mapping[str, object]], None]
PROBES_AT_ONCE = 16


class HeldPrograms:
    """Nodes are the plan's: `own` are this host's, by name. `elapsed` is ns since T0."""

    def __init__(self, own: Mapping[str, int], elapsed: Callable[[], int], say: Say) -> None:
        self._own = own
        self._elapsed = elapsed
        self._say = say
        self._holds: dict[int, Hold] = {}
        self._pods: dict[int, str] = {}  # node -> UID of its pod
        self._kept: dict[int, Kept] = {}
        self._hosts = ""  # lines for /etc/hosts

    # -- where programs are -----------------------------------------------------------------------

    async def find(self, wanted: Mapping[int, str], hosts: str) -> dict[str, object]:
        """Looks for the pods of these nodes, and writes the names into their /etc/hosts. The answer
        to `pods` (docs/agent.md). Raises MachineError."""
        self._pods.update(wanted)
        self._hosts = hosts
        groups = await asyncio.to_thread(podprocesses.members, set(wanted.values()))
        found: list[tuple[int, int, int, str]] = []
        missing: list[tuple[int, str]] = []
        for node, uid in sorted(wanted.items()):
            try:
                kept = self._kept[node] = self._prepared(groups[uid])
            except NotFoundError as error:
                missing.append((node, str(error)))
            else:
                found.append((node, kept.hold, kept.network, kept.kind))
        return {"found": found, "missing": missing}

    def _prepared(self, group: Iterable[Member]) -> Kept:
        kept = podprocesses.kept(group)
        if kept.kind == "run" and self._hosts:
            try:
                names.write(kept.hold, self._hosts)
            except OSError as error:
                reason = error.strerror or str(error)
                raise NotFoundError(f"its /etc/hosts cannot be written: {reason}") from error
        return kept

    async def reach(self, probes: Iterable[Probe]) -> list[tuple[int, str, int, list[int]]]:
        """The answers to `reach` (docs/agent.md). Raises RunError."""
        room = asyncio.Semaphore(PROBES_AT_ONCE)

        async def one(probe: Probe) -> tuple[int, str, int, list[int]]:
            kept = self._kept.get(probe.node)
            if kept is None:
                raise OrderError(f"no pod of node {probe.node} was found")
            async with room:
                times_ns = await reach(kept.network, probe)
            return probe.node, probe.address, probe.count, times_ns

        return list(await asyncio.gather(*map(one, probes)))

    def know(self, processes: Mapping[int, int]) -> None:
        """From now on these nodes' programs are kept by these processes. OrderError if one of them
        does not take orders; then nothing has changed."""
        opened: dict[int, Hold] = {}
        try:
            for node, pid in sorted(processes.items()):
                opened[node] = Hold(pid, node)
        except OrderError:
            _close(opened.values())
            raise
        _close(self._holds.pop(node) for node in opened if node in self._holds)
        self._holds.update(opened)

    # -- what the timeline asks -------------------------------------------------------------------

    def carry_out(self, timeline: Schedule, step: int) -> None:
        """What is asked of own instances with this step, in the order of its events."""
        if not self._holds:
            return
        there = sorted(timeline.present) if step == 0 else ()
        asked = [*(("join", name) for name in there)]
        asked += [(event.kind, event.target) for event in timeline.steps[step].events]
        for what, name in asked:
            if what in ORDERS and name in self._own:
                self._say(
                    {
                        "say": "life",
                        "step": step,
                        "node": self._own[name],
                        "what": what,
                        "status": self._order(self._own[name], what),
                        "elapsed_ns": self._elapsed(),
                    }
                )

    def _order(self, node: int, what: str) -> str:
        hold = self._holds.get(node)
        return hold.order(what) if hold else "nobody has told which process keeps it"

    async def finish(self) -> list[int]:
        """Has every program leave. Returns the nodes that still run something after the grace."""
        for _, hold in sorted(self._holds.items()):
            hold.order("leave")
        return []

    def close(self) -> None:
        _close(self._holds.values())
        self._holds.clear()


def _close(holds: Iterable[Hold]) -> None:
    for hold in holds:
        hold.close()
