"""What `set` makes of the properties of one link direction. Exact integers, rounded half up.

The parser has checked what an assignment says by itself; here is what depends on the value before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compiler import path_queues, queues
from compiler.declare.named.named_files import WORDS
from compiler.declare.topology import FIELDS
from compiler.expand import class_changes, path_changes
from compiler.expand.world import LinkNow
from compiler.phrases import moment
from compiler.plan.packet_class import PacketClass
from compiler.plan.properties import LinkState, least_rate
from compiler.plan.rules.property_limits import LINK
from compiler.plan.types import PlannedTrace
from tdl import ast, link_rules, quantities
from tdl.building.path_actions import AUTO
from tdl.tokens.words import PATH_WORDS
from tdl.values import PPB

AQM_TAKEN = "TS0234"  # aqm and background on one link
AQM_TRACED = "TS0169"  # aqm, or a queue in packets, and a trace on one link


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
    match: str = "",
    neck: str = "",
) -> LinkNow:
    """A changed copy. `back`: this is the direction that `down` means, `up` being the other;
    `alone`: only this one is to change; `match`: only of these packets; `neck`: of this
    bottleneck."""
    if action.only is not None:
        return _other_class(link, action, match, traces)
    if neck and link.path is not None:
        return _other_neck(link, link.path, action, traces, neck)
    changes: dict[str, Any] = {}
    said: set[str] = set()
    queue, terms = link.queue, link.path
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
        if prop == "queue":
            queue = _queue(link, assignment)
        elif assignment.delays is not None:
            changes[field] = assignment.delays.distribution or old
        elif prop in ("dist", "aqm"):
            changes[field] = old if assignment.word is None else assignment.word
        else:
            said.add(field)
            changes[field] = _value(prop, old, assignment)
    _refuse_traced(changes.get("trace", link.own.trace), said, traces)
    changed = _changed(link, changes, traces, queue, terms)
    _refuse_idle(changed.own, action, aqm=bool(changes.get("aqm")))
    return changed


def _refuse_idle(own: LinkState, action: ast.Set | ast.Ramp, *, aqm: bool) -> None:
    """What would have nothing to act on. Raises Illegal."""
    if any(one.delays for one in action.assignments) and not own.jitter_ns:
        why = "are drawn for its jitter, and it has none"
        raise Illegal("the delays of dist=", why, "set jitter= as well", "TS0181")
    if aqm and not own.rate_bps:
        why = "manages packets that wait, and without a rate none does"
        raise Illegal("the aqm", why, "give it a rate, or name the direction that has one")


def _other_class(
    link: LinkNow, action: ast.Set | ast.Ramp, match: str, traces: Sequence[PlannedTrace]
) -> LinkNow:
    try:
        some = class_changes.changed(link.some, link.own, action, match)
    except class_changes.WrongClass as problem:
        raise Illegal(problem.what, problem.why, problem.hint, problem.code) from problem
    return _changed(link, {}, traces, link.queue, link.path, some)


def _other_neck(
    link: LinkNow,
    terms: ast.PathTerms,
    action: ast.Set | ast.Ramp,
    traces: Sequence[PlannedTrace],
    neck: str,
) -> LinkNow:
    for assignment in action.assignments:
        if assignment.word in ("packets", "ns"):
            raise Illegal("the queue", "of a bottleneck counts bytes", "write queue=SIZE")
        try:
            terms = path_changes.changed_neck(terms, neck, assignment)
        except path_changes.NoChange as problem:
            what = f"the {assignment.prop.text} of the bottleneck {neck!r}, which is that"
            raise Illegal(what, problem.why, problem.hint) from problem
    return _changed(link, {}, traces, link.queue, terms)


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
    if FIELDS.get(prop) in ("rate_bps", "trace"):
        way = f"-{prop}" if prop in ("up", "down") else ""
        raise Illegal(f"the {prop}", "is no property of a measured path", f"write abw{way}=RATE")
    if prop == "aqm" or assignment.word in ("packets", "ns"):
        why = "of a measured path follows from what was measured, in bytes"
        raise Illegal(f"the {prop}", why, "write queue=SIZE")
    if prop not in path_changes.WORDS:
        return
    if prop.partition("-")[0] in ("capacity", "queue"):
        for neck in filter(None, (link.path.neck_up, link.path.neck_down)):
            name = neck.name.partition(".")[0]
            why = f"is that of the bottleneck {name!r}"
            raise Illegal(f"the {prop}", why, f"write `{name} set {prop.partition('-')[0]}=…`")
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


def fields(link: LinkNow, action: ast.Set | ast.Ramp, *, back: bool, neck: str = "") -> list[str]:
    """Of LinkState, or of the terms of a path, those that the action sets in this direction."""
    if action.only is not None:
        return class_changes.fields(action)
    if neck and link.path is not None:
        words = [one.prop.text for one in action.assignments]
        return path_changes.neck_fields(link.path, neck, words)
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
    begin: LinkNow,
    end: LinkNow,
    changed: Sequence[str],
    part: tuple[int, int],
    traces: Sequence[PlannedTrace],
) -> LinkNow:
    """A copy of `now` whose `changed` fields are so far on the way: `part` is a numerator and a
    denominator. Raises Illegal."""
    changes: dict[str, Any] = {}
    queue, some, terms = now.queue, now.some, now.path
    for field in changed:
        if terms is not None and path_changes.is_term(field):
            new = _term_between(value(begin, field), value(end, field), field, part)
            terms = path_changes.with_term(terms, field, new)
            continue
        if field == "queue_bytes":
            queue = _queue_between(begin.own, end, part)
            continue
        if field == "match":
            some = some._replace(match=end.some.match)
            continue
        first, last = value(begin, field), value(end, field)
        if field in PacketClass._fields:
            numbers: dict[str, Any] = {field: _on_the_way(first, last, part)}
            some = some._replace(**numbers)
            continue
        if field == "rate_bps" and first != last and not (first and last):
            hint = "give it a rate before, or write 'at T … set'"
            raise Illegal("the rate", "is unlimited at one end: there are no values between", hint)
        changes[field] = _on_the_way(first, last, part)
    return _changed(now, changes, traces, queue, terms, some)


def value(link: LinkNow, field: str) -> Any:
    """Of a link, of its class of packets, or of the terms of a path."""
    if field in PacketClass._fields:
        return class_changes.value(link.some, link.own, field)
    if link.path is not None and path_changes.is_term(field):
        return path_changes.term(link.path, field)
    return getattr(link.own, field)


def _term_between(first: int | None, last: int | None, field: str, part: tuple[int, int]) -> Any:
    if first is None or last is None:
        if first == last:
            return None
        what = f"the {field.rpartition('.')[2].partition('_')[0]}"
        why = "follows from the rest at one end: there are no values between"
        raise Illegal(what, why, "set it before, or write 'at T … set'")
    return _on_the_way(first, last, part)


def _on_the_way(first: int, last: int, part: tuple[int, int]) -> int:
    return first + (2 * (last - first) * part[0] + part[1]) // (2 * part[1])


def _queue_between(begin: LinkState, end: LinkNow, part: tuple[int, int]) -> ast.QueueSize | None:
    """In packets if they are counted, else in bytes; at the end what is asked for."""
    if part[0] == part[1]:
        return end.queue
    if begin.queue_packets and end.own.queue_packets:
        packets = _on_the_way(begin.queue_packets, end.own.queue_packets, part)
        return ast.QueueSize(packets, "packets")
    if begin.queue_packets or end.own.queue_packets:
        hint = "write 'at T … set'"
        raise Illegal("the queue", "counts packets at one end: there are no values between", hint)
    return ast.QueueSize(_on_the_way(begin.queue_bytes, end.own.queue_bytes, part), "bytes")


def remembered(link: LinkNow, field: str) -> Any:
    """What restore() needs: the value, of a queue as it is given."""
    if field in PacketClass._fields:
        return getattr(link.some, field)
    if link.path is not None and path_changes.is_term(field):
        return path_changes.term(link.path, field)
    return link.queue if field == "queue_bytes" else getattr(link.own, field)


def restore(link: LinkNow, values: Mapping[str, Any], traces: Sequence[PlannedTrace]) -> LinkNow:
    """A copy with these properties as they were (see remembered()). Raises Illegal."""
    terms = link.path
    some = link.some._replace(**{k: v for k, v in values.items() if k in PacketClass._fields})
    values = {k: v for k, v in values.items() if k not in PacketClass._fields}
    if terms is not None:
        for name in filter(path_changes.is_term, values):
            terms = path_changes.with_term(terms, name, values[name])
        values = {k: v for k, v in values.items() if not path_changes.is_term(k)}
    others = {field: value for field, value in values.items() if field != "queue_bytes"}
    return _changed(link, others, traces, values.get("queue_bytes", link.queue), terms, some)


def _changed(
    link: LinkNow,
    changes: Mapping[str, Any],
    traces: Sequence[PlannedTrace],
    queue: ast.QueueSize | None,
    terms: ast.PathTerms | None,
    some: PacketClass | None = None,
) -> LinkNow:
    """A copy with these values, the means of the trace that it follows then, and a queue that
    follows them; what a path has its terms. `some`: the class of packets where that may be another.
    Raises Illegal."""
    some = link.some if some is None else some
    own = link.own._replace(only=str(some), **changes)
    if own.trace:
        means: dict[str, Any] = dict(traces[own.trace - 1].means)
        own = own._replace(**means)
    if terms is not None and terms != link.path:
        try:
            own = own._replace(**path_queues.direction(terms, back=link.path_back))
        except path_queues.PathProblem as problem:
            raise Illegal(f"the {problem.what}", problem.why, problem.hint) from problem
    elif terms is None:
        size, packets = queues.sized(queue, own.rate_bps, own.aqm)
        own = own._replace(queue_bytes=size, queue_packets=packets)
    _check(own, link.background_bps, link.own)
    try:
        class_changes.check(some, own)
    except class_changes.WrongClass as problem:
        raise Illegal(problem.what, problem.why, problem.hint, problem.code) from problem
    return replace(link, own=own, queue=queue, path=terms, some=some)


def _queue(link: LinkNow, assignment: ast.Assignment) -> ast.QueueSize:
    """What is not given counts in bytes, or in packets where its aqm does."""
    own, unit = link.own, assignment.word or "bytes"
    value = assignment.value or 0
    if assignment.op is ast.Op.ASSIGN:
        return ast.QueueSize(value, unit)
    counted = ast.QueueSize(own.queue_bytes, "bytes")
    if own.queue_packets:
        counted = ast.QueueSize(own.queue_packets, "packets")
    old = link.queue or counted
    if assignment.op is not ast.Op.SCALE and unit != old.unit:
        why = f"is {quantities.queue(*old)}: it grows and shrinks in its own unit"
        raise Illegal("the queue", why, "write queue=…")
    return ast.QueueSize(_value("queue", old.value, assignment), old.unit)


def _value(prop: str, old: int, assignment: ast.Assignment) -> int:
    value, op = assignment.value, assignment.op
    rate = FIELDS[prop] == "rate_bps"
    if op is ast.Op.ASSIGN:
        return value or 0  # None: unlimited
    assert value is not None
    if rate and old == 0:
        raise Illegal("the rate", "is unlimited and has no relative change", f"write `{prop}=RATE`")
    new = path_changes.number_after(old, op, value)
    if new < 0 or (new == 0 and (rate or prop == "queue")):
        what = f"the {'rate' if rate else prop}"
        raise Illegal(what, f"would be {'negative' if new < 0 else 'zero'}", "take less off it")
    return new


def _check(link: LinkState, taken: int, before: LinkState) -> None:
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
    if link.aqm and not link.rate_bps and before.rate_bps:
        why = "cannot be unlimited: without a rate no packet waits for its aqm"
        raise Illegal("the rate", why, "write `set aqm=none` with it")
    managed = "the aqm" if link.aqm else "the queue in packets" if link.queue_packets else ""
    if taken and managed:
        why = f"and {taken:,} b/s of background: nobody knows which of its packets would be dropped"
        hint = "end one of them first: another queue, or background 0"
        raise Illegal(managed, why, hint, AQM_TAKEN)
    if link.trace and managed:
        why = "is not for links that follow a trace, whose queues count bytes"
        raise Illegal(managed, why, "end one of them first: set trace=none", AQM_TRACED)
    if taken and not link.rate_bps:
        why = f"cannot be unlimited: {taken:,} b/s of background are taken from it"
        raise Illegal("the rate", why, "write `background 0` first", "TS0216")
    least = least_rate(link)
    if taken and taken >= least:
        why = f"would be {least:,} b/s, not above its background of {taken:,} b/s"
        raise Illegal("the rate", why, "lower the background first", "TS0216")
