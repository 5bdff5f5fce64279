"""Has a running experiment do something that is not in its plan.

The run names a moment; the action is compiled for it here (compiler/extension.py), left in the run
directory and offered to the run, which takes it whole or not at all (runtime/driver/steering.py).
What comes too late is compiled again for a later moment.

In virtual time nothing comes too late: the run's time stands still while the action is compiled
(runtime/virtual/control_exchange.py).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler import extension
from compiler.pipeline import Compilation
from compiler.plan.format import PlanError
from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan, read_plan
from compiler.plan.run_clock import moves_events
from compiler.plan.storage import scratch
from compiler.plan.types import Event
from runtime.driver import steering
from runtime.errors import RunError
from runtime.launch import registry
from runtime.options import VIRTUAL, RunOptions
from runtime.rpc.control import ask
from runtime.rundir import eventlog, rundir
from runtime.rundir.eventlog import ENTERED
from runtime.rundir.runfiles import LONGER_PLAN, PLAN
from runtime.schedule import Schedule
from runtime.virtual.standstill import Repetition
from tdl import quantities
from tdl.diagnostics import Diagnostic, Severity, TdlError
from tstorm.live.steered_runs import LocalRun, SteeredRun, is_in_cluster, options_of, reached
from tstorm.live.stopped_time import StoppedTime

if TYPE_CHECKING:
    from tstorm.options.cluster import Where

Extend = Callable[[Plan, int, int], Compilation]  # number and moment of the action

_TRIES = 12
_FIRST_LEAD_NS = 100_000_000
_SLACK_NS = 100_000_000
_PAUSE_SECONDS = 0.02
_MOST_SAID = 2048  # bytes; the line to a guest takes 3,840 at a time
_OVERTAKEN = "another action came first"


class ActionError(Exception):
    """What is wrong with an action, first its errors, and the plan that it was for."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...], plan: Plan, name: str) -> None:
        errors = [one for one in diagnostics if one.severity is Severity.ERROR]
        super().__init__("; ".join(one.message for one in errors))
        self.diagnostics = (*errors, *(one for one in diagnostics if one not in errors))
        self.plan = plan
        self.name = name  # of the action's text, in the spans


@dataclass(frozen=True, slots=True)
class Done:
    """What the run says of it, and warnings. `happening`: what is planned was held before it, so
    that events of others that come with it are those that it has happen."""

    told: Mapping[str, Any]
    warnings: tuple[Diagnostic, ...]
    name: str
    happening: bool = False


def do(run: str, text: str, where: Where | None = None) -> Done:
    """Returns when the run has taken it; its events are still to come. `where`: in which cluster
    the run is. ActionError, RunError, and PlanError if the run's plan cannot be read."""
    act = lambda plan, number, at: extension.extend(plan, number, text, at)  # noqa: E731
    return _steered(run, where, text, act)


