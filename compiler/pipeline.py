"""From a text to a plan: parse, model, timeline, snapshots.

Nothing here looks at the machine: the same text, files and seed give the same bytes everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from compiler.declare.model import Model, build
from compiler.declare.named.files_of import FilesOf, attach
from compiler.declare.nodes.machines import with_parts
from compiler.declare.topology import NO_FILES, NOTHING_RECORDED, Recorded
from compiler.draws import reseeds as reseeds_of
from compiler.expand.recorder import Recorder
from compiler.expand.timeline import Timeline, end_of, expand
from compiler.expand.world import NeedReplicas
from compiler.expect.compile_expectations import expect, figures
from compiler.expect.compile_reactions import reactions
from compiler.expect.storm_space import StormSpace, storm_space
from compiler.feasibility import warnings
from compiler.feasibility.bypassed import Bypassed
from compiler.feasibility.warnings import ANY, Machines
from compiler.plan.reader import Plan, decode
from compiler.plan.routes.routing import snapshots
from compiler.plan.run_clock import read as read_clock
from compiler.plan.types import Event, PlanFile, PlannedReaction, Topology
from compiler.plan.writer import PlanContents, encode, write_plan
from compiler.sources import NOWHERE, Sources, member
from tdl import ast
from tdl.ast import Span
from tdl.diagnostics import Diagnostic, Sink, TdlError, sort
from tdl.parser import Partial, parse_partial
from tdl.preprocess.unroll import NO_PARAMS
from tdl.tokens.lexer import source_lines

EMPTY = "begin with `service`, `bridge` and `link`; docs/language-tour.md shows how"
GROWTH_STEP = 4096  # instances that a guess is ahead at most


class UnknownParamError(Exception):
    """A value for a parameter that the text does not have: its name, and those that there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known


@dataclass(frozen=True)
class Compilation:
    """A plan in memory, and the warnings on the way to it."""

    model: Model
    timeline: Timeline
    files: Mapping[str, bytes]
    diagnostics: tuple[Diagnostic, ...]
    includes: Mapping[str, bytes]  # the included texts, by the names that spans have for them
    reactions: tuple[PlannedReaction, ...] = ()
    # Bridges that no packet passes, and at which nobody is; not looked for without doubts.
    empty: tuple[str, ...] = ()
    hunt: StormSpace | None = None  # of which the plan has nothing
    before: Plan | None = None  # with the same topology, of which this is a longer one

    @cached_property
    def plan(self) -> Plan:
        if self.before is not None:
            return decode(self.files, before=self.before)
        return decode(self.files, topology=self.topology, events=self.events)

    @cached_property
    def topology(self) -> Topology:
        return replace(self.model.planned, reactions=self.reactions)

    @property
    def events(self) -> tuple[Event, ...]:
        return self.timeline.events


