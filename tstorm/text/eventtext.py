"""`tstorm explain --event`: where an event comes from and what it did, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compiler.plan.parts import action_texts
from tstorm import output, units
from tstorm.notes import action, argument

if TYPE_CHECKING:
    from compiler.analysis.effects import Effects
    from compiler.declare.steps import StatementStep
    from compiler.expand.recorder import Draw, DrawnSample, Moment, Origin
    from compiler.origin import EventStory
    from tdl import ast
    from tstorm.notes import Statements

SHOWN_DRAWS = 20
SHOWN_PAIRS = 4

_WORDS = {
    "lost": "lost their path",
    "gained": "gained a path",
    "other_route": "have another route",
    "other_properties": "have other properties on the same route",
}
_OUTCOMES = {
    "taken": "taken",
    "repeated": "taken already, drawn again",
    "listed": "taken from the legal ones that were left",
}


# --- text ----------------------------------------------------------------------------------------


def show(story: EventStory, statements: Statements, end_ns: int) -> None:
    """Prints it."""
    event = story.event
    output.line(f"event {event.seq} at {units.duration(event.at_ns)}: {action(event)}")
    for part in (_statement, _moment, _target):
        for text in part(story, statements):
            output.line(text)
    for text in _effects(story.effects, event.target, ends=event.at_ns == end_ns):
        output.line(text)


def _statement(story: EventStory, statements: Statements) -> Iterator[str]:
    step = story.origin.step
    if step is None:
        yield f"  {statements.said(('', 0))}"
        return
    from tdl.presentation import excerpt

    if origin := _who(story):
        yield f"done while the run went on: {origin}"
    span = step.statement.span
    shown, carets = excerpt(statements.line(span.place), span)
    margin = " " * (len(str(span.line)) + 1)
    yield f"{statements.place(span.place)}:{span.col}"
    yield f" {span.line} | {shown}"
    yield f"{margin} | {carets}"
    if span.note:
        yield f"{margin} = with {span.note}"


def _who(story: EventStory) -> str:
    """Who has asked for it, where that was not the experiment's text alone."""
    match _origin(story):
        case {"by": "condition", "action": number, "reaction": which, "firing": time}:
            return f"action {number}, by `when` {which} of the text, its firing {time}"
        case {"by": "manual", "action": number}:
            return f"action {number}, by hand"
    return ""


def _origin(story: EventStory) -> dict[str, object]:
    number = action_texts.number_of(story.event.file)
    fired = action_texts.firing_of(story.event.file)
    if fired is not None:
        when = {"reaction": fired.reaction, "firing": fired.time}
        return {"by": "condition", "action": number, **when}
    return {"by": "manual", "action": number} if number else {"by": "plan"}


def _moment(story: EventStory, _: Statements) -> Iterator[str]:
    step, moment = story.origin.step, story.origin.moment
    if step is None:
        return
    statement = step.statement
    yield ""
    at, start = units.duration(story.event.at_ns), units.duration(statement.start_ns)
    if moment is None:
        inside = story.event.at_ns != statement.start_ns
        yield f"moment: {at}, " + (f"by the interval from {start} on" if inside else "as written")
        return
    assert step.end_ns is not None
    draw, count = moment.draws[moment.chosen], len(moment.draws)
    yield (
        f"moment: {at}, drawn from the interval: the {_nth(moment.rank + 1)} of {count:,} between "
        f"{start} and {units.duration(step.end_ns)}, {start} + {draw.value:,} ns"
    )
    yield from _key(story)
    yield f"  draw {moment.chosen + 1:,} of {_draw(draw)}"


def _nth(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number:,}th"
    return f"{number:,}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _key(story: EventStory) -> Iterator[str]:
    identity = story.origin.identity
    if identity is not None and story.key is not None:
        yield f"  key {story.key.hex()}"
        yield f"    of {identity.text!r}, the {_nth(identity.ordinal + 1)} such statement"


def _target(story: EventStory, _: Statements) -> Iterator[str]:
    origin, target = story.origin, story.event.target
    if origin.step is None or not target:
        return
    yield ""
    if not origin.samples:
        yield f"target: {target}, without a draw: {_undrawn(origin.step)}"
        return
    yield f"target: {target}, drawn"
    if origin.moment is None:
        yield from _key(story)
    for sample in origin.samples:
        yield from _sample(sample, target)
    taken = {pick.candidate for sample in origin.samples for pick in sample.picks}
    if origin.step is not None and story.event.kind == "join" and target not in taken:
        yield "  the draw decides that one more instance joins: the next one of the service"
    for coin in origin.coins:
        verdict = "replaced" if story.event.kind == "join" else "not replaced"
        yield f"  {_draw(coin)}: {verdict}"


def _undrawn(step: StatementStep) -> str:
    """What a statement hits that draws nothing."""
    from tdl import ast

    if isinstance(step.statement.action, ast.Partition):
        return "a link of the cut between the groups"
    if isinstance(step.statement.action, ast.Heal):
        return "a link that a partition cut"
    return "all that the statement can apply to"


