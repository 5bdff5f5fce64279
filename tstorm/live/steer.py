"""Has a running experiment do something that is not in its plan.

The run names a moment; the action is compiled for it here (compiler/extension.py), left in the run
directory and offered to the run, which takes it whole or not at all (runtime/driver/steering.py).
What comes too late is compiled again for a later moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler import extension
from compiler.pipeline import Compilation
from compiler.plan.format import PlanError
from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan, read_plan
from compiler.plan.storage import scratch
from runtime.driver import steering
from runtime.driver.control import ask
from runtime.errors import RunError
from runtime.launch import registry
from runtime.options import decode
from runtime.rundir import rundir
from runtime.rundir.runfiles import LONGER_PLAN, PLAN
from tdl import quantities
from tdl.diagnostics import Diagnostic, Severity, TdlError

Extend = Callable[[Plan, int, int], Compilation]  # number and moment of the action

_TRIES = 12
_FIRST_LEAD_NS = 100_000_000
_SLACK_NS = 100_000_000
_PAUSE_SECONDS = 0.02
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
    """What the run says of it, and warnings."""

    told: Mapping[str, Any]
    warnings: tuple[Diagnostic, ...]
    name: str


def do(run: str, text: str) -> Done:
    """Returns when the run has taken it; its events are still to come. ActionError, RunError, and
    PlanError if the run's plan cannot be read."""
    return _steered(run, text, lambda plan, number, at: extension.extend(plan, number, text, at))


def do_made(run: str, said: str, make: Callable[[Plan, int], str]) -> Done:
    """The same of a text that is `make`(plan, moment); the record has what was `said`."""

    def extend(plan: Plan, number: int, at_ns: int) -> Compilation:
        return extension.extend(plan, number, make(plan, at_ns), at_ns)

    return _steered(run, said[: steering.MOST_TEXT // 2], extend)  # a request has a bound


def hold(run: str) -> Done:
    """What is planned waits. As `do`."""
    return _steered(run, "hold", _apart(extension.hold))


def go(run: str) -> Done:
    """What is planned goes on. As `do`."""
    return _steered(run, "go", _apart(extension.go))


def skip(run: str, to_ns: int | None) -> Done:
    """What is planned up to then, or the next of it, happens at once. As `do`."""
    text = "skip to next" if to_ns is None else f"skip to {quantities.time(to_ns)}"
    act = lambda plan, number, at: extension.skip(plan, number, to_ns, at)  # noqa: E731
    return _steered(run, text, _apart(act))


def _apart(extend: Extend) -> Extend:
    """At a moment at which nothing else happens, so that it is before or after."""

    def moved(plan: Plan, number: int, at_ns: int) -> Compilation:
        taken = {event.at_ns for event in plan.events}
        while at_ns in taken:
            at_ns += steering.GRID_NS
        return extend(plan, number, at_ns)

    return moved


def _steered(run: str, text: str, extend: Extend) -> Done:
    record = registry.find(run)
    directory, socket = Path(record.directory), Path(record.socket)
    options = rundir.recorded(str(directory)).manifest()["options"]
    steering.check(decode(options, "options"))
    lead_ns, why = _FIRST_LEAD_NS, ""
    for left in reversed(range(_TRIES)):
        began_ns = time.monotonic_ns()
        try:
            moment = {"lead_ns": lead_ns, "reserve": left < _TRIES - 1}
            answer = _tried(directory, socket, moment, (text, extend))
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


def _tried(
    directory: Path, socket: Path, asked: Mapping[str, Any], action: tuple[str, Extend]
) -> Done | str | None:
    """Why it came too late, if it did; None: another action is about to be carried out."""
    moment, _ = ask(socket, {"ask": "moment", **asked})
    plan = read_plan(directory / PLAN, lazy=True)
    if plan.digest != moment["base"]:
        return None
    return _offered(directory, socket, plan, moment, action)


def _offered(
    directory: Path,
    socket: Path,
    plan: Plan,
    moment: Mapping[str, Any],
    action: tuple[str, Extend],
) -> Done | str:
    """Why it came too late, if it did."""
    text, extend = action
    number = int(moment["number"])
    name = action_texts.name_of(number)
    try:
        longer = extend(plan, number, int(moment["at_ns"]))
    except TdlError as error:
        raise ActionError(error.diagnostics, plan, name) from error
    except extension.NotNowError as error:
        raise RunError(error.message, error.hint) from error
    with scratch.directory(directory, LONGER_PLAN) as path:
        for file, data in longer.files.items():
            (path / file).write_bytes(data)
        request = {"ask": "do", "plan": path.name, "text": text, **moment}
        answer, _ = ask(socket, request)
    if "ok" not in answer:
        return str(answer.get("again", ""))
    return Done(answer["ok"], tuple(extension.warnings(longer, number)), name)
