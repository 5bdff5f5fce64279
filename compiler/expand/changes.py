"""What `set` makes of the properties of one link direction. Exact integers, rounded half up.

The parser has checked what an assignment says by itself; here is what depends on the value before.
"""

from __future__ import annotations

from compiler import queues
from compiler.expand.world import LinkNow
from compiler.say import moment
from tdl import ast
from tdl.bounds import MAX_LATENCY_NS, MAX_QUEUE_BYTES, MAX_RATE_BPS
from tdl.values import PPB

FIELDS = {
    "latency": "delay_ns",
    "jitter": "jitter_ns",
    "loss": "loss_ppb",
    "up": "rate_bps",
    "down": "rate_bps",
    "rate": "rate_bps",
    "queue": "queue_bytes",
}


class Illegal(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """A change that cannot be; the caller adds the link and the time."""

    def __init__(self, what: str, why: str, hint: str, code: str = "TS0215") -> None:
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code
        super().__init__(why)


def apply(link: LinkNow, action: ast.Set, *, back: bool) -> LinkNow:
    """A changed copy. `back`: this is the direction that `down` means, `up` being the other."""
    new = link.copy()
    for assignment in action.assignments:
        prop = assignment.prop.text
        if prop == ("up" if back else "down"):
            continue
        if prop == "dist":
            new.distribution = assignment.word or link.distribution
            continue
        field = FIELDS[prop]
        setattr(new, field, _value(prop, getattr(link, field), assignment))
        new.queue_given = new.queue_given or prop == "queue"
    if new.rate_bps != link.rate_bps and not new.queue_given:
        new.queue_bytes = queues.default_bytes(new.rate_bps)
    _check(new)
    return new


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


def _check(link: LinkNow) -> None:
    """The rules that hold between properties, as for a `link` statement."""
    if link.jitter_ns > link.delay_ns:
        why = f"would be {moment(link.jitter_ns)}, above its latency of {moment(link.delay_ns)}"
        raise Illegal("the jitter", why, "set both, as in `set latency=10 jitter=2`")
    if link.loss_ppb > PPB:
        raise Illegal("the loss", "would be above 100%", "loss is at most 1 or 100%")
    for what, value, most in (
        ("the latency", link.delay_ns, MAX_LATENCY_NS),
        ("the rate", link.rate_bps, MAX_RATE_BPS),
        ("the queue", link.queue_bytes, MAX_QUEUE_BYTES),
    ):
        if value > most:
            raise Illegal(what, "would be beyond the range of the language", "lower it")
    taken = link.background_bps
    if taken and not link.rate_bps:
        why = f"cannot be unlimited: {taken:,} b/s of background are taken from it"
        raise Illegal("the rate", why, "write `background 0` first", "TS0216")
    if taken and taken >= link.rate_bps:
        why = f"would be {link.rate_bps:,} b/s, not above its background of {taken:,} b/s"
        raise Illegal("the rate", why, "lower the background first", "TS0216")