def _sample(sample: DrawnSample, target: str) -> Iterator[str]:
    among = f"{sample.size:,} candidates, {sample.first} to {sample.last}"
    if sample.size == 1:
        among = f"1 candidate, {sample.first}"
    yield f"  among {among}, of which {sample.legal:,} {_are(sample.legal)} {sample.word}"
    last = next((i for i, pick in enumerate(sample.picks) if pick.candidate == target), 0)
    shown = sorted({*range(min(SHOWN_DRAWS, len(sample.picks))), last})
    for i in shown:
        pick = sample.picks[i]
        outcome = _OUTCOMES.get(pick.outcome, f"not {sample.word}")
        yield f"  {_draw(pick.draw)}: {pick.candidate}, {outcome}"
    if len(shown) < len(sample.picks):
        yield f"  … and {len(sample.picks) - len(shown):,} more draws (all with --format json)"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _draw(draw: Draw) -> str:
    """`who: block 0 word 1 is 0x…, its low 2 bits 3, too large; …: 1`."""
    if not draw.words:
        return f"{draw.label}: there is one possibility, 0"
    bits = (draw.bound - 1).bit_length()
    low = "low bit" if bits == 1 else f"low {bits} bits"
    parts = [
        f"block {word.block} word {word.place} is 0x{word.value:016x}, "
        f"{low} {word.value & (1 << bits) - 1:,}"
        for word in draw.words
    ]
    return f"{draw.label}, below {draw.bound:,}: " + " (too large); ".join(parts)


def _effects(effects: Effects, target: str, *, ends: bool) -> Iterator[str]:
    yield ""
    before, after = effects.target_before, effects.target_after
    for name in dict.fromkeys((*before, *after)):
        one = before.get(name, after.get(name, 0))
        nothing = "" if isinstance(one, str) else 0  # rare ones are there where they are more
        was, is_now = before.get(name, nothing), after.get(name, nothing)
        if was != is_now:
            old, new = argument(name, was), argument(name, is_now)
            yield f"changed: {target} {old} -> {new.partition('=')[2]}"
    others = effects.together - 1
    with_others = ""
    if others:
        word = "other event" if others == 1 else f"{others:,} other events"
        with_others = f", with the {word} of this instant"
    changed = sum(pairs.count for pairs in effects.changed.values())
    yield f"paths{with_others}: {changed:,} of {effects.pairs:,} pairs changed"
    for kind, pairs in effects.changed.items():
        if not pairs.count:
            continue
        names = [f"{src} -> {dst}" for src, dst in pairs.examples[:SHOWN_PAIRS]]
        line = f"  {pairs.count:,} {_WORDS[kind]}: {', '.join(names)}"
        if pairs.count > SHOWN_PAIRS:
            line += f" … and {pairs.count - SHOWN_PAIRS:,} more"
        yield line
    if ends:
        yield "  (the experiment ends at this instant, so that nothing of this is seen)"


# --- JSON ----------------------------------------------------------------------------------------


def record(story: EventStory, statements: Statements) -> dict[str, Any]:
    """The whole story as one object."""
    origin, effects = story.origin, story.effects
    return {
        "event": statements.record(story.event),
        "origin": _origin(story),
        "span": _span(origin),
        "key": None if story.key is None else story.key.hex(),
        "identity": None
        if origin.identity is None
        else {"text": origin.identity.text, "ordinal": origin.identity.ordinal},
        "moment": None if origin.moment is None else _moment_record(origin.moment),
        "samples": [_sample_record(sample) for sample in origin.samples],
        "replace": [_draw_record(draw) for draw in origin.coins],
        "target": {"before": dict(effects.target_before), "after": dict(effects.target_after)},
        "events_at_this_instant": effects.together,
        "pairs": effects.pairs,
        "paths": {
            kind: {"count": pairs.count, "examples": [list(pair) for pair in pairs.examples]}
            for kind, pairs in effects.changed.items()
        },
    }


def _span(origin: Origin) -> dict[str, int] | None:
    if origin.step is None:
        return None
    return span_record(origin.step.statement.span)


def span_record(span: ast.Span) -> dict[str, int]:
    """For JSON."""
    return {
        "line": span.line,
        "col": span.col,
        "end_line": span.end_line,
        "end_col": span.end_col,
    }


def _moment_record(moment: Moment) -> dict[str, Any]:
    return {
        "draws": [_draw_record(draw) for draw in moment.draws],
        "chosen": moment.chosen,
        "rank": moment.rank,
    }


def _sample_record(sample: DrawnSample) -> dict[str, Any]:
    return {
        "candidates": sample.size,
        "first": sample.first,
        "last": sample.last,
        "legal": sample.legal,
        "legal_are": sample.word,
        "picks": [
            {
                "candidate": pick.candidate,
                "outcome": pick.outcome,
                "draw": _draw_record(pick.draw),
            }
            for pick in sample.picks
        ],
    }


def _draw_record(draw: Draw) -> dict[str, Any]:
    return {
        "stream": draw.label,
        "below": draw.bound,
        "value": draw.value,
        "words": [
            {"block": word.block, "place": word.place, "hex": f"{word.value:016x}"}
            for word in draw.words
        ],
    }
