"""The further class of a link's packets: which are of it, and what these meet.

Text of a plan: `tcp:5432;udp;from:a.0;to:b.1;delay:50000000;loss:100000000`. What they are comes
first, in protocols and instances, then their values in the order of VALUES, each once; '' for no
class. What it has no value for is the link's own, whatever that becomes. Source: docs/tdl.md, "Only
some traffic".
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from compiler.plan.format import PPB

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

VALUES = ("delay", "jitter", "loss", "reject")  # words of PROPERTIES
ENDS = ("from", "to")
MAX_PROTOCOLS, MAX_ENDS = 16, 64  # of each end
MAX_PORT = 65_535
_DAY_NS = 86_400 * 10**9
_MOST = {"delay": _DAY_NS, "jitter": _DAY_NS, "loss": PPB, "reject": PPB}
_WORD = r"[A-Za-z_][A-Za-z0-9_-]{0,62}\.[0-9]{1,5}"
_NAME = rf"{_WORD}(?:\.{_WORD})?"  # an instance, also one of a machine
_MATCH = rf"(?:icmp|(?:sctp|tcp|udp)(?::[1-9][0-9]{{0,4}})?|(?:from|to):{_NAME})"
_VALUE = rf"(?:{'|'.join(VALUES)}):[0-9]{{1,19}}"
FORM = rf"{_MATCH}(?:;{_MATCH}){{0,143}}(?:;{_VALUE}){{1,4}}|"


class PacketClass(NamedTuple):
    """`match`: what they are, as in the text; of the values None is the link's own."""

    match: str = ""
    only_delay: int | None = None
    only_jitter: int | None = None
    only_loss: int | None = None
    only_reject: int | None = None

    @property
    def values(self) -> dict[str, int]:
        """Those that it has, by the names of VALUES."""
        both = zip(VALUES, self[1:], strict=True)
        return {name: value for name, value in both if value is not None}

    def __str__(self) -> str:
        words = [f"{name}:{value}" for name, value in self.values.items()]
        return ";".join([self.match, *words]) if words else ""


NO_CLASS = PacketClass()


def field(name: str) -> str:
    """Of PacketClass."""
    return f"only_{name}"


def parse(text: str) -> PacketClass:
    """ValueError where the text is not as it is written here."""
    match: list[str] = []
    values: dict[str, int] = {}
    for word in text.split(";") if text else ():
        name, _, value = word.partition(":")
        if name not in VALUES:
            match.append(word)
        elif field(name) in values:
            raise ValueError(f"{name} is given twice")
        else:
            values[field(name)] = int(value)
    return PacketClass(";".join(match), **values)


def is_sound(text: str, names: Container[str]) -> bool:
    """Of a text of FORM: whether its numbers are within bounds, and its instances among `names`."""
    if not text:
        return True
    try:
        found = parse(text)
    except ValueError:
        return False
    words = [word.partition(":") for word in found.match.split(";")]
    ports = [int(value or 1) for head, _, value in words if head not in ENDS]
    ends = {end: [name for head, _, name in words if head == end] for end in ENDS}
    return (
        len(ports) <= MAX_PROTOCOLS
        and all(port <= MAX_PORT for port in ports)
        and all(len(some) <= MAX_ENDS for some in ends.values())
        and all(name in names for some in ends.values() for name in some)
        and all(value <= _MOST[name] for name, value in found.values.items())
    )


def of_some_packets(plan: Plan) -> set[str]:
    """Of VALUES, those that a class of packets of some link ever has."""
    texts = {str(event.args["only"]) for event in plan.events if event.args.get("only")}
    texts |= {link.state.only for link in plan.topology.links}
    return {name for text in texts for name in parse(text).values}


def numbered(text: str, numbers: Mapping[str, Sequence[int]]) -> str:
    """With the numbers of nodes in place of their names."""
    if not text:
        return text
    words = []
    for word in text.split(";"):
        head, _, name = word.partition(":")
        ends = numbers[name] if head in ENDS else ()
        words += [f"{head}:{number}" for number in ends] or [word]
    return ";".join(words)
