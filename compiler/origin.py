"""Where an event of a plan comes from, and what it changed.

Input: a plan and the number of an event. Output: an `EventStory`. The plan says what and when; why
is found by elaborating the plan's own source again, with its seed and a recorder, and only when
that gives the very events of the plan. Sources: docs/draws.md, docs/timeline.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.analysis.effects import Effects, effects
from compiler.declare.named.files_of import FilesOf
from compiler.declare.nodes.machines import with_parts
from compiler.draws import reseeds
from compiler.expand.identity import Seeds
from compiler.expand.recorder import Origin, Recorder
from compiler.pipeline import carried_out, elaborate
from compiler.plan.format import SOURCE, PlanError
from compiler.plan.reader import Plan
from compiler.plan.types import Event
from compiler.sources import RecordedFiles
from tdl.diagnostics import Sink, TdlError
from tdl.parser import parse_partial


@dataclass(frozen=True, slots=True)
class EventStory:
    event: Event
    origin: Origin
    key: bytes | None  # of the statement's draws; None: nothing was drawn for it
    effects: Effects


def explain_event(plan: Plan, seq: int) -> EventStory:
    """`seq` is one of the plan's. Raises PlanError if its source does not give its events."""
    event = plan.events[seq]
    origin = _origin(plan, event)
    seed = Seeds(plan.seed, reseeds(plan.source)).at(origin.drawn_ns)
    key = None if origin.identity is None else origin.identity.key(seed)
    return EventStory(event, origin, key, effects(plan, event))


def _origin(plan: Plan, event: Event) -> Origin:
    recorder = Recorder(event.seq)
    sink = Sink()
    partial = parse_partial(plan.source, RecordedFiles(plan), plan.params)
    if partial.failed:
        raise _other_release(plan, TdlError(partial.diagnostics))
    named = FilesOf(with_parts(partial.file, sink), RecordedFiles(plan), sink)
    model, timeline = elaborate(
        named.file,
        sink,
        plan.seed,
        recorder,
        recorded=named.recorded,
        reseeds=reseeds(plan.source),
    )
    timeline = carried_out(model, timeline, partial.includes)
    if sink.failed:
        raise _other_release(plan, TdlError(sink.found))
    if timeline.events != plan.events:
        again = timeline.events
        for number, known in enumerate(plan.events):
            if number >= len(again) or again[number] != known:
                raise _differs(plan, number)
        raise _differs(plan, len(plan.events))
    return recorder.origin(event)


def _other_release(plan: Plan, error: TdlError) -> PlanError:
    first = error.diagnostics[0]
    return PlanError(
        SOURCE,
        f"does not compile with this release: line {first.span.line}: {first.message}",
        f"the plan was written by {plan.tool_version!r:.60}: explain it with that release",
    )


def _differs(plan: Plan, seq: int) -> PlanError:
    return PlanError(
        SOURCE,
        f"with seed {plan.seed} gives other events than the plan has, from event {seq} on",
        f"the plan was written by {plan.tool_version!r:.60}: explain it with that release",
    )
