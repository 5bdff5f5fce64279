"""Starts and ends the programs of this host's own instances, where a tstorm-hold keeps each of them
(docs/hold.md): a step that has taken effect here is carried out here, and said.

Nothing happens for instances of which no process was told: in a local run that are all, since the
nursery starts and ends them.

An order to a tstorm-hold that is there is given at once. What takes longer goes on beside: a
container that has ended is looked for again when its instance joins, and an instance behind a gate,
whose program nobody knows, is ended by ending its pod. Orders of one instance stay in their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from runtime.agent.pod import hosts_file, podend, podprocesses
from runtime.agent.pod.container_files import ContainerFiles
from runtime.agent.pod.pod_echoes import reach
from runtime.agent.pod.podend import PodEnding
from runtime.agent.pod.podprocesses import Census, Kept, NotFoundError
from runtime.agent.pod.reports import Report
from runtime.agent.process.attachedports import network_at
from runtime.agent.process.held_program import ORDERS, HeldProgram, Hold
from runtime.agent.process.orders import (
    EchoProbe,
    InstanceOrder,
    OrderError,
    ResumeOrder,
)
from runtime.coordinator.says import AgentNotice, HoldReport, InstanceReport, Say
from runtime.errors import RunError
from runtime.schedule import Schedule

PROBES_AT_ONCE = 16
LOOK_SECONDS = 0.05  # between two looks at the reports
BACK_SECONDS = 60.0  # for a container to be there again
KILL_SECONDS = 1.0  # for what a tstorm-hold has killed to be gone
UNTOLD = "nobody has told which process keeps it"
UNATTACHED = "the coordinator has not told that its network is attached"
OVER = "the run is over"
LEFT_ALREADY = ("ignored", "leave")  # a report: nothing of it was running


@dataclass(frozen=True, slots=True)
class FoundPods:
    """Pods by node, and why the others were not found."""

    kept: dict[int, Kept]
    missing: dict[int, str]


class ProgramSupervisor:
    """Nodes are the plan's: `own` are this host's, by name, of which `gated` have no known program.
    `now` is CLOCK_MONOTONIC, `since` makes ns since T0 of such a time. `endings` of own nodes: how
    their programs are told to end, if otherwise than usual. `files`: who hears of theirs."""

    def __init__(
        self,
        own: Mapping[str, int],
        now: Callable[[], int],
        since: Callable[[int], int],
        say: Say,
        gated: Collection[int] = (),
        endings: Mapping[int, PodEnding] | None = None,
        files: ContainerFiles | None = None,
    ) -> None:
        self._own = own
        self._now = now
        self._since = since
        self._say = say
        self._gated = gated
        self._endings = endings or {}
        self._files = files
        self._hosts = ""  # lines for /etc/hosts
        self._programs: dict[int, HeldProgram] = {}
        self._told = asyncio.Event()  # of one at least
        self._over = asyncio.Event()  # nobody joins any more
        self._census = Census(self._uids)

    # -- where programs are -----------------------------------------------------------------------

    async def find(self, wanted: Mapping[int, str], hosts: str) -> FoundPods:
        """Looks for the pods of these nodes, and writes the names into their /etc/hosts. Raises
        MachineError."""
        self._hosts = hosts
        for node, uid in wanted.items():
            self._program(node).uid = uid
        groups = await self._census.look()
        found = FoundPods({}, {})
        for node, uid in sorted(wanted.items()):
            group = groups.get(uid, [])
            self._program(node).inside = group[0].pid if group else 0
            try:
                kept = self._furnished(group)
            except NotFoundError as error:
                found.missing[node] = str(error)
                continue
            found.kept[node] = kept
            program = self._program(node)
            program.kept, program.gated = kept, kept.kind == "gate"
        return found

    def _furnished(self, group: Iterable[podprocesses.Member]) -> Kept:
        """Who keeps the program of a pod with these processes; its container has the names."""
        kept = podprocesses.kept(group)
        if kept.kind == "run" and self._hosts:
            try:
                hosts_file.write(kept.hold, self._hosts)
            except OSError as error:
                reason = error.strerror or str(error)
                raise NotFoundError(f"its /etc/hosts cannot be written: {reason}") from error
        return kept

    async def reach(
        self, probes: Iterable[EchoProbe]
    ) -> list[tuple[int, str, int, tuple[int, ...]]]:
        """The answers to `reach` (docs/agent.md). Raises RunError."""
        room = asyncio.Semaphore(PROBES_AT_ONCE)

        async def one(probe: EchoProbe) -> tuple[int, str, int, tuple[int, ...]]:
            kept = self._program(probe.node).kept
            if kept is None:
                raise OrderError(f"no pod of node {probe.node} was found")
            async with room:
                times_ns = await reach(kept.network, probe)
            return probe.node, probe.address, probe.echoes, tuple(times_ns)

        return list(await asyncio.gather(*map(one, probes)))

    def networks_of(self, nodes: Iterable[int]) -> dict[int, int]:
        """A process in the network of each, of those whose pods were found: also behind a gate that
        is open, where nothing takes orders any more."""
        found = {node: self._program(node).inside for node in nodes}
        return {node: pid for node, pid in found.items() if pid}

    def know(self, processes: Mapping[int, int]) -> None:
        """From now on these nodes' programs are kept by these processes. OrderError if one of them
        does not take orders; then nothing has changed."""
        opened: dict[int, Hold] = {}
        try:
            for node, pid in sorted(processes.items()):
                opened[node] = Hold(pid, node)
        except OrderError:
            for hold in opened.values():
                hold.close()
            raise
        for node, hold in opened.items():
            self._take(node, hold)
            self._program(node).network = podprocesses.network_of(hold.pid)
            self._told.set()

    def detached(self, network: str) -> None:
        """What is in this network is not shaped: nobody joins there until the coordinator has told
        again who keeps its program."""
        for program in self._programs.values():
            if program.network == network:
                program.network = ""

    async def networks(self, wanted: Mapping[int, str]) -> dict[int, str]:
        """Paths of the networks in which the pods of these nodes are now, of those that are in
        any. Raises MachineError."""
        for node, uid in wanted.items():
            self._program(node).uid = uid
        groups = await self._census.look()
        found = {node: groups[uid][0].pid for node, uid in wanted.items() if groups.get(uid)}
        return {node: f"/proc/{pid}/ns/net" for node, pid in found.items()}

    async def restore(self, resume: ResumeOrder, attached: Collection[str]) -> None:
        """For an agent that takes another one's place: what has gone meanwhile is no error. Of a
        network that came since, or is not `attached`, the coordinator is still to tell."""
        if not resume.pods:
            return
        found = await self.find(resume.pods, resume.hosts)
        if self._files is not None:
            lost = "files that changed while no agent was there were not heard of"
            self._say(AgentNotice(f"{lost}: a `when file` may have missed them"))
        self._told.set()
        for node in found.missing:
            self._program(node).gated = node in self._gated
        told = {network_at(port.netns) for port in resume.ports}
        for node, kept in found.kept.items():
            if kept.space not in attached:
                continue
            if kept.space in told or kept.hold == resume.lives.get(node):
                with suppress(OrderError):  # it has ended in this moment
                    self.know({node: kept.hold})

    def _program(self, node: int) -> HeldProgram:
        return self._programs.setdefault(node, HeldProgram())

    def _ending(self, node: int) -> PodEnding:
        return self._endings.get(node, podend.DEFAULT)

    def _uids(self) -> set[str]:
        """All that are known: processes count to the outermost of their pods."""
        return {program.uid for program in self._programs.values() if program.uid}

    def _take(self, node: int, hold: Hold) -> None:
        program = self._program(node)
        if program.hold is not None:
            program.hold.close()
        program.hold, program.gone = hold, False
        if program.gated:
            return
        try:
            program.reports.open(hold.pid)
        except OSError as error:
            self._warn(node, f"cannot be read: {error.strerror or error}")
        if self._files is not None:
            self._files.open(node, hold.pid)

    def do_early(self, waits: Mapping[int, str]) -> dict[int, tuple[bool, str]]:
        """Begins what is asked of these nodes before the start, once; whether it is over, and why
        it failed."""
        found = {}
        for node, wait in waits.items():
            program = self._program(node)
            program.begin_early(wait, self._now())
            found[node] = program.look_early(self._now)
        return found

    # -- what the timeline asks -------------------------------------------------------------------

    def carry_out(self, schedule: Schedule, step: int) -> None:
        """What is asked of own instances with this step, in the order of its events."""
        if self._over.is_set() or not self._told.is_set():
            return
        begun = {node for node, one in self._programs.items() if step == 0 and one.joined_early}
        there = sorted(schedule.present) if step == 0 else ()
        asked = [*(("join", name) for name in there)]
        asked += [(event.kind, event.target) for event in schedule.steps[step].events]
        for what, name in asked:
            if what == "join" and self._own.get(name) in begun:
                self._lived(step, self._own[name], what, "", self._now())
            elif what in ORDERS and name in self._own:
                self._carry_out(step, self._own[name], what)
        for name in sorted(schedule.held.keys() & self._own.keys()) if step == 0 else ():
            self._hold_from_the_start(name, schedule.held[name])

    def _hold_from_the_start(self, name: str, kind: str) -> None:
        """A run that begins after a pause or a kill; no event of it says so."""
        program = self._program(self._own[name])
        refused = "its program is not known" if program.gated else "there is no tstorm-hold"
        if program.hold is not None and not program.gated:
            refused = program.hold.order(kind)
        if refused:
            self._say(AgentNotice(f"no {kind} of {name} at the start: {refused}"))

    def carry_out_again(self, orders: Iterable[InstanceOrder]) -> None:
        """What an agent before this one may not have done. A tstorm-hold ignores what is so already
        (a gate a leave, too), and in a pod of which all has ended nothing is left to end."""
        own = self._own.values()
        for order in orders:
            if order.node in own:
                self._carry_out(order.step, order.node, order.what)

    def _carry_out(self, step: int, node: int, what: str) -> None:
        program, at_ns = self._program(node), self._now()
        busy = program.task is not None and not program.task.done()
        if program.hold is not None and (not program.uid or (program.there and not busy)):
            self._lived(step, node, what, program.hold.order(what), at_ns)
        elif not program.uid:
            self._lived(step, node, what, UNTOLD, at_ns)
        else:
            before, program.task = program.task, None
            if before is not None and program.asked == "join" and what != "join":
                before.cancel()
            program.asked = what
            acting = self._act(before, step, node, what)
            program.task = asyncio.get_running_loop().create_task(acting)

    def _lived(self, step: int, node: int, what: str, status: str, at_ns: int) -> None:
        self._say(InstanceReport(step, node, what, self._since(at_ns), status))

    async def _act(
        self, before: asyncio.Task[None] | None, step: int, node: int, what: str
    ) -> None:
        """What cannot be done at once, after what was asked before."""
        program = self._program(node)
        status = "it was to end before its container was back"
        try:
            if before is not None:
                await asyncio.wait({before})
            if self._over.is_set() and what == "join":
                status = OVER
            elif program.hold is not None and program.hold.alive():
                status = program.hold.order(what)
            elif what == "join":
                status = await self._join_again(node)
            elif not program.gated:
                status = "nothing of it was running: its container had ended"
            else:
                ending = self._ending(node)
                status = await podend.carry_out(what, program.uid, self._census, ending)
        except RunError as error:
            status = error.message
        finally:
            self._lived(step, node, what, status, self._now())

    async def _join_again(self, node: int) -> str:
        """Orders the join to the container that the engine has made in place of one that ended: at
        once where its network has stayed, else when the coordinator has told of it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + BACK_SECONDS
        program, reason = self._program(node), ""
        while not self._over.is_set():
            if reason != UNATTACHED:
                reason = await self._look_again(node)
            if self._over.is_set():
                break
            if program.hold is not None and program.hold.alive():
                return program.hold.order("join")
            if loop.time() > end:
                return f"its container was not back in {BACK_SECONDS:.0f} s: {reason}"
            await asyncio.sleep(LOOK_SECONDS)
        return OVER

    async def _look_again(self, node: int) -> str:
        """'' if its container is there again, in the network in which it may join; else why not."""
        program = self._program(node)
        found = await self.find({node: program.uid}, self._hosts)
        if node in found.missing:
            return found.missing[node]
        if found.kept[node].space != program.network:
            return UNATTACHED
        try:
            self._take(node, Hold(found.kept[node].hold, node))
        except OrderError as error:  # it has ended in this moment
            return error.message
        return ""

    # -- what they report -------------------------------------------------------------------------

    async def watch(self) -> None:
        """Says what is reported, from T0 on."""
        await self._told.wait()
        if self._files is not None:
            self._files.begin()
        while True:
            self._look()
            await asyncio.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        for node, program in self._programs.items():
            self._look_at(node, program)

    def _look_at(self, node: int, program: HeldProgram) -> None:
        for report in program.reports.read(self._now):
            self._reported(node, report)
            program.left |= report.event == "left" or (report.event, report.order) == LEFT_ALREADY
        if program.reports.over:
            self._warn(node, "are longer than any that are read to the end")
        elif program.reports.odd:
            self._warn(node, "have lines that a tstorm-hold does not write")
        if program.hold is not None and not program.gone and not program.hold.alive():
            program.gone = True
            if self._files is not None:
                self._files.close_one(node)
            event = "released" if program.gated else "gone"
            self._reported(node, Report(0, event, self._now()))

    def _reported(self, node: int, report: Report) -> None:
        said = HoldReport(
            node,
            report.line,
            report.event,
            self._since(report.at_ns),
            report.pid,
            report.status,
            report.signal,
            report.program,
            report.error,
            report.order,
        )
        self._say(said)

    def _warn(self, node: int, words: str) -> None:
        program = self._program(node)
        if not program.warned:
            program.warned = True
            name = next(name for name, own in self._own.items() if own == node)
            self._say(AgentNotice(f"the reports of {name} {words}"))

    # -- the end ----------------------------------------------------------------------------------

    async def finish(self) -> list[int]:
        """Has every program leave, and none join from now on. Returns the nodes that still run
        something after the grace. What the others report of their ends has been said by then."""
        self._over.set()
        ends = {}
        for node, program in sorted(self._programs.items()):
            if program.task is not None:
                program.task.cancel()
            if program.hold is not None and program.hold.alive():
                program.left = False
                program.hold.order("leave")
                ends[node] = self._until_left(node, program, program.hold)
            elif program.gated and program.uid:
                ends[node] = podend.leave(program.uid, self._census, self._ending(node))
        results = await asyncio.gather(*ends.values(), return_exceptions=True)
        self._look()
        return [node for node, result in zip(ends, results, strict=True) if result]

    async def _until_left(self, node: int, program: HeldProgram, hold: Hold) -> str:
        """'' as soon as nothing runs under it, and it has said so. Without its word, nothing that
        runs may also be a program that is about to start, or one whose end is not reported yet."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._ending(node).whole_seconds + KILL_SECONDS
        while True:
            idle = hold.idle()
            self._look_at(node, program)
            late = loop.time() > end
            if idle and (late or program.left or not hold.alive() or not program.reports.readable):
                return ""
            if late:
                return "it still runs something"
            await asyncio.sleep(LOOK_SECONDS)

    def close(self) -> None:
        if self._files is not None:
            self._files.close()
        for program in self._programs.values():
            program.close()
        self._programs.clear()