def compile_source(
    text: str | bytes,
    *,
    filename: str = "experiment.tdl",  # noqa: ARG001
    seed: int | None = None,
    machines: Machines = ANY,
    sources: Sources = NOWHERE,
    params: Mapping[str, str] = NO_PARAMS,
    doubts: bool = True,
    parsed: Partial | None = None,
) -> Compilation:
    """Raises TdlError with all that is wrong. `seed` wins over the file's; the default is 0.
    `parsed` is what parse_partial() makes of the text, from whoever has it.

    `filename` is what the caller calls the text, `machines` what the plan is to run on: the plan
    does not depend on them. `sources` has the files that the text names, `params` the values of
    parameters that are to have others than in the text: UnknownParamError where it has none of
    this name. Without `doubts` nobody is warned of what is legal and will not work.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", errors="surrogatepass")
    partial = parse_partial(text, sources, params) if parsed is None else parsed
    if partial.failed:
        more = _also_wrong(partial, text) if partial.whole else []
        raise TdlError([*partial.diagnostics, *more])
    for name in params:
        if name not in partial.params:
            raise UnknownParamError(name, tuple(partial.params))
    sink = Sink()
    sink.found += partial.diagnostics
    if not partial.file.statements:
        sink.error("TS0154", ast.Span(1, 1, 1, 2), "there is nothing in this file", EMPTY)
        raise TdlError(sink.found)
    file = with_parts(partial.file, sink)
    if sink.failed:
        raise TdlError(sink.found)
    attachments = attach(file, sources, sink)
    named = FilesOf(file, sources, sink)
    if named.unknown:
        raise TdlError(sink.found)
    model, timeline = elaborate(
        named.file,
        sink,
        seed,
        files=attachments.files,
        recorded=named.recorded,
        reseeds=reseeds_of(raw),
    )
    carried = carried_out(model, timeline, partial.includes)
    expectations = expect(model, carried, sink)
    own = figures(model, sink)
    whens = reactions(model, sink)
    space = storm_space(model, carried.end_ns, sink)
    if sink.failed:
        raise TdlError(sink.found)
    if doubts:
        warnings.warn(model, timeline, machines, sink)
    bypassed = Bypassed(model) if doubts else None
    epochs = snapshots(model.planned, carried.events)
    contents = PlanContents(
        source=raw,
        seed=model.seed,
        topology=replace(model.planned, reactions=whens),
        events=carried.events,
        end_ns=carried.end_ns,
        snapshots=epochs if bypassed is None else bypassed.through(epochs),
        attached=attachments.contents,
        traces=named.traces.contents,
        delays=named.delays.contents,
        motions=() if named.moving is None else (named.moving.content,),
        includes={member(path): data for path, data in partial.includes.items()},
        expectations=expectations,
        figures=own,
        params=partial.params,
    )
    files = encode(contents)
    empty: tuple[str, ...] = ()
    if bypassed is not None:
        bypassed.warn(sink)
        warnings.warn_of_plan(model, files, machines, sink)
        empty = tuple(bypassed.empty().values())
    return Compilation(
        model, carried, files, sort(sink.found), partial.includes, whens, empty, space
    )


# What else is wrong with a file that has syntax errors.
#
# The statements that could be read are checked against each other, so that all errors of a file
# are reported in one go. Kept are findings that no unreadable statement can be the reason of:
# those about what is there (CERTAIN), and those about what is missing (MISSING) if no unreadable
# statement mentions the name, since it may have declared or used it.

CERTAIN = frozenset(("TS0101", "TS0107", "TS0108", "TS0204", "TS0209", "TS0212"))
MISSING = frozenset(("TS0102", "TS0103", "TS0123", "TS0201", "TS0202", "TS0203", "TS0901"))
MOBILITY = "mobility"  # as a statement begins
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")


def _also_wrong(partial: Partial, text: str | bytes) -> list[Diagnostic]:
    """The findings of the model about the statements of `partial`, which has errors already."""
    sink = Sink()
    build(with_parts(partial.file, sink), sink)
    moves = any(isinstance(one, ast.Mobility) for one in partial.file.statements)
    missing = MISSING
    if moves or MOBILITY in partial.mentioned:
        missing = frozenset()  # its file is not read: it may have any node and link
    texts = {"": text, **partial.includes}
    lines: dict[str, list[str]] = {}  # of files with something to look at: they may be huge

    def mentions(span: Span) -> bool:
        if span.file not in lines:
            lines[span.file] = source_lines(texts[span.file])
        return not partial.mentioned.isdisjoint(_names(span, lines[span.file]))

    return [
        found
        for found in sink.found
        if found.code in CERTAIN or (found.code in missing and not mentions(found.span))
    ]


def _names(span: Span, lines: list[str]) -> list[str]:
    """The words that a span covers."""
    rows = lines[span.line - 1 : span.end_line]
    if not rows:
        return []
    rows[-1] = rows[-1][: span.end_col - 1]
    rows[0] = rows[0][span.col - 1 :]
    return [word for row in rows for word in _NAME.findall(row)]


def elaborate(
    file: ast.File,
    sink: Sink,
    seed: int | None = None,
    recorder: Recorder | None = None,
    files: Mapping[str, tuple[PlanFile, ...]] = NO_FILES,
    recorded: Recorded = NOTHING_RECORDED,
    reseeds: tuple[tuple[int, int], ...] = (),
) -> tuple[Model, Timeline]:
    """The model and its timeline, with as many instances as the joins ask for.

    Services without `replicas=` have as many instances as were asked for at once. The model guesses
    from the joins alone; where the walk needs more (or less), the model is built again. Neither
    draws nor joins look at the number in the model, so the last walk repeats the ones before.
    """
    raised: dict[str, int] = {}
    needed: dict[str, int] = {}
    while True:
        attempt = Sink()
        model = build(file, attempt, seed, raised, files, recorded, reseeds)
        if model.oversized and raised != needed:
            raised = dict(needed)
            continue
        if model.oversized:
            sink.found += attempt.found
            return model, Timeline((), 0, (), {}, {}, {})
        services = model.topology.services
        try:
            timeline = expand(model, attempt, recorder)
        except NeedReplicas as need:
            name, before = services[need.service].name, services[need.service].replicas
            needed[name] = need.count
            # More than needed, so that a file that grows by steps is not walked once a step.
            raised[name] = max(need.count, min(2 * before, before + GROWTH_STEP))
            continue
        exact = {s.name: n for s, n in zip(services, timeline.replicas, strict=True)}
        if all(s.replicas == exact[s.name] for s in services):
            sink.found += attempt.found
            return model, timeline
        raised = needed = exact


def carried_out(model: Model, timeline: Timeline, texts: Mapping[str, bytes]) -> Timeline:
    """As a run does it whose planned events were held or skipped; else as it is."""
    clock = read_clock(texts)
    if clock.is_plain:
        return timeline
    events = tuple(clock.carried_out(timeline.events))
    waits = clock.held_ns is not None or bool(model.topology.quit_when)
    return replace(timeline, events=events, end_ns=end_of(events, waits=waits))


def write(
    compilation: Compilation, directory: str | Path, beside: Mapping[str, bytes] | None = None
) -> str:
    """Writes the plan as a directory, whole or not at all; returns its digest (PlanError).

    `beside` is what else goes into it: rendered files for its folder manifests.
    """
    return write_plan(directory, compilation.files, beside)
