"""Changes the timeline of a run that goes on: `tstorm do` asks here, over the control socket.

Who asks compiles the action (compiler/extension.py) for a moment that is named here, and leaves the
longer plan beside that of the run; here it is read, compared with what is done already, and takes
the other's place: on the disk, at the network and at the timeline's runner, which carries out what
is new as it does all else. Until that instant nothing has changed, and from then on all of it is
planned: there is no half of an action, and a peer that goes away or sends nonsense changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan.format import HEADER, PlanError
from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan, decode, read_plan
from compiler.plan.storage import outdir, scratch
from compiler.plan.types import Event
from runtime.backend.base import Log, RunNetwork
from runtime.driver.timelinerunner import CONDITION, MANUAL, STAGE_AHEAD_NS, TimelineRunner
from runtime.errors import RunError, unwritten
from runtime.options import K8S, VIRTUAL, RunOptions
from runtime.rundir.runfiles import LONGER_PLAN, PLAN, PLANNED
from runtime.schedule import Schedule

GRID_NS = 1_000_000  # moments of actions are whole ms of plan time
MARGIN_NS = 50_000_000  # from when the network is asked for a step to its moment
LATE_NS = 10_000_000  # what a `when` does may be asked for so late
_SLACK_NS = 200_000_000  # more than it takes to find out that an action comes too late
LEAST_LEAD_NS, MOST_LEAD_NS = (
    100_000_000,
    8_000_000_000,
)  # less than who asks waits: not heard, not done
MOST_WAITING = 8
MOST_TEXT = 32768  # of an action in a record
_NAME = re.compile(r"\.do\.[0-9]{1,10}-[0-9]{1,10}\.tmp")

Follow = Callable[[Schedule], None]


def why_not(options: RunOptions) -> str:
    """Why a run with these options cannot be steered; '' if it can."""
    if options.time == VIRTUAL:
        return (
            "it has virtual time: such a run is the same each time since nothing comes in from"
            " outside, and a moment of yours is no moment of it"
        )
    if options.backend == K8S:
        return "it goes on in a cluster, whose hosts take no longer plan while they run"
    if options.hosts:
        return "it has --hosts, and their agents take no longer plan while they run"
    return ""


def check(options: RunOptions) -> None:
    """RunError."""
    if why := why_not(options):
        raise RunError(
            f"this run cannot be steered: {why}",
            "write the statement into the experiment (`at 30s …`) and run that, or run it in real"
            " time on this machine alone",
        )


@dataclass(frozen=True, slots=True)
class Fired:
    """The digest of the plan that is in force then, or why there is none: it is to be compiled
    `again` for a later moment, or it cannot be done."""

    digest: str
    again: str = ""
    refused: str = ""


class Steering:
    """`network` is None before time 0; `follow` is told of each new timeline."""

    def __init__(
        self,
        directory: Path,
        options: RunOptions,
        runner: TimelineRunner,
        network: Callable[[], RunNetwork | None],
        log: Log,
        follow: Follow,
    ) -> None:
        self._directory = directory
        self._options = options
        self._runner = runner
        self._network = network
        self._log = log
        self._follow = follow
        self._number = 0  # of the next action; of a run that nobody steers it is not known
        self._is_first = True
        self._busy = asyncio.Lock()
        self._waiting = 0

    def _running(self) -> RunNetwork:
        check(self._options)
        network = self._network()
        if network is None or not 0 < self._runner.t0_ns <= time.monotonic_ns():
            raise RunError("the run has not begun yet", "try again when it is at 0s")
        if self._runner.is_over or self._runner.is_ending:
            raise RunError("the run is ending", "nothing was changed")
        return network

    def moment(self, request: Mapping[str, Any]) -> dict[str, object]:
        """When an action can be carried out that is compiled in `lead_ns`: not before what has been
        asked for by then. RunError."""
        self._running()
        if not self._number:  # a replay has the actions of the run before
            known = self._runner.plan.attached.includes
            self._number = 1 + max(map(action_texts.number_of, known), default=0)
        lead_ns = min(max(int(request["lead_ns"]), LEAST_LEAD_NS), MOST_LEAD_NS)
        first_ns = self._runner.elapsed() + lead_ns
        horizon_ns = first_ns + STAGE_AHEAD_NS + _SLACK_NS
        schedule = self._runner.schedule
        if any(first_ns <= step.due_ns <= horizon_ns for step in schedule.steps):
            first_ns = horizon_ns
        at_ns = -(-schedule.clock.plan_time(first_ns) // GRID_NS) * GRID_NS
        if at_ns >= schedule.end_ns:
            raise RunError("the run is ending", "nothing was changed")
        return {"at_ns": at_ns, "number": self._number, "base": self._runner.plan.digest}

    async def do(self, request: Mapping[str, Any]) -> dict[str, object]:
        """Goes over to a longer plan. `again` in the answer: it came too late, and nothing was
        changed. RunError."""
        name, base, text = str(request["plan"]), str(request["base"]), str(request["text"])
        text, at_ns = text[:MOST_TEXT], int(request["at_ns"])
        if not _NAME.fullmatch(name):
            raise RunError("this is not the name of a plan that was left for the run")
        if self._waiting >= MOST_WAITING:
            raise RunError("too many ask at once", "try again")
        self._waiting += 1  # each may take seconds, and the run goes on
        try:
            async with self._busy:
                return await self._do(name, base, text, at_ns)
        finally:
            self._waiting -= 1

    async def _do(self, name: str, base: str, text: str, at_ns: int) -> dict[str, object]:
        self._running()
        if not self._number or base != self._runner.plan.digest:
            return {"again": "another action came first"}
        path, asked_ns = self._directory / name, self._runner.elapsed()
        plan, schedule = await asyncio.to_thread(self._read, path)
        joins = {name for step in schedule.steps for name in step.joins}
        for name in sorted(joins - self._runner.instances.keys()):
            raise RunError(
                f"{name} is never there in the plan of this run, so nothing was made for it",
                "write a join of it into the experiment, however late",
            )
        own = [event for event in plan.events if action_texts.number_of(event.file) == self._number]
        if own and (last_ns := max(event.at_ns for event in own)) > schedule.end_ns:
            message = f"{last_ns / 1e9:g} s is after the run's end (--until)"
            raise RunError(message, "nothing was changed")
        await asyncio.to_thread(self._put_in_place, path)
        if why := self._adopt(plan, schedule):  # from here on, or not at all
            await asyncio.to_thread(self._take_back, path)
            self._running()
            return {"again": why}
        number, self._number, self._is_first = self._number, self._number + 1, False
        at_ns = min((event.at_ns for event in own), default=at_ns)
        told = {"action": number, "text": text, "events": len(own), "planned_ns": at_ns}
        record = {"kind": "do", "target": "", "origin": MANUAL, "asked_ns": asked_ns, **told}
        self._log({**record, "applied_ns": self._runner.elapsed()})
        targets = [{"at_ns": e.at_ns, "kind": e.kind, "target": e.target} for e in own[:100]]
        return {"ok": {**told, "first": targets}}

    async def fire(self, offer: Mapping[str, Any], files: Mapping[str, bytes]) -> Fired:
        """Goes over to the longer plan that a `when` has led to (runtime/driver/reactions.py). It
        is in force when this returns, and not yet on the disk: that is for `keep`."""
        async with self._busy:
            if why := self._ending():
                return Fired("", refused=why)
            before, asked_ns = self._runner.plan, self._runner.elapsed()
            if offer["base"] != before.digest:
                return Fired("", again="another action came first")
            if self._options.time == VIRTUAL:  # it takes no time there
                plan, schedule = self._decode(files, before)
            else:
                plan, schedule = await asyncio.to_thread(self._decode, files, before)
            number = int(offer["action"])
            own = [one for one in plan.events if action_texts.number_of(one.file) == number]
            if why := self._impossible(schedule, own):
                return Fired("", refused=why)
            if why := self._adopt(plan, schedule, -LATE_NS):
                ending = self._ending()
                return Fired("", refused=ending) if ending else Fired("", again=why)
            self._number = number + 1
            at_ns = min((event.at_ns for event in own), default=int(offer["at_ns"]))
            due_ns = int(offer["seen_ns"]) + int(offer["after_ns"])
            late_ns = schedule.clock.due(int(offer["at_ns"])) - max(due_ns, 0)
            record = {"kind": "when", "origin": CONDITION, **offer, "planned_ns": at_ns}
            record["late_ns"] = late_ns
            for name in ("base", "at_ns", "reaction"):
                del record[name]
            self._log({**record, "events": len(own), "applied_ns": asked_ns})
            return Fired(plan.digest)

    def _decode(self, files: Mapping[str, bytes], before: Plan) -> tuple[Plan, Schedule]:
        plan = decode(files, topology=before.topology)
        plan.core = before.core  # it follows from the topology
        return plan, Schedule(plan, self._options)

    async def keep(self, files: Mapping[str, bytes]) -> None:
        """Puts the plan in force where it is found. RunError."""
        async with self._busy:
            if self._runner.plan.digest == hashlib.sha256(files[HEADER]).hexdigest():
                if self._options.time == VIRTUAL:  # it takes no time there
                    self._keep(files)
                else:
                    await asyncio.to_thread(self._keep, files)

    def _keep(self, files: Mapping[str, bytes]) -> None:
        try:
            with scratch.directory(self._directory, LONGER_PLAN) as path:
                for name, data in files.items():
                    (path / name).write_bytes(data)
                self._put_in_place(path)
                self._is_first = False
        except OSError as error:
            raise unwritten(error) from error

    def _ending(self) -> str:
        runner = self._runner
        over = runner.is_over or runner.is_ending
        return "the run is ending" if over or self._network() is None else ""

    def _impossible(self, schedule: Schedule, own: Sequence[Event]) -> str:
        joins = {name for step in schedule.steps for name in step.joins}
        if missing := sorted(joins - self._runner.instances.keys()):
            return f"{missing[0]} is never there in the plan of this run"
        if own and (last_ns := max(event.at_ns for event in own)) > schedule.end_ns:
            return f"{last_ns / 1e9:g} s is after the run's end (--until)"
        return ""

    def _adopt(self, plan: Plan, schedule: Schedule, margin_ns: int = MARGIN_NS) -> str:
        """Why not, '' if it was done."""
        network = self._network()
        why = self._runner.refusal(schedule, margin_ns)
        if why or network is None:
            return why
        network.follow(plan)
        self._runner.follow(plan, schedule)
        self._follow(schedule)
        return ""

    def _read(self, path: Path) -> tuple[Plan, Schedule]:
        """All of it, in a thread of its own: events do not wait. RunError."""
        before = self._runner.plan
        try:
            plan = read_plan(path)
            same = plan.topology == before.topology and plan.seed == before.seed
            if not same or action_texts.name_of(self._number) not in plan.attached.includes:
                raise RunError("the plan that was left is not one of this run and its next action")
            _ = plan.core, plan.routes
            return plan, Schedule(plan, self._options)
        except PlanError as error:
            raise RunError(f"the plan that was left cannot be used: {error}") from error

    def _put_in_place(self, path: Path) -> None:
        """The run's plan is what is in force; what was planned at first is kept beside it.
        RunError."""
        plan, planned = self._directory / PLAN, self._directory / PLANNED
        try:
            swapped = outdir.exchange(path, plan)  # what it was is removed by who has left this
            if swapped and self._is_first:
                path.rename(planned)
            elif self._is_first:
                plan.rename(planned)
                path.rename(plan)
            elif not swapped:
                raise RunError("two folders cannot be swapped here, which a second action takes")
        except OSError as error:
            raise unwritten(error) from error

    def _take_back(self, path: Path) -> None:
        plan, planned = self._directory / PLAN, self._directory / PLANNED
        try:
            if self._is_first:
                plan.rename(path)
                planned.rename(plan)
            else:
                outdir.exchange(path, plan)
        except OSError as error:
            raise unwritten(error) from error

    async def finish(self) -> None:
        """No action after this; what those have left who asked is removed."""
        async with self._busy:
            scratch.sweep(self._directory, LONGER_PLAN)
