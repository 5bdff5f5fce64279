"""Single occurrences of a statement that makes several events: targets, and moments that it drew.

Input: a script and its plan. Output: for each statement with several targets or moments the choice
among them, written out: `at 5s server crash 2` as `at 5s server.0;server.3 crash`, and what is
drawn in an interval (churn, `from 1s to 9s server crash 3`) as a statement for each moment. Other
statements keep their draws (docs/draws.md). Where the text with all of them written out does not
make the same timeline, there is no choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from compiler.plan.types import direction_name, element_of, named_direction
from tdl import ast
from tdl.formatter import format_statement
from tstorm import units
from tstorm.shrink.text import SourceText, Subset

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.types import Event, Topology
    from tstorm.shrink.script import Script, Written
    from tstorm.shrink.text_meaning import TextMeaning

_VERBS = {
    "bridge_down": "leave",
    "bridge_up": "join",
    "link_down": "leave",
    "link_up": "join",
}  # of events whose statements have another word
_AT_ONCE = (ast.Partition, ast.Heal, ast.Quit)  # without targets of their own


@dataclass(frozen=True, slots=True)
class _Moment:
    at_ns: int
    verb: str
    target: str


def occurrences(script: Script, reading: TextMeaning) -> Iterator[Subset]:
    plan = reading.plan(script.text)
    if plan is None:
        return
    for one in script.written.values():
        choices = _moments if _draws_moments(plan, one) else _targets
        choice = choices(script, plan, one)
        if choice is not None:
            whole = choice.text(range(choice.count))
            yield replace(choice, possible=partial(_is_same, plan, reading, whole))


def named(script: Script, reading: TextMeaning, one: Written) -> str | None:
    """The statement with the names of all its targets in it; None where that is another one."""
    plan = reading.plan(script.text)
    if plan is None or not _is_simple(one):
        return None
    made = _with_targets(one, _names(plan, one))
    text = SourceText(script.text).changed([(one.place, made)])
    return made if _is_same(plan, reading, text) else None


def _is_simple(one: Written) -> bool:
    """Whether it is one action, at one time."""
    return one.is_single and not isinstance(one.nodes[0].action, _AT_ONCE)


def _draws_moments(plan: Plan, one: Written) -> bool:
    """Links and bridges that leave in an interval are down for all of it."""
    first = one.nodes[0]
    action, lasts = first.action, first.end_ns is not None or first.open_ended
    if isinstance(action, ast.Leave) and not action.sometime:
        return lasts and any(event.kind == "leave" for event in _events(plan, one))
    return lasts and isinstance(action, ast.Join | ast.Leave | ast.Crash | ast.Churn)


def _is_same(plan: Plan, reading: TextMeaning, text: str | None) -> bool:
    """Whether both texts have one timeline."""
    other = None if text is None else reading.plan(text)
    return other is not None and _timeline(plan) == _timeline(other)


def _timeline(plan: Plan) -> list[tuple[int, str, str, Mapping[str, int | str]]]:
    return [(one.at_ns, one.kind, one.target, one.args) for one in plan.events]


def _events(plan: Plan, one: Written) -> list[Event]:
    lines = range(one.place.begin[0], one.place.end[0] + 1)
    return [event for event in plan.events if not event.file and event.line in lines]


# --- targets ---


def _targets(script: Script, plan: Plan, one: Written) -> Subset | None:
    if not _is_simple(one):
        return None
    found, text = _names(plan, one), SourceText(script.text)
    if len(found) < 2:
        return None

    def keeping(kept: Sequence[int]) -> str:
        return text.changed([(one.place, _with_targets(one, [found[at] for at in kept]))])

    return Subset(one.place.begin, f"targets in line {one.place.begin[0]}", len(found), keeping)


def _with_targets(one: Written, targets: Sequence[str]) -> str:
    node = one.nodes[0]
    where = node.selector.span
    selector = ast.Element(ast.Name(";".join(targets), where), where)
    action = node.action
    if isinstance(action, ast.Counted):
        action = replace(action, count=None)
    return format_statement(replace(node, selector=selector, action=action))


def _names(plan: Plan, one: Written) -> list[str]:
    """What it concerns, in the order of its events, both directions of a link as one."""
    targets = dict.fromkeys(event.target for event in _events(plan, one))
    return list(dict.fromkeys(_words(plan.topology, one, targets).values()))


def _words(topology: Topology, one: Written, targets: Iterable[str]) -> dict[str, str]:
    """Each as a selector: `a--b` if both directions are there, in the order of the statement."""
    found = {target: target for target in targets}
    for there, back in zip(topology.links[::2], topology.links[1::2], strict=True):
        if there.name in found and back.name in found:
            found[there.name] = found[back.name] = _both(there.name, one)
    return found


def _both(link: str, one: Written) -> str:
    src, dst, called = named_direction(link)
    turned = any(_turns(ast.drawn_from(node.selector), src, dst) for node in one.nodes)
    there = direction_name(dst, src, called) if turned else link
    return there.replace("->", "--")


def _turns(selector: ast.Selector, src: str, dst: str) -> bool:
    """Whether it names this link with its other end first."""
    if not isinstance(selector, ast.LinkSelector):
        return False
    ends = selector.a.name.text, selector.b.name.text
    return ends == (element_of(dst), element_of(src)) != (element_of(src), element_of(dst))


# --- moments ---


def _moments(script: Script, plan: Plan, one: Written) -> Subset | None:
    if not _is_simple(one):
        return None
    found, text = list(_drawn(plan, one)), SourceText(script.text)
    if len(found) < 2:
        return None
    line = one.place.begin[0]
    between = text.newline + text.indent(line)

    def keeping(kept: Sequence[int]) -> str:
        shown = (found[at] for at in kept)
        lines = [f"at {units.duration(m.at_ns)} {m.target} {m.verb}" for m in shown]
        return text.changed([(one.place, between.join(lines))])

    return Subset(one.place.begin, f"occurrences in line {line}", len(found), keeping)


def _drawn(plan: Plan, one: Written) -> Iterator[_Moment]:
    """A crash with the join that replaces it is a restart."""
    events = _events(plan, one)
    by_time: dict[int, list[Event]] = {}
    for event in events:
        by_time.setdefault(event.at_ns, []).append(event)
    for at_ns, together in by_time.items():
        kinds = [event.kind for event in together]
        words = _words(plan.topology, one, [event.target for event in together])
        if kinds == ["crash", "join"] and len(words) == 1:
            yield _Moment(at_ns, "restart", together[0].target)
            continue
        seen: set[tuple[str, str]] = set()
        for event in together:
            verb = _VERBS.get(event.kind, event.kind)
            target = words[event.target]
            if (verb, target) not in seen:
                seen.add((verb, target))
                yield _Moment(at_ns, verb, target)