def do_made(
    run: str, said: str, make: Callable[[Plan, int], str], where: Where | None = None
) -> Done:
    """The same of a text that is `make`(plan, moment); the record has what was `said`."""

    def extend(plan: Plan, number: int, at_ns: int) -> Compilation:
        return extension.extend(plan, number, make(plan, at_ns), at_ns)

    said = said[: steering.MOST_TEXT // 2]  # a request has a bound
    return _steered(run, where, said, extend)


def hold(run: str, where: Where | None = None) -> Done:
    """What is planned waits. As `do`."""
    return _steered(run, where, "hold", extension.hold, apart=True)


def go(run: str, where: Where | None = None) -> Done:
    """What is planned goes on. As `do`."""
    return _steered(run, where, "go", extension.go, apart=True)


def skip(run: str, to_ns: int | None, where: Where | None = None) -> Done:
    """What is planned up to then, or the next of it, happens at once. As `do`."""
    text = "skip to next" if to_ns is None else f"skip to {quantities.time(to_ns)}"
    act = lambda plan, number, at: extension.skip(plan, number, to_ns, at)  # noqa: E731
    return _steered(run, where, text, act, apart=True)


@dataclass(frozen=True, slots=True)
class _Action:
    """`said`: what the record has of it. `apart`: at a moment at which nothing else happens, so
    that it is before or after."""

    said: str
    extend: Extend
    apart: bool = False

    def moment(self, plan: Plan, at_ns: int) -> int:
        """When it is done, from `at_ns` of the run on."""
        free_ns = -(-extension.free_ns(plan) // steering.GRID_NS) * steering.GRID_NS
        at_ns = max(at_ns, free_ns)
        taken = {event.at_ns for event in plan.events} if self.apart else ()
        while at_ns in taken:
            at_ns += steering.GRID_NS
        return at_ns


def _steered(
    run: str, where: Where | None, text: str, extend: Extend, *, apart: bool = False
) -> Done:
    action = _Action(text, extend, apart)
    with reached(run, where) as there:
        if isinstance(there, LocalRun) and there.options.time == VIRTUAL:
            return in_stopped_time(there.directory, there.socket, there.options, action)
        return _taken(there, action)


def _taken(there: SteeredRun, action: _Action) -> Done:
    lead_ns, why = _FIRST_LEAD_NS, ""
    for left in reversed(range(_TRIES)):
        began_ns = time.monotonic_ns()
        try:
            moment = {"lead_ns": lead_ns, "reserve": left < _TRIES - 1}
            answer = _tried(there, moment, action)
        except PlanError:  # it was replaced while it was read
            if not left:
                raise
            answer = None
        if isinstance(answer, Done):
            return answer
        why = _OVERTAKEN if answer is None else answer
        if answer is None:
            time.sleep(_PAUSE_SECONDS)
        else:
            lead_ns = (time.monotonic_ns() - began_ns) * 3 // 2 + _SLACK_NS
    raise RunError(f"the run has not taken it: {why}", "nothing was changed: try again")


def _tried(there: SteeredRun, asked: Mapping[str, Any], action: _Action) -> Done | str | None:
    """Why it came too late, if it did; None: another action is about to be carried out."""
    moment = there.ask({"ask": "moment", **asked})
    plan = there.plan(str(moment["base"]))
    if plan.digest != moment["base"]:
        return None
    number, at_ns = int(moment["number"]), action.moment(plan, int(moment["at_ns"]))
    longer = _longer(plan, number, at_ns, action.extend)
    offered = {"ask": "do", "text": action.said, **moment, "at_ns": at_ns}
    answer = there.offer(longer.files, offered)
    if "ok" not in answer:
        return str(answer.get("again", ""))
    return _done(answer, plan, longer, number)


def _longer(plan: Plan, number: int, at_ns: int, extend: Extend) -> Compilation:
    """ActionError, RunError."""
    try:
        return extend(plan, number, at_ns)
    except TdlError as error:
        name = action_texts.name_of(number)
        raise ActionError(error.diagnostics, plan, name) from error
    except extension.NotNowError as error:
        raise RunError(error.message, error.hint) from error


def _done(answer: Mapping[str, Any], plan: Plan, longer: Compilation, number: int) -> Done:
    told = {
        **answer["ok"],
        "others": others(plan, longer.plan, number),
        "held": extension.is_held(longer.plan),
    }
    warnings = tuple(extension.warnings(longer, number))
    happening = extension.is_held(plan) and extension.is_held(longer.plan)
    return Done(told, warnings, action_texts.name_of(number), happening)


def others(before: Plan, after: Plan, number: int) -> int:
    """How many events that are not the action's own come, go or are otherwise with it."""
    found = Counter(_what(event) for event in before.events)
    own = [event for event in after.events if action_texts.number_of(event.file) == number]
    found.subtract(_what(event) for event in after.events)
    found.update(_what(event) for event in own)
    counts = found.values()
    return max(sum(n for n in counts if n > 0), -sum(n for n in counts if n < 0))


def _what(event: Event) -> tuple[object, ...]:
    return event.at_ns, event.kind, event.target, tuple(sorted(event.args.items())), event.place


# --- in virtual time ---


def in_stopped_time(
    directory: Path,
    socket: Path,
    options: RunOptions,
    action: _Action,
    at_ns: int | None = None,
) -> Done:
    """The same where time stands still until it is done: at once, or at `at_ns` of the guest's
    clock, where it stands already. ActionError, RunError, PlanError."""
    why = ""
    for left in reversed(range(_TRIES if at_ns is None else 1)):
        answer = _tried_in_stopped_time(directory, socket, options, action, at_ns)
        if isinstance(answer, Done):
            return answer
        why = answer
        if left:
            time.sleep(_PAUSE_SECONDS)  # for a `when` that is about to change the plan
    raise RunError(f"the run has not taken it: {why}", "nothing was changed: try again")


def _tried_in_stopped_time(
    directory: Path,
    socket: Path,
    options: RunOptions,
    action: _Action,
    at_ns: int | None,
) -> Done | str:
    """Why it was not taken, if another action came first."""
    with StoppedTime(socket, at_ns) as stopped:
        plan = read_plan(directory / PLAN, lazy=True)
        schedule, number = Schedule(plan, options), steering.next_number(plan)
        entry_ns = steering.entry_ns(options, schedule.clock, stopped.now_ns)
        moment_ns = action.moment(plan, entry_ns)
        if moment_ns >= schedule.end_ns:
            raise RunError("the run is ending", "nothing was changed")
        longer = _longer(plan, number, moment_ns, action.extend)
        request = {
            "plan": scratch.numbered_name(LONGER_PLAN, number),
            "text": _fitting(action.said),
            "at_ns": moment_ns,
            "base": plan.digest,
            ENTERED: stopped.stopped_ns,
        }
        with scratch.numbered(directory, LONGER_PLAN, number) as path:
            scratch.fill(path, longer.files)
            answer = stopped.say(request)
        return (
            _done(answer, plan, longer, number) if "ok" in answer else str(answer.get("again", ""))
        )


def _fitting(text: str) -> str:
    """What a record has of it: what goes to the guest goes in one piece."""
    while len(json.dumps(text)) > _MOST_SAID:
        text = text[: len(text) * 3 // 4]
    return text


@dataclass(frozen=True, slots=True)
class Entered:
    """An action that is done again. `at_ns`: of the guest's clock."""

    at_ns: int
    number: int
    said: str
    text: bytes

    def do(self, directory: Path, socket: Path) -> None:
        """RunError."""

        def extend(plan: Plan, number: int, now_ns: int) -> Compilation:
            return extension.repeat(plan, number, self.text, now_ns)

        try:
            options = options_of(directory)
            action = _Action(self.said, extend, moves_events(self.text))
            in_stopped_time(directory, socket, options, action, self.at_ns)
        except (ActionError, RunError, PlanError) as error:
            raise RunError(f"action {self.number} cannot be done again: {error}") from error


def entered(run: str | Path) -> list[Entered]:
    """What was done to a recorded run in virtual time, by hand, in order. RunError."""
    directory = rundir.recorded(str(run))
    found = eventlog.entered(directory)
    if not found:
        return []
    begin_ns = int(directory.manifest()["start_monotonic_ns"])
    texts = rundir.plan_in(directory).attached.includes
    by_number = {action_texts.number_of(name): text for name, text in texts.items()}
    return [
        Entered(begin_ns + at_ns, number, said, by_number[number]) for at_ns, number, said in found
    ]


def repetition(found: Sequence[Entered]) -> Repetition | None:
    """What does it all again; None: there is nothing."""
    if not found:
        return None
    do = lambda directory, socket, number: found[number].do(directory, socket)  # noqa: E731
    return Repetition([one.at_ns for one in found], do)


def hold_time(run: str, where: Where | None = None) -> int:
    """Everything stands still, from when on since the start of the run. RunError."""
    with reached(run, where) as there:
        if there.options.time != VIRTUAL:
            raise RunError(
                "this run goes on in real time, which stands still for nobody",
                "`tstorm hold` without --time holds what is planned; `pause` stops programs:"
                ' tstorm do RUN "server pause"',
            )
        return int(there.ask({"ask": "hold time"})["time_held_ns"])


def time_held(run: str) -> int | None:
    """Where the time of a run of this machine in virtual time is held, since its start; None: it
    goes on. The run notices nothing of it. RunError."""
    held_ns = ask(Path(registry.find(run).socket), {"ask": "held time"})[0]["time_held_ns"]
    return None if held_ns is None else int(held_ns)


def let_time_go(run: str, where: Where | None = None) -> bool:
    """Whether it was held. RunError."""
    if is_in_cluster(run, where):
        return False  # in real time, as all runs there
    with reached(run, None) as there:
        return there.options.time == VIRTUAL and bool(there.ask({"ask": "go time"})["went"])
