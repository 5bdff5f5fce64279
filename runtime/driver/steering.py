"""Changes the timeline of a run that goes on: `tstorm do` asks here, over the control socket.

Who asks compiles the action (compiler/extension.py) for a moment that is named here, and leaves the
longer plan beside that of the run; here it is read, compared with what is done already, and takes
the other's place: on the disk, at the network and at the timeline's runner, which carries out what
is new as it does all else. Until that instant nothing has changed, and from then on all of it is
planned: there is no half of an action, and a peer that goes away or sends nonsense changes nothing.

In virtual time the moment is named outside, where the run's time is stopped meanwhile
(runtime/virtual/control_exchange.py); here nothing is done beside the driver's thread then, so that
the same action at the same moment is the same run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from compiler.plan.format import HEADER, PlanError
from compiler.plan.growing import CannotGrowError, GrowingPlan, Row
from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan, decode, read_plan
from compiler.plan.storage import scratch
from compiler.plan.types import Event
from runtime import say
from runtime.backend import instance_clocks, instance_disks
from runtime.backend.base import Log, RunNetwork
from runtime.driver.timelinerunner import CONDITION, MANUAL, STAGE_AHEAD_NS, TimelineRunner
from runtime.errors import RunError, UnfitError, fail
from runtime.options import VIRTUAL, RunOptions, has_agents
from runtime.rundir import longer_plan
from runtime.rundir.eventlog import ENTERED
from runtime.rundir.runfiles import LONGER_PLAN, PLAN
from runtime.schedule import VIRTUAL_LEAD_NS, PlanClock, Schedule

GRID_NS = 1_000_000  # moments of actions are whole ms of plan time
MARGIN_NS = 50_000_000  # from when the network is asked for a step to its moment
_HOSTS_MARGIN_NS = 250_000_000  # the same where agents find out what it takes
_VIRTUAL_MARGIN_NS = 1_000_000  # the same where that takes no time
LATE_NS = 10_000_000  # what a `when` does may be asked for so late
_ENTRY_NS = 5_000_000  # more than the driver takes to read a plan in virtual time
_SLACK_NS = 200_000_000  # more than it takes to find out that an action comes too late
LEAST_LEAD_NS, MOST_LEAD_NS = (
    100_000_000,
    8_000_000_000,
)  # less than who asks waits: not heard, not done
_KEEP_SECONDS, _KEEP_SHARE = 0.2, 10  # between writing what has grown: at least, in times of it
_RESERVED_NS = 500_000_000
EVENTS_OF_LINKS, TEXT_OF_LINKS = "events.json", "action.tdl"  # in a folder that is left for the run
MOST_WAITING = 8
MOST_TEXT = 32768  # of an action in a record
_NAME = re.compile(r"\.do\.[0-9]{1,10}-[0-9]{1,10}\.tmp")

Follow = Callable[[Schedule], None]
T = TypeVar("T")


def entry_ns(options: RunOptions, clock: PlanClock, now_ns: int) -> int:
    """In virtual time, of an action that comes to the run `now_ns` after its start: the moment of
    the plan at which it happens. What is due before that has been asked for by then, and nothing
    that is due later."""
    lead_ns = VIRTUAL_LEAD_NS if options.can_branch else STAGE_AHEAD_NS
    found = clock.plan_time(now_ns + lead_ns + _ENTRY_NS)
    return -(-found // GRID_NS) * GRID_NS


def next_number(plan: Plan) -> int:
    """Of the next action of a run with this plan."""
    return 1 + max(map(action_texts.number_of, plan.attached.includes), default=0)


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
        self._disk = asyncio.Lock()  # whoever has it puts plans in place
        self._waiting = 0
        self._growing: GrowingPlan | None = None  # is the plan in force, where there is one
        self._keeping: asyncio.Task[None] | None = None
        self._grown_ns = 0  # the time of the plan of what was added last
        self._reserved_ns = 0  # until then nothing grows

    def _running(self) -> RunNetwork:
        network = self._network()
        if network is None or not 0 < self._runner.t0_ns <= time.monotonic_ns():
            raise RunError("the run has not begun yet", "try again when it is at 0s")
        if self._runner.is_over or self._runner.is_ending:
            raise RunError("the run is ending", "nothing was changed")
        return network

    async def moment(self, request: Mapping[str, Any]) -> dict[str, object]:
        """When an action can be carried out that is compiled in `lead_ns`: not before what has been
        asked for by then. `reserve`: it was overtaken, and nothing grows meanwhile. RunError."""
        self._running()
        lead_ns = min(max(int(request["lead_ns"]), LEAST_LEAD_NS), MOST_LEAD_NS)
        lead_ns += max(self._margin_ns() - MARGIN_NS, 0)  # agents need it beside who compiles
        if request.get("reserve"):
            self._reserved_ns = self._runner.elapsed() + lead_ns
        await self.flush()
        number = self._next()
        first_ns = self._runner.elapsed() + lead_ns
        horizon_ns = first_ns + STAGE_AHEAD_NS + _SLACK_NS
        schedule = self._runner.schedule
        if any(first_ns <= step.due_ns <= horizon_ns for step in schedule.steps):
            first_ns = horizon_ns
        at_ns = self._grid(first_ns)
        return {"at_ns": at_ns, "number": number, "base": self._runner.plan.digest}

    def _next(self) -> int:
        """The number of the next action."""
        if not self._number:  # a replay has the actions of the run before
            self._number = next_number(self._runner.plan)
        return self._number

    def _grid(self, elapsed_ns: int) -> int:
        """A moment of the plan, so long after the start or a little later. RunError."""
        schedule = self._runner.schedule
        at_ns = -(-schedule.clock.plan_time(elapsed_ns) // GRID_NS) * GRID_NS
        if at_ns >= schedule.end_ns:
            raise RunError("the run is ending", "nothing was changed")
        return at_ns

    # -- changes of links, of which many may come -------------------------------------------------

    def link_moment(self) -> dict[str, object]:
        """The run's clock, for who asks grow() from now on. RunError."""
        self._running()
        self._runner.expect_more()
        clock, t0_ns = self._runner.schedule.clock, self._runner.t0_ns
        return {"t0_ns": t0_ns, **asdict(clock), "free_ns": self._free_ns()}

    def _free_ns(self) -> int:
        """The first time of the plan that is after all that was asked for, or was added."""
        schedule = self._runner.schedule
        due_ns = schedule.clock.plan_time(schedule.steps[self._runner.staged - 1].due_ns)
        return (max(due_ns, self._grown_ns) // GRID_NS + 1) * GRID_NS

    async def grow(self, request: Mapping[str, Any]) -> dict[str, object]:
        """Goes over to the plan that has these events of links, too, at once: it is on the disk a
        little later. `again` in the answer: it came too late; `whole`: it takes the compiler.
        RunError."""
        left = str(request.get("left", ""))
        if left and not _NAME.fullmatch(left):
            raise RunError("this is not the name of a folder that was left for the run")
        if self._waiting >= MOST_WAITING:
            raise RunError("too many ask at once", "try again")
        self._waiting += 1
        try:
            while self._runner.elapsed() < self._reserved_ns:  # somebody has to read the plan
                await asyncio.sleep(0.002)
            async with self._busy:
                return await self._grow(request, self._directory / left if left else None)
        finally:
            self._waiting -= 1

    async def _grow(self, request: Mapping[str, Any], left: Path | None) -> dict[str, object]:
        number, at_ns = int(request["number"]), int(request["at_ns"])
        network, runner, asked_ns = self._running(), self._runner, self._runner.elapsed()
        if has_agents(self._options):
            return {"whole": "agents take whole plans"}
        if number != self._next():
            return {"whole": "another action came first"}
        try:
            if self._growing is None:
                self._growing = await asyncio.to_thread(self._growing_plan)
            rows, text = _told(request, left)
            self._running()  # the run may have come to its end meanwhile
            if why := self._too_late(at_ns):
                return {"again": why, "free_ns": self._free_ns()}
            before = runner.plan
            plan = self._growing.add(at_ns, action_texts.name_of(number), text, rows)
        except CannotGrowError as error:
            return {"whole": str(error)}
        except (PlanError, OSError, ValueError, TypeError) as error:
            await self.flush()
            self._growing = None
            raise RunError(f"what was left for the run cannot be used: {error}") from error
        schedule = runner.schedule
        if len(plan.epochs) > len(before.epochs):
            schedule = schedule.grown(plan, at_ns)
        network.follow(plan)
        runner.grow(plan, schedule)
        self._follow(schedule)
        self._number, self._grown_ns = self._number + 1, at_ns
        said = str(request["said"])[:MOST_TEXT]
        told = {"action": number, "text": said, "events": len(rows), "planned_ns": at_ns}
        record = {"kind": "do", "target": "", "origin": MANUAL, "asked_ns": asked_ns, **told}
        self._log({**record, "applied_ns": runner.elapsed()})
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep_growing())
        return {"ok": told}

    def _growing_plan(self) -> GrowingPlan:
        plan = read_plan(self._directory / PLAN, lazy=True)
        if plan.digest != self._runner.plan.digest:
            raise CannotGrowError("another action came first")
        return GrowingPlan(plan)

    def _too_late(self, at_ns: int) -> str:
        runner, due_ns = self._runner, self._runner.schedule.clock.due(at_ns)
        if at_ns < self._free_ns():
            return "too late: what is planned about then has been asked for already"
        late = due_ns < runner.elapsed() - LATE_NS
        return "too late: the moment has come before the network could be asked" if late else ""

    async def _keep_growing(self) -> None:
        """Puts what has grown where it is found, as often as that is cheap."""
        while self._growing is not None and not self._growing.plan.digest:
            began_ns = time.monotonic_ns()
            try:
                await self.flush()
            except RunError as error:
                fail(self._runner.broken, error)
                return
            took = (time.monotonic_ns() - began_ns) / 1e9
            await asyncio.sleep(max(_KEEP_SECONDS, _KEEP_SHARE * took))
        self._keeping = None

    async def flush(self) -> None:
        """Until what is in force is on the disk, too. RunError."""
        async with self._disk:
            growing = self._growing
            while growing is not None and self._growing is growing and not growing.plan.digest:
                plan = growing.plan
                files = await asyncio.to_thread(growing.files())
                await asyncio.to_thread(self._keep, files)
                plan.digest = hashlib.sha256(files[HEADER]).hexdigest()
                self._follow(self._runner.schedule)

    async def do(self, request: Mapping[str, Any]) -> dict[str, object]:
        """Goes over to a longer plan. `again` in the answer: it came too late, and nothing was
        changed. RunError."""
        name, base, text = str(request["plan"]), str(request["base"]), str(request["text"])
        text, at_ns = text[:MOST_TEXT], int(request["at_ns"])
        more = {ENTERED: int(request[ENTERED])} if ENTERED in request else {}
        if not _NAME.fullmatch(name):
            raise RunError("this is not the name of a plan that was left for the run")
        if self._waiting >= MOST_WAITING:
            raise RunError("too many ask at once", "try again")
        self._waiting += 1  # each may take seconds, and the run goes on
        try:
            async with self._busy:
                return await self._do(name, base, text, at_ns, more)
        finally:
            self._waiting -= 1

    async def _beside(self, work: Callable[..., T], *arguments: object) -> T:
        """Beside the driver's thread, so that events do not wait; in virtual time it takes none."""
        if self._options.time == VIRTUAL:
            return work(*arguments)
        return await asyncio.to_thread(work, *arguments)

    async def _do(
        self, name: str, base: str, text: str, at_ns: int, more: Mapping[str, object]
    ) -> dict[str, object]:
        network, number = self._running(), self._next()
        if base != self._runner.plan.digest:
            return {"again": "another action came first"}
        path, asked_ns = self._directory / name, self._runner.elapsed()
        plan, schedule = await self._beside(self._read, path)
        joins = {name for step in schedule.steps for name in step.joins}
        for name in sorted(joins - self._runner.instances.keys()):
            raise RunError(
                f"{name} is never there in the plan of this run, so nothing was made for it",
                "nothing was changed: have it begin and leave in the experiment"
                f" (`at 0s {name} join`, `at 0s {name} leave`)",
            )
        instance_clocks.check(plan, self._options)
        own = [event for event in plan.events if action_texts.number_of(event.file) == number]
        why, example = instance_disks.unwatched(own, self._runner.instances)
        if why:
            hint = f"nothing was changed: write one into it, before its `quit` (`{example}`)"
            raise RunError(why, hint)
        if own and (last_ns := max(event.at_ns for event in own)) > schedule.end_ns:
            message = f"{say.seconds(last_ns)} is after the run's end (--until)"
            raise RunError(message, "nothing was changed")
        try:
            why = await network.offer(plan, base, path)
            if not why:
                why = await self._placed_and_adopted(path, plan, schedule)
        except BaseException:
            await network.withdraw()
            raise
        if why:
            await network.withdraw()
            self._running()
            return {"again": why}
        self._number, self._is_first, self._reserved_ns = number + 1, False, 0
        at_ns = min((event.at_ns for event in own), default=at_ns)
        told = {"action": number, "text": text, "events": len(own), "planned_ns": at_ns}
        record = {"kind": "do", "target": "", "origin": MANUAL, "asked_ns": asked_ns, **told}
        self._log({**record, **more, "applied_ns": self._runner.elapsed()})
        targets = [{"at_ns": e.at_ns, "kind": e.kind, "target": e.target} for e in own[:100]]
        return {"ok": {**told, "first": targets}}

    async def _placed_and_adopted(self, path: Path, plan: Plan, schedule: Schedule) -> str:
        """From here on, or not at all: why not. RunError."""
        async with self._disk:
            is_first = self._is_first
            put = partial(longer_plan.put_in_place, self._directory, path, is_first=is_first)
            await self._beside(put)
            if why := self._adopt(plan, schedule, self._margin_ns()):
                back = partial(longer_plan.take_back, self._directory, path, is_first=is_first)
                await self._beside(back)
            return why

    async def fire(self, offer: Mapping[str, Any], files: Mapping[str, bytes]) -> Fired:
        """Goes over to the longer plan that a `when` has led to (runtime/driver/reactions.py). It
        is in force when this returns, and not yet on the disk: that is for `keep`."""
        async with self._busy:
            if why := self._ending():
                return Fired("", refused=why)
            before, asked_ns = self._runner.plan, self._runner.elapsed()
            if offer["base"] != before.digest:
                self._reserved_ns = asked_ns + _RESERVED_NS
                await self.flush()
                return Fired("", again="another action came first")
            plan, schedule = await self._beside(self._decode, files, before)
            number = int(offer["action"])
            own = [one for one in plan.events if action_texts.number_of(one.file) == number]
            if why := self._impossible(plan, schedule, own):
                return Fired("", refused=why)
            try:
                why = await self._taken_by_all(plan, schedule, before.digest, files)
            except RunError as refused:
                return Fired("", refused=refused.message)
            if why:
                ending = self._ending()
                return Fired("", refused=ending) if ending else Fired("", again=why)
            self._number, self._reserved_ns = number + 1, 0
            at_ns = min((event.at_ns for event in own), default=int(offer["at_ns"]))
            due_ns = int(offer["seen_ns"]) + int(offer["after_ns"])
            late_ns = schedule.clock.due(int(offer["at_ns"])) - max(due_ns, 0)
            record = {"kind": "when", "origin": CONDITION, **offer, "planned_ns": at_ns}
            record["late_ns"] = late_ns
            for name in ("base", "at_ns", "reaction"):
                del record[name]
            self._log({**record, "events": len(own), "applied_ns": asked_ns})
            return Fired(plan.digest)

    async def _taken_by_all(
        self, plan: Plan, schedule: Schedule, base: str, files: Mapping[str, bytes]
    ) -> str:
        """Goes over to the plan of a firing: with the agents, where there are some. Why not; ''.
        RunError."""
        network = self._network()
        if network is None or not has_agents(self._options):
            return self._adopt(plan, schedule, -LATE_NS)
        with scratch.filled(self._directory, LONGER_PLAN, files) as path:
            try:
                why = await network.offer(plan, base, path)
                why = why or self._adopt(plan, schedule, self._margin_ns())
            except BaseException:
                await network.withdraw()
                raise
            if why:
                await network.withdraw()
            return why

    def _decode(self, files: Mapping[str, bytes], before: Plan) -> tuple[Plan, Schedule]:
        plan = decode(files, before=before)
        return plan, Schedule(plan, self._options)

    async def keep(self, files: Mapping[str, bytes]) -> None:
        """Puts the plan in force where it is found. RunError."""
        async with self._busy:
            if self._runner.plan.digest == hashlib.sha256(files[HEADER]).hexdigest():
                async with self._disk:
                    await self._beside(self._keep, files)

    def _keep(self, files: Mapping[str, bytes]) -> None:
        longer_plan.keep(self._directory, files, is_first=self._is_first)
        self._is_first = False

    def _ending(self) -> str:
        runner = self._runner
        over = runner.is_over or runner.is_ending
        return "the run is ending" if over or self._network() is None else ""

    def _impossible(self, plan: Plan, schedule: Schedule, own: Sequence[Event]) -> str:
        try:
            instance_clocks.check(plan, self._options)
        except UnfitError as refused:
            return refused.message
        why, _ = instance_disks.unwatched(own, self._runner.instances)
        if why:
            return why
        joins = {name for step in schedule.steps for name in step.joins}
        if missing := sorted(joins - self._runner.instances.keys()):
            return f"{missing[0]} is never there in the plan of this run"
        if own and (last_ns := max(event.at_ns for event in own)) > schedule.end_ns:
            return f"{say.seconds(last_ns)} is after the run's end (--until)"
        return ""

    def _margin_ns(self) -> int:
        if self._options.time == VIRTUAL:
            return _VIRTUAL_MARGIN_NS
        return _HOSTS_MARGIN_NS if has_agents(self._options) else MARGIN_NS

    def _adopt(self, plan: Plan, schedule: Schedule, margin_ns: int) -> str:
        """Why not, '' if it was done."""
        network = self._network()
        why = self._runner.refusal(schedule, margin_ns)
        if why or network is None:
            return why
        network.follow(plan)
        self._runner.follow(plan, schedule)
        self._growing = None
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

    async def finish(self) -> None:
        """No action after this; what those have left who asked is removed."""
        async with self._busy:
            try:
                await self.flush()
            except RunError as error:
                fail(self._runner.broken, error)
            if self._keeping is not None:
                self._keeping.cancel()
            scratch.sweep(self._directory, LONGER_PLAN)


def _told(request: Mapping[str, Any], left: Path | None) -> tuple[list[Row], bytes]:
    """Events, and the text of the action: in the request, or where they were left. OSError,
    ValueError."""
    if left is None:
        return request["events"], str(request["action"]).encode()
    return json.loads((left / EVENTS_OF_LINKS).read_bytes()), (left / TEXT_OF_LINKS).read_bytes()
