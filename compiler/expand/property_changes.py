"""What `set` makes of the properties of one link direction. Exact integers, rounded half up.

The parser has checked what an assignment says by itself; here is what depends on the value before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler import queues
from compiler.declare.topology import FIELDS
from compiler.expand.world import LinkNow
from compiler.phrases import moment
from compiler.plan.properties import LinkState
from compiler.plan.property_limits import LINK
from tdl import ast, link_rules
from tdl.values import PPB


class Illegal(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """A change that cannot be; the caller adds the link and the time."""

    def __init__(self, what: str, why: str, hint: str, code: str = "TS0215") -> None:
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code
        super().__init__(why)


def apply(link: LinkNow, action: ast.Set | ast.Ramp, *, back: bool) -> LinkNow:
    """A changed copy. `back`: this is the direction that `down` means, `up` being the other."""
    changes: dict[str, Any] = {}
    for assignment in action.assignments:
        prop, field = assignment.prop.text, FIELDS[assignment.prop.text]
        old = getattr(link.own, field)
        if prop == "dist":
            changes[field] = assignment.word or old
        elif prop != ("up" if back else "down"):
            changes[field] = _value(prop, old, assignment)
    return _changed(link, changes, queue_given=link.queue_given or "queue_bytes" in changes)


def fields(action: ast.Set | ast.Ramp, *, back: bool) -> list[str]:
    """Of LinkState, those that the action sets in this direction."""
    props = [assignment.prop.text for assignment in action.assignments]
    return [FIELDS[prop] for prop in props if prop != ("up" if back else "down")]


def between(
    now: LinkNow, begin: LinkState, end: LinkState, changed: Sequence[str], part: tuple[int, int]
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
    return _changed(now, changes, queue_given=now.queue_given or "queue_bytes" in changes)


def remembered(link: LinkNow, field: str) -> int | str:
    """What restore() needs: the value, or -1 for a queue that follows the rate."""
    if field == "queue_bytes" and not link.queue_given:
        return -1
    value: int | str = getattr(link.own, field)
    return value


def restore(link: LinkNow, values: Mapping[str, int | str]) -> LinkNow:
    """A copy with these properties as they were (see remembered()). Raises Illegal."""
    given = link.queue_given
    if "queue_bytes" in values:
        given = values["queue_bytes"] != -1
    return _changed(link, values, queue_given=given)


def _changed(link: LinkNow, changes: Mapping[str, Any], *, queue_given: bool) -> LinkNow:
    """A copy with these values; a queue that is not given follows the rate. Raises Illegal."""
    own = link.own._replace(**changes)
    if not queue_given:
        own = own._replace(queue_bytes=queues.default_bytes(own.rate_bps))
    _check(own, link.background_bps)
    return LinkNow(own, queue_given, link.background_bps, link.background_owner)


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
    if taken and not link.rate_bps:
        why = f"cannot be unlimited: {taken:,} b/s of background are taken from it"
        raise Illegal("the rate", why, "write `background 0` first", "TS0216")
    if taken and taken >= link.rate_bps:
        why = f"would be {link.rate_bps:,} b/s, not above its background of {taken:,} b/s"
        raise Illegal("the rate", why, "lower the background first", "TS0216")
