"""What `only=` makes of the further class of packets of one link direction.

Input: the class before, the link's own values, and the statement. Output: the class after. Exact
integers, rounded half up. Source: docs/tdl.md, "Only some traffic".
"""

from __future__ import annotations

from compiler.declare.topology import FIELDS
from compiler.expand import path_changes
from compiler.phrases import moment
from compiler.plan.packet_class import NO_CLASS, PacketClass, field
from compiler.plan.properties import BY_FIELD, BY_WORD, LinkState
from compiler.plan.rules.property_limits import LINK
from tdl import ast
from tdl.values import PPB

CODE = "TS0215"
SECOND_CLASS = "TS0249"


class WrongClass(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """What cannot be, in words around the name of the link."""

    def __init__(self, what: str, why: str, hint: str, code: str = CODE) -> None:
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code
        super().__init__(why)


def fields(action: ast.Set | ast.Ramp) -> list[str]:
    """Of PacketClass, those that the action sets."""
    if action.only is None or action.only.is_none:
        return list(PacketClass._fields)
    return ["match", *(field(_name(one)) for one in action.assignments)]


def changed(
    before: PacketClass, own: LinkState, action: ast.Set | ast.Ramp, match: str
) -> PacketClass:
    """`match`: which packets the statement is about. Raises WrongClass."""
    if action.only is None or action.only.is_none:
        return NO_CLASS
    if before.values and before.match != match:
        why = f"is {before.match} already (a link has one)"
        hint = "write 'set only=none' before, or name the same packets"
        raise WrongClass("the only=", why, hint, SECOND_CLASS)
    after = before if before.values else NO_CLASS
    values = {field(_name(one)): _value(after, own, one, match) for one in action.assignments}
    return after._replace(match=match, **values)


def value(link_class: PacketClass, own: LinkState, name: str) -> int | str:
    """What the packets of the class have, by field of it: where it says nothing, the link's own."""
    found: int | str | None = getattr(link_class, name)
    if found is not None:
        return found
    return int(getattr(own, BY_WORD[name.removeprefix("only_")].field))


def check(found: PacketClass, own: LinkState) -> None:
    """The rules that hold between its values and the link's own. Raises WrongClass."""
    delay_ns = own.delay_ns if found.only_delay is None else found.only_delay
    jitter_ns = own.jitter_ns if found.only_jitter is None else found.only_jitter
    if found.values and jitter_ns > delay_ns:
        why = f"would be {moment(jitter_ns)}, above their latency of {moment(delay_ns)}"
        hint = "set both, as in `set latency=10 jitter=2 only=…`"
        raise WrongClass(f"the jitter of only={found.match}", why, hint)


def _name(assignment: ast.Assignment) -> str:
    return BY_FIELD[FIELDS[assignment.prop.text]].word


def _value(before: PacketClass, own: LinkState, assignment: ast.Assignment, match: str) -> int:
    """A relative one is of what these packets have now."""
    word, value = assignment.prop.text, assignment.value or 0
    if assignment.op is ast.Op.ASSIGN:
        return value
    of_link = FIELDS[word]
    now = before.values.get(_name(assignment), getattr(own, of_link))
    new = path_changes.number_after(now, assignment.op, value)
    if new < 0:
        raise WrongClass(f"the {word} of only={match}", "would be negative", "take less off it")
    if new > LINK[of_link]:
        most = "above 100%" if LINK[of_link] == PPB else "beyond the range of the language"
        raise WrongClass(f"the {word} of only={match}", f"would be {most}", "lower it")
    return new
