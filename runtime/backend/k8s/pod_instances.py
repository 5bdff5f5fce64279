"""An instance that is a pod: started and ended by the agent of its node, which says what it did and
what the pod's tstorm-hold reports (docs/agent.md, Lives). Nothing is ordered here; what the runner
of the timeline asks for is waited for.

Each join that was carried out has one answer of tstorm-hold: `started`, `failed`, or `ignored`. So
the n-th answer belongs to the n-th join, however long reports take. Behind a gate nobody reports a
start; there it is when the API server says that the container runs.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from compiler.plan.event_kinds import PROCESS_KINDS, SIGNALS
from compiler.plan.types import Node
from runtime import say
from runtime.backend.base import Log, OnEnded, OnKilled
from runtime.backend.instance import (
    Incarnation,
    Instance,
    Joined,
    Left,
    ProgramEnd,
)
from runtime.backend.k8s.kubeletready import KubeletReadiness
from runtime.backend.k8s.pods import INSTANCE, Pod
from runtime.coordinator.says import HoldReport, InstanceReport

START_SECONDS = 30.0  # for the report of a start; what takes longer is told as an error
GATE_SECONDS = 300.0  # for kubelet to start a container; it delays those that ended before
UNNUMBERED = ("gone", "released")  # said by the agent, not by tstorm-hold
LATER = ("started", "ready", "not_ready", "failed", "ended")  # than a join
RAN_ALREADY = "it ran already"
NOTED = ("setup", "set_up", "ready", "not_ready")
LET_GO = "it was ended before its program ran"  # tstorm-hold's words, too


@dataclass(frozen=True, slots=True)
class InstanceCallbacks:
    """Who is told what happens to an instance without being asked for."""

    on_ended: OnEnded
    on_killed: OnKilled
    record: Log
    warn: Callable[[str], None]


class PodInstance(Instance):
    """See runtime.backend.instance (Instance). `held`: a tstorm-hold keeps its program; else a gate
    lets its containers start. `t0_ns` is asked for when times since T0 are to be turned into ours.
    `ready_timeout_ns`: for kubelet to say that a program behind a gate is ready; 0: nobody asks.

    What is told belongs to the join that was told before it, not to `present`: who is late in
    asking for joins finds all that happened to them since.

    A program may have been started before T0 (runtime.backend.k8s.cluster_early_starts): what is
    told of it before the first join is told waits for that."""

    def __init__(
        self,
        index: int,
        node: Node,
        argv: tuple[str, ...],
        held: bool,
        t0_ns: Callable[[], int],
        hearers: InstanceCallbacks,
        ready_timeout_ns: int = 0,
    ) -> None:
        super().__init__(node)
        self.index = index
        self._argv = argv
        self.held = held
        self._t0_ns = t0_ns
        self._hearers = hearers
        self._loop = asyncio.get_running_loop()
        self._expected: deque[Incarnation] = deque()  # no join of theirs is told yet
        self._unasked: deque[Incarnation] = deque()  # told, and asked for by nobody yet
        self._done: dict[str, asyncio.Queue[int]] = {
            kind: asyncio.Queue() for kind in PROCESS_KINDS
        }
        self._unanswered: deque[Incarnation] = deque()  # joins without the answer of tstorm-hold
        self._said: set[tuple[int, str]] = set()  # a resumed agent may do a step a second time
        self._next_line = 0
        self._setting_up = False
        self._began_ns = 0  # its setup or program, since T0
        self._asked = ""  # how the present program was asked to end: leave | crash
        self._current: Incarnation | None = None  # told last, and not told yet to end
        self._leaving: Incarnation | None = None
        self._joined = False  # once at least
        self._early: list[HoldReport] = []  # before the first join is told
        self._ran_early_ns = 0  # behind a gate
        self._readiness: KubeletReadiness | None = None
        if ready_timeout_ns and not held:
            self._readiness = KubeletReadiness(
                node.name, ready_timeout_ns, t0_ns, hearers.record, hearers.warn
            )

    def now_at(self, addresses: tuple[str, str]) -> None:
        """IPv4 and IPv6 of its pod, '' for one that it has not: the plan's are not used here."""
        ipv4, ipv6 = addresses
        self.node = replace(self.node, ipv4=ipv4, ipv6=ipv6)

    # -- what the runner of the timeline asks ---------------------------------------------------

    @property
    def argv(self) -> tuple[str, ...]:
        return self._argv

    def prepare(self) -> asyncio.Future[Any]:
        """Its pod is there already."""
        made: asyncio.Future[Any] = self._loop.create_future()
        made.set_result(None)
        return made

    async def next_incarnation(self) -> Incarnation:
        return self._incarnation(self._unasked, self._expected)

    def _incarnation(self, known: deque[Incarnation], unknown: deque[Incarnation]) -> Incarnation:
        """The oldest that is known to the other side, which asks for it or tells of it; else a new
        one, unknown to that side."""
        if known:
            return known.popleft()
        unknown.append(Incarnation(self.node.name, self.index))
        return unknown[-1]

    def hold(self, life: Incarnation, gate: int) -> None:
        """Its agent starts it with the step by itself."""

    async def arrive(self, life: Incarnation, _opened_ns: int = 0) -> int:
        at_ns = await asyncio.shield(life.arrived)
        self.present = life
        return at_ns

    async def start(self, life: Incarnation) -> Joined:
        """A setup before its program takes as long as it takes."""
        seconds = START_SECONDS if self.held else GATE_SECONDS
        while True:
            try:
                joined = await asyncio.wait_for(asyncio.shield(life.joined), seconds)
                break
            except TimeoutError:
                if not self._setting_up and not life.joined.done():
                    why = "nobody has reported that its program runs"
                    return Joined(life.arrived.result(), None, why, unheard=True)
        if self.present is life and joined.error == LET_GO:
            self.present = None
        return joined

    async def leave(self) -> Left:
        at_ns = await self._done["leave"].get()
        life, self.present = self.present, None
        return Left(at_ns, life)

    async def crash(self) -> int:
        at_ns = await self._done["crash"].get()
        self.present = None
        return at_ns

    async def _signal(self, kind: str) -> int:
        return await self._done[kind].get()

    # -- what is said of it ---------------------------------------------------------------------

    def lived(self, life: InstanceReport) -> None:
        """Its agent has carried out a process event."""
        if (life.step, life.what) in self._said:
            return
        self._said.add((life.step, life.what))
        at_ns = self._t0_ns() + life.elapsed_ns
        if life.what == "join":
            self._ordered_to_join(at_ns, life.status)
            return
        if life.what in SIGNALS:
            if life.status:
                self._hearers.warn(f"{self.node.name}: {life.what} was not possible: {life.status}")
            elif life.what == "kill":
                self.dead = True
            self._done[life.what].put_nowait(at_ns)
            return
        ending, self._current = self._current, None
        self._done[life.what].put_nowait(at_ns)
        if life.status:
            _over(ending)  # nobody is there to say goodbye
            return
        self._asked = life.what
        self._let_go_unstarted()
        if life.what == "leave":
            self._leaving = ending

    def _ordered_to_join(self, at_ns: int, refused: str) -> None:
        life = self._current = self._incarnation(self._expected, self._unasked)
        self._arrived()
        life.arrived.set_result(at_ns)
        if refused:
            _joined(life, None, refused, unheard=True)
        else:
            self._unanswered.append(life)
        first, self._joined = not self._joined, True
        if first and not refused:
            self._began_early()

    def _began_early(self) -> None:
        """What was told of a program that was started before T0."""
        early, self._early = self._early, []
        for report in early:
            self._take(report)
        if self._ran_early_ns:
            self._container_runs(self._ran_early_ns)
        if self._readiness is not None:
            self._readiness.begin()

    def _let_go_unstarted(self) -> None:
        """Behind a gate nobody answers any more; tstorm-hold answers before it ends a program."""
        while self._unanswered and not self.held:
            _joined(self._unanswered.popleft(), None, LET_GO)

    def reported(self, report: HoldReport) -> None:
        """A report of its tstorm-hold, or that it has ended."""
        event = report.event
        if event == "gone":
            self._hold_gone("its first process (tstorm-hold) is dead")
        if event in UNNUMBERED or report.line < self._next_line:
            return
        self._next_line = report.line + 1
        if event in LATER and not self._joined:
            self._early.append(report)
        else:
            self._take(report)

    def _take(self, report: HoldReport) -> None:
        event = report.event
        if event in NOTED:
            self._note(report)
        elif (
            event == "started" or event == "failed" or (event, report.order) == ("ignored", "join")
        ):
            self._answered(report)
        elif event == "ended":
            self._program_ended(ProgramEnd(-1 if report.signal else report.status, report.signal))
        elif event in ("left", "crashed") or (event, report.order) == ("ignored", "leave"):
            self._empty()

    def _answered(self, report: HoldReport) -> None:
        if not self._unanswered:
            return
        life = self._unanswered.popleft()
        if report.event == "started":
            self._asked, self.started, self._began_ns = "", True, report.elapsed_ns
            _joined(life, self._t0_ns() + report.elapsed_ns)
        elif report.event == "failed":
            _joined(life, None, report.error)
        else:
            _joined(life, None, RAN_ALREADY, unheard=True)

    def _note(self, report: HoldReport) -> None:
        """What it does beside its lives."""
        at_ns, name = report.elapsed_ns, self.node.name
        if report.event == "setup":
            self._setting_up, self._began_ns = True, at_ns
            return
        took_ns = at_ns - self._began_ns
        record = {"target": name, "applied_ns": at_ns, "took_ns": took_ns}
        if report.event == "set_up":
            self._setting_up = False
            how = {"error": report.error} if report.error else {"status": report.status}
            how = {"signal": report.signal} if report.signal else how
            self._hearers.record({"kind": "setup", **record, **how})
        elif report.event == "ready":
            self._hearers.record({"kind": "ready", **record, "ready_ns": at_ns})
        else:
            reason = f"not within {say.digits(took_ns / 1e9)} s (ready-timeout=)"
            self._hearers.record({"kind": "not_ready", **record, "reason": reason})
            self._hearers.warn(f"{name} is not ready: {reason}")

    def _program_ended(self, ended: ProgramEnd) -> None:
        """A crash ends all of it at once, which is no news of its program (as locally)."""
        if self._asked == "crash":
            return
        if not self._asked:
            self.ended = ended
        self._hearers.on_ended(self, ended, bool(self._asked) or self.dead, "")

    def _empty(self) -> None:
        _over(self._leaving)
        self._leaving, self._asked = None, ""

    def _hold_gone(self, what: str) -> None:
        """All of its container is dead. Behind a gate its end is what lets the program start."""
        if not self.held:
            return
        self._setting_up = False
        while self._unanswered:
            _joined(self._unanswered.popleft(), None, what)
        there, asked = self._current is not None, self._asked
        self._empty()
        if there and not asked and not self.killed:
            self.killed = True
            self._hearers.on_killed(self, what)

    # -- what the API server says of its pod ----------------------------------------------------

    def changed(self, before: Pod | None, after: Pod) -> None:
        """Its container has started or ended."""
        was = before.containers.get(INSTANCE) if before is not None else None
        now = after.containers.get(INSTANCE)
        if now is None or self.held:
            return
        ran = was is not None and was.state == "running"
        if self._readiness is not None:
            self._readiness.changed(was, now)
        if now.state == "running" and self._unanswered:
            self._container_runs(time.monotonic_ns())
        elif now.state == "running" and not self._joined and not self._ran_early_ns:
            self._ran_early_ns = time.monotonic_ns()
        again = was is not None and now.restarts > was.restarts
        if ran and (now.state != "running" or again):
            ended = ProgramEnd(-1 if now.signal else now.status, now.signal)
            if self._asked != "crash":
                self._program_ended(ended)
            self._empty()

    def _container_runs(self, at_ns: int) -> None:
        self.started, self._asked = True, ""
        _joined(self._unanswered.popleft(), at_ns)


def _joined(
    life: Incarnation, started_ns: int | None, error: str = "", *, unheard: bool = False
) -> None:
    life.joined.set_result(Joined(life.arrived.result(), started_ns, error, unheard=unheard))


def _over(life: Incarnation | None) -> None:
    if life is not None and not life.gone.done():
        life.gone.set_result(None)
