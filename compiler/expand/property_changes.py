"""What `set` makes of the properties of one link direction. Exact integers, rounded half up.

The parser has checked what an assignment says by itself; here is what depends on the value before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compiler import path_queues, queues
from compiler.declare.topology import FIELDS
from compiler.declare.trace_numbers import WORDS
from compiler.expand import path_changes
from compiler.expand.world import LinkNow
from compiler.phrases import moment
from compiler.plan.properties import LinkState, least_rate
from compiler.plan.property_limits import LINK
from compiler.plan.types import PlannedTrace
from tdl import ast, link_rules
from tdl.path_actions import AUTO
from tdl.values import PPB
from tdl.words import PATH_WORDS


class Illegal(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """A change that cannot be; the caller adds the link and the time."""

    def __init__(self, what: str, why: str, hint: str, code: str = "TS0215") -> None:
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code
        super().__init__(why)


def apply(
    link: LinkNow,
    action: ast.Set | ast.Ramp,
    traces: Sequence[PlannedTrace],
    *,
    back: bool,
    alone: bool,
) -> LinkNow:
    """A changed copy. `back`: this is the direction that `down` means, `up` being the other;
    `alone`: only this one is to change."""
    changes: dict[str, Any] = {}
    said: set[str] = set()
    terms = link.path
    for assignment in action.assignments:
        _check_kind(link, assignment, alone=alone, ramp=isinstance(action, ast.Ramp))
    for assignment in _of_direction(action, back=back):
        if FIELDS.get(assignment.prop.text) == "trace":
            changes |= _other_trace(link.own, assignment.trace, traces)
    for assignment in _of_direction(action, back=back):
        prop = assignment.prop.text
        if terms is not None and prop in path_changes.WORDS:
            terms = _changed_terms(terms, assignment, flipped=back != link.path_back)
            continue
        field = FIELDS[prop]
        if field == "trace":
            continue
        old = getattr(link.own, field)
        if prop == "dist":
            changes[field] = assignment.word or old
        else:
            said.add(field)
            changes[field] = _value(prop, old, assignment)
    _refuse_traced(changes.get("trace", link.own.trace), said, traces)
    queue_given = link.queue_given or "queue_bytes" in changes
    return _changed(link, changes, traces, queue_given=queue_given, terms=terms)


def _of_direction(action: ast.Set | ast.Ramp, *, back: bool) -> list[ast.Assignment]:
    others = ("up", "trace-up") if back else ("down", "trace-down")
    return [one for one in action.assignments if one.prop.text not in others]


def _other_trace(
    own: LinkState, trace: ast.TraceFile | None, traces: Sequence[PlannedTrace]
) -> dict[str, int]:
    """What it has itself, and nothing in place of what only the trace before it had."""
    before = {field: 0 for field, _ in traces[own.trace - 1].means} if own.trace else {}
    found = (trace.number, dict(trace.means)) if trace is not None else (0, {})
    return {**before, "trace": found[0], **found[1]}


def _refuse_traced(number: int, said: set[str], traces: Sequence[PlannedTrace]) -> None:
    if not number:
        return
    trace = traces[number - 1]
    for field, _ in trace.means:
        if field in said:
            why = f"is that of the trace {trace.name!r}, which it follows"
            hint = "write 'set trace=none' with it, or leave it to the trace"
            raise Illegal(f"the {WORDS[field]}", why, hint, "TS0237")


def _check_kind(link: LinkNow, assignment: ast.Assignment, *, alone: bool, ramp: bool) -> None:
    """Some properties only links have, and some only measured paths. Raises Illegal."""
    prop = assignment.prop.text
    if link.path is None:
        if prop in PATH_WORDS or assignment.word == AUTO:
            why = "is a property of measured paths, not of links,"
            raise Illegal(f"the {prop}", why, "links have rate=, queue= and latency=")
        return
    if FIELDS.get(prop) == "rate_bps":
        why = "is no property of a measured path"
        raise Illegal(f"the {prop}", why, f"write abw{'' if prop == 'rate' else f'-{prop}'}=RATE")
    if FIELDS.get(prop) == "trace":
        raise Illegal(f"the {prop}", "is no property of a measured path", "write abw=RATE")
    if prop not in path_changes.WORDS:
        return
    if ramp:
        raise Illegal(f"the {prop}", "changes at once, as it is of a path,", "write 'at T … set'")
    if alone:
        why = "is of both directions of a path, whose queues follow from it,"
        raise Illegal(f"the {prop}", why, "name the path with --")


def _changed_terms(
    terms: ast.PathTerms, assignment: ast.Assignment, *, flipped: bool
) -> ast.PathTerms:
    try:
        return path_changes.changed(terms, assignment, flipped=flipped)
    except path_changes.NoChange as problem:
        raise Illegal(f"the {assignment.prop.text}", problem.why, problem.hint) from problem


def fields(link: LinkNow, action: ast.Set | ast.Ramp, *, back: bool) -> list[str]:
    """Of LinkState, or of the terms of a path, those that the action sets in this direction."""
    found: dict[str, None] = {}
    for one in _of_direction(action, back=back):
        prop = one.prop.text
        if link.path is not None and prop in path_changes.WORDS:
            found |= dict.fromkeys(path_changes.fields(prop, flipped=back != link.path_back))
        else:
            found[FIELDS[prop]] = None
        if one.trace is not None:
            found |= dict.fromkeys(field for field, _ in one.trace.means)
    return list(found)


def between(
    now: LinkNow,
    begin: LinkState,
    end: LinkState,
    changed: Sequence[str],
    part: tuple[int, int],
    traces: Sequence[PlannedTrace],
) -> LinkNow:
    """A copy of `now` whose `changed` fields are so far on the way: `part` is a numerator and a
    denominator. Raises Illegal."""
    changes: dict[str, Any] = {}
    for field in changed:
        first, last = getattr(begin, field), getattr(end, field)
        if field == "rate_bps" and first != last and not (first and last):
            hint = "give it a rate before, or write 'at T … set'"
            raise Illegal("the rate", "is unlimited at one end: there are no values between", hint)
        changes[field] = first + (2 * (last - first) * part[0] + part[1]) // (2 * part[1])
    given = now.queue_given or "queue_bytes" in changes
    return _changed(now, changes, traces, queue_given=given, terms=now.path)


def remembered(link: LinkNow, field: str) -> Any:
    """What restore() needs: the value, or -1 for a queue that follows the rate."""
    if link.path is not None and field in ast.PathTerms._fields:
        return getattr(link.path, field)
    if field == "queue_bytes" and not link.queue_given:
        return -1
    return getattr(link.own, field)


def restore(link: LinkNow, values: Mapping[str, Any], traces: Sequence[PlannedTrace]) -> LinkNow:
    """A copy with these properties as they were (see remembered()). Raises Illegal."""
    given, terms = link.queue_given, link.path
    if terms is not None:
        terms = terms._replace(**{k: v for k, v in values.items() if k in terms._fields})
        values = {k: v for k, v in values.items() if k not in terms._fields}
    elif "queue_bytes" in values:
        given = values["queue_bytes"] != -1
    return _changed(link, values, traces, queue_given=given, terms=terms)


def _changed(
    link: LinkNow,
    changes: Mapping[str, Any],
    traces: Sequence[PlannedTrace],
    *,
    queue_given: bool,
    terms: ast.PathTerms | None,
) -> LinkNow:
    """A copy with these values, and the means of the trace that it follows then; a queue that is
    not given follows the rate, and what a path has its terms. Raises Illegal."""
    own = link.own._replace(**changes)
    if own.trace:
        means: dict[str, Any] = dict(traces[own.trace - 1].means)
        own = own._replace(**means)
    if terms is not None and terms != link.path:
        try:
            own = own._replace(**path_queues.direction(terms, back=link.path_back))
        except path_queues.PathProblem as problem:
            raise Illegal(f"the {problem.what}", problem.why, problem.hint) from problem
    elif terms is None and not queue_given:
        own = own._replace(queue_bytes=queues.default_bytes(own.rate_bps))
    _check(own, link.background_bps)
    return replace(link, own=own, queue_given=queue_given, path=terms)


def _value(prop: str, old: int, assignment: ast.Assignment) -> int:
    value, op = assignment.value, assignment.op
    rate = FIELDS[prop] == "rate_bps"
    if op is ast.Op.ASSIGN:
        return value or 0  # None: unlimited
    assert value is not None
    if rate and old == 0:
        raise Illegal("the rate", "is unlimited and has no relative change", f"write `{prop}=RATE`")
    if op is ast.Op.SCALE:
        new = (old * value + PPB // 2) // PPB
    else:
        new = old + value if op is ast.Op.ADD else old - value
    if new < 0 or (new == 0 and (rate or prop == "queue")):
        what = f"the {'rate' if rate else prop}"
        raise Illegal(what, f"would be {'negative' if new < 0 else 'zero'}", "take less off it")
    return new


def _check(link: LinkState, taken: int) -> None:
    """The rules that hold between properties, as for a `link` statement."""
    if link.jitter_ns > link.delay_ns:
        why = f"would be {moment(link.jitter_ns)}, above its latency of {moment(link.delay_ns)}"
        raise Illegal("the jitter", why, "set both, as in `set latency=10 jitter=2`")
    rule = link_rules.broken(link._asdict())
    if rule is not None:
        raise Illegal(f"the {rule.word}", rule.why, rule.hint)
    for word, field in FIELDS.items():
        if field not in LINK or word in ("up", "down") or getattr(link, field) <= LINK[field]:
            continue
        if LINK[field] == PPB:
            raise Illegal(f"the {word}", "would be above 100%", f"{word} is at most 1 or 100%")
        raise Illegal(f"the {word}", "would be beyond the range of the language", "lower it")
    if taken and link.trace:
        why = f"cannot be followed: {taken:,} b/s of background are taken from the link"
        raise Illegal("the trace", why, "write `background 0` first", "TS0238")
    if taken and not link.rate_bps:
        why = f"cannot be unlimited: {taken:,} b/s of background are taken from it"
        raise Illegal("the rate", why, "write `background 0` first", "TS0216")
    least = least_rate(link)
    if taken and taken >= least:
        why = f"would be {least:,} b/s, not above its background of {taken:,} b/s"
        raise Illegal("the rate", why, "lower the background first", "TS0216")
