"""What comes of an action, as a record for programs and as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.plan.format import SOURCE, PlanError
from runtime.errors import RunError
from tdl import presentation
from tdl.diagnostics import Diagnostic
from tstorm import units
from tstorm.live.steer import ActionError, Done
from tstorm.text.eventtext import span_record


@dataclass(frozen=True, slots=True)
class ActionAnswer:
    """`record` is {"ok", "warnings"} or {"error", ...}. `found` are errors and warnings, placed for
    whoever knows the action by the name that is shown, and `source` is the text of the plan."""

    record: dict[str, Any]
    exit_code: int = 0
    found: Sequence[Diagnostic] = ()
    source: bytes = b""
    done: Done | None = None
    refusal: RunError | PlanError | None = None

    def text(self, name: str, text: str) -> str:
        """All of it; messages call the action `name`."""
        said = presentation.render_text(
            self.found, name, text, includes={SOURCE: self.source}, colour=False
        )
        if self.done is not None:
            return said + "\n".join(told_lines(self.done)) + "\n"
        if self.refusal is not None:
            said += refusal_text(self.refusal)
        return f"{said}nothing was changed\n"


def refusal_text(refusal: RunError | PlanError) -> str:
    remedy = getattr(refusal, "remedy", "")
    message = getattr(refusal, "message", str(refusal))
    return f"error: {message}" + (f"\nhint: {remedy}" if remedy else "") + "\n"


def answered(act: Callable[[], Done]) -> ActionAnswer:
    """Does it."""
    try:
        done = act()
    except ActionError as error:
        records = [_record(one, error.name) for one in error.diagnostics]
        record = {"error": str(error), "code": records[0]["code"], "diagnostics": records}
        found = [_placed(one, error.name) for one in error.diagnostics]
        return ActionAnswer(record, 1, found, error.plan.source)
    except (RunError, PlanError) as error:
        code = getattr(error, "exit_code", 1)
        return ActionAnswer({"error": str(error)}, code, refusal=error)
    warnings = [_record(one, done.name) for one in done.warnings]
    record = {"ok": dict(done.told), "warnings": warnings}
    return ActionAnswer(record, 0, [_placed(one, done.name) for one in done.warnings], done=done)


def _placed(one: Diagnostic, own: str) -> Diagnostic:
    """With its place in the action as it was given; what is about the plan stands in its source."""
    files = {own: "", "": SOURCE}
    return replace(one, span=replace(one.span, file=files.get(one.span.file, one.span.file)))


def _record(one: Diagnostic, own: str) -> dict[str, object]:
    span = one.span
    found: dict[str, object] = {
        "severity": one.severity.value,
        "code": one.code,
        "message": one.message,
        "hint": one.hint,
        **span_record(span),
    }
    return found if span.file == own else {**found, "file": span.file or "source.tdl"}


def _around(done: Done) -> str:
    """What becomes of events that are not the action's, or why it has none."""
    others, held = done.told["others"], done.told["held"]
    if others:
        events = "1 planned event" if others == 1 else f"{others} planned events"
        one = others == 1
        if done.happening:
            return f"{events} {'happens' if one else 'happen'} then"
        what = ("waits" if one else "wait") if held else ("is" if one else "are") + " otherwise"
        return f"{events} {what} from then on"
    if held:
        return "planned events are held: what it does later waits, too, until `tstorm go`"
    return "nothing is otherwise: the run has it so already"


def told_lines(done: Done) -> Iterator[str]:
    """What was planned, in words."""
    told = done.told
    count, at = told["events"], units.duration(told["planned_ns"])
    events = "" if not count else ", 1 event" if count == 1 else f", {count} events"
    yield f"action {told['action']} from {at} on{events}"
    if not count or told["others"]:
        yield f"  {_around(done)}"
    for event in told["first"]:
        yield f"  {units.duration(event['at_ns'])} {event['kind']} {event['target']}".rstrip()
    if count > len(told["first"]):
        yield f"  and {count - len(told['first'])} more"
