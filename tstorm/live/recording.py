"""A run that was steered as a text: its own, and after it what was done by hand.

Actions stand with their times written out. A `when` stands as a comment, and what it has done among
the actions. What they have drawn, by the number of the action, is
written out too, as no other text draws the same. Of a run in which planned events were held or
skipped every event is a statement of its own. The text is compiled, and is only good if it gives
the events of the run: the same at the same moments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compiler import extension
from compiler.expand.identity import identities
from compiler.pipeline import compile_source
from compiler.plan.parts import action_texts
from compiler.plan.parts.expectations import DRIVERS
from compiler.plan.properties import BY_FIELD, COMPOSED
from compiler.plan.reader import Plan
from compiler.plan.types import Event, PlannedMachine, Topology
from compiler.sources import RecordedFiles, SourceFolder
from runtime.errors import RunError
from runtime.rundir import eventlog
from runtime.rundir.held_directory import HeldDirectory
from tdl import quantities
from tdl.diagnostics import Sink, TdlError
from tdl.preprocess.blocks import Item, LoopBlock, blocks, is_when
from tdl.tokens.lexer import logical_lines, source_lines
from tstorm import units
from tstorm.shrink import script
from tstorm.topologies.load_topology import load_topology

_VERBS = {
    "bridge_down": "leave",
    "bridge_up": "join",
    "link_down": "leave",
    "link_up": "join",
}  # of events whose statements have another word
_UNWRITTEN = ("set", "background")  # no draws make these
# What `set` can write by itself, one property at a time.
_ALONE = {row.field for row in COMPOSED} | {
    *("queue_bytes", "distribution", "duplicate_ppb", "corrupt_ppb", "reject_ppb")
}
_INCLUDED = re.compile(rb'(\ninclude "do@[0-9.]+")+\n\Z')
_WRONG_LINE = "line"
_LOOP = re.compile(r"\s*for\b")


@dataclass(frozen=True, slots=True)
class _Action:
    number: int
    name: str  # of its text
    text: str
    drawn: frozenset[int]  # lines whose statements draw


def check_all_there(directory: HeldDirectory, plan: Plan) -> None:
    """That the plan of this ended run has all that was done. RunError."""
    if missing := eventlog.actions_beyond(directory, plan):
        raise RunError(
            f"the run was killed before its plan had what it did: {_named(missing)}",
            "`tstorm report` lists it; what the plan has can be replayed",
        )


def _named(actions: Sequence[int]) -> str:
    more = f" and {len(actions) - 1} more" if len(actions) > 1 else ""
    return f"action {actions[0]}{more}"


def text_of(plan: Plan, folder: Path) -> str:
    """The text, to be put into `folder`. RunError if there is none with the same events."""
    own = _without_reactions(_INCLUDED.sub(b"\n", plan.source).decode("utf-8"))
    if extension.is_moved(plan):
        return _checked(plan, _event_by_event(plan, own), folder)
    actions = "".join(_written(plan, one) for one in _actions(plan))
    return _checked(plan, own + actions, folder)


def _without_reactions(own: str) -> str:
    """With each `when` as a comment."""
    lines = source_lines(own)
    for first, last in _blocks(blocks(logical_lines(own, Sink()), Sink())):
        for number in range(first - 1, last):
            lines[number] = f"# {lines[number]}"
    return "\n".join(lines)


def _blocks(items: Iterable[Item]) -> Iterator[tuple[int, int]]:
    """First and last line of each `when`."""
    for item in items:
        if isinstance(item, LoopBlock) and not is_when(item.head):
            yield from _blocks(item.body)
        elif isinstance(item, LoopBlock) and item.end is not None:
            yield item.head.tokens[0].line, item.end.tokens[0].line


def _checked(plan: Plan, text: str, folder: Path) -> str:
    """With what else it takes to give the events of the plan. RunError."""
    why = ""
    for complete in (_as_it_is, _with_seed, _with_params, _with_joins):
        text = complete(plan, text)
        why = difference(plan, text, folder)
        if not why:
            return text
    beside = (
        "write it beside the experiment's own file: what that includes, and its files=, are named"
        " from there"
    )
    replay = "`tstorm replay` does all of it again, at the same moments"
    hint = beside if why.startswith(_WRONG_LINE) else replay
    raise RunError(f"no text gives what was in force: {why}", hint)


def difference(plan: Plan, text: str, folder: Path) -> str:
    """What is another as a text in this folder; '' if nothing is."""
    try:
        made = compile_source(text, sources=SourceFolder(folder, load_topology)).plan
    except TdlError as error:
        one = error.diagnostics[0]
        return f"{_WRONG_LINE} {one.span.line}: {one.message}"
    if made.topology.reactions:
        return "a `when` stands in a file that it includes"
    if _network(made.topology) != _network(plan.topology):
        return "the network is another"
    if made.seed != plan.seed:
        return "the seed is another"
    known, found = list(map(_essence, plan.events)), list(map(_essence, made.events))
    missing, more = set(known) - set(found), set(found) - set(known)
    if missing:
        return f"it lacks {_moment(min(missing))}"
    if more:
        return f"it has {_moment(min(more))} besides"
    if known != found:
        return "events of one moment come in another order"
    if made.end_ns != plan.end_ns:
        return "it ends at another time"
    begin, other = (
        [one.to_ns for one in each.expectations if one.kind == DRIVERS] for each in (plan, made)
    )
    return (
        "" if begin == other else "the checks of an `expect drivers` without `to` begin elsewhere"
    )


def _network(found: Topology) -> Topology:
    """Without reactions, and without the lines that say it: a text may have some more in front."""
    return replace(
        found,
        reactions=(),
        services=tuple(
            replace(one, interfaces_at=_said(one.interfaces_at)) for one in found.services
        ),
        machines=tuple(_unplaced(one) for one in found.machines),
        hops_at=_said(found.hops_at),
        frames_at=_said(found.frames_at),
    )


def _unplaced(machine: PlannedMachine) -> PlannedMachine:
    lans = tuple(replace(one, file="", line=0) for one in machine.lans)
    return replace(machine, file="", line=0, lans=lans)


def _said(place: tuple[str, int]) -> tuple[str, int]:
    """Whether anything does."""
    return "", min(place[1], 1)


def _essence(event: Event) -> tuple[int, str, str, str]:
    return event.at_ns, event.kind, event.target, repr(sorted(event.args.items()))


def _moment(essence: tuple[int, str, str, str]) -> str:
    at_ns, kind, target, _ = essence
    return f"{units.duration(at_ns)} {kind} {target}"


def _actions(plan: Plan) -> Iterator[_Action]:
    found = compile_source(
        plan.source, seed=plan.seed, sources=RecordedFiles(plan), params=plan.params
    )
    draws = identities(found.model.steps, found.model.declared.whens)
    places = {step.statement.span.place for step in found.model.steps if step.order in draws}
    texts = {action_texts.number_of(name): name for name in plan.attached.includes}
    for number in sorted(texts.keys() - {0}):
        name = texts[number]
        drawn = frozenset(line for file, line in places if file == name)
        yield _Action(number, name, plan.attached.includes[name].decode("utf-8"), drawn)


def _written(plan: Plan, action: _Action) -> str:
    lines = action_texts.lines_of(action.text)
    if action.drawn and any(map(_LOOP.match, lines)):
        found = list(_events(plan, action, range(1, len(lines) + 1)))
    else:
        found = []
        for number, line in enumerate(lines, 1):
            drew = number in action.drawn
            found += _events(plan, action, (number,)) if drew else [line]
    firing = action_texts.firing_of(action.name)
    first = plan.topology.reactions[firing.reaction - 1].text.splitlines()[0] if firing else ""
    return "\n".join([f"# action {action.number} {first}".rstrip(), *found, ""])


def _events(plan: Plan, action: _Action, lines: Iterable[int]) -> Iterator[str]:
    places = {(action.name, line) for line in lines}
    for event in plan.events:
        if event.place not in places:
            continue
        if event.kind in _UNWRITTEN:
            raise RunError(
                f"action {action.number} draws in a loop that also sets properties",
                "this is not written as a text yet; `tstorm replay` does it again",
            )
        yield _statement(event)


# --- of a run in which planned events were held or skipped ---


def _event_by_event(plan: Plan, own: str) -> str:
    """Statements have other times then, and some more than one: each event is one."""
    found = script.read(own.encode("utf-8"), RecordedFiles(plan), plan.params)
    if found.quit is not None:  # it comes after what happens at the same moment
        found = replace(found, events=(*found.events, found.quit), quit=None)
    lines = [_statement(one) for one in plan.events if one.line]
    kept = found.keeping(())
    return "\n".join([kept.rstrip("\n"), "# as it was carried out, event by event", *lines, ""])


def _statement(event: Event) -> str:
    verb = _VERBS.get(event.kind, event.kind)
    if event.kind == "quit":
        return f"at {units.duration(event.at_ns)} quit"
    if event.kind == "background":
        verb += " " + units.shown("rate_bps", event.args["rate_bps"])
    elif event.kind == "clock":
        offset, drift = (units.shown(one, event.args[one]) for one in ("offset_ns", "drift_ppb"))
        verb = f"set clock={offset} drift={drift}"
    elif event.kind == "disk":
        verb = f"set disk={_disk(event)}"
    elif event.kind == "set":
        verb += "".join(f" {_assigned(name, value)}" for name, value in event.args.items())
    return f"at {units.duration(event.at_ns)} {event.target} {verb}"


def _disk(event: Event) -> str:
    fault = str(event.args["fault"])
    amounts = (event.args[one] for one in ("delay_ns", "error_ppb") if one in event.args)
    return quantities.disk(fault, int(next(amounts, 0)))


def _assigned(field: str, value: int | str) -> str:
    if field not in _ALONE:
        raise RunError(
            f"what was held or skipped sets {units.word(field)}, which is not written as text yet",
            "`tstorm replay` does all of it again, at the same moments",
        )
    word = "latency" if field == "delay_ns" else BY_FIELD[field].word
    return f"{word}={units.shown(field, value)}"


# --- what the run was told beside its text ---


def _as_it_is(_plan: Plan, text: str) -> str:
    return text


def _with_seed(plan: Plan, text: str) -> str:
    text = re.sub(r"(?m)^[ \t]*seed[ \t]+\S+.*\n?", "", text)
    return f"seed {plan.seed}\n{text}"


def _with_params(plan: Plan, text: str) -> str:
    for name, value in plan.params.items():
        line = re.compile(rf"(?m)^([ \t]*param[ \t]+{re.escape(name)}[ \t]*=[ \t]*)\S.*$")
        said = f'"{value}"'
        text = line.sub(lambda found: found[1] + said, text)  # noqa: B023
    return text


def _with_joins(plan: Plan, text: str) -> str:
    """A join by hand says nothing of who is there at first, and one in a text does."""
    topology = plan.topology
    joined = {event.target for event in plan.events if event.kind == "join" and not event.line}
    names = [topology.services[n.service].name for n in topology.nodes if n.name in joined]
    return "".join(f"at 0s {name} join\n" for name in dict.fromkeys(names)) + text
