"""What a queue may drop before it is full: `codel;target:5ms;ecn` to one canonical text, and back.

The canonical text has every parameter of its discipline, in the order below, as an integer in its
base unit (ns, bytes, ppb): `codel;target:5000000;interval:100000000;ecn:0`. '' is a drop-tail
queue. The plan and pktd have the same text. Words and defaults are those of tc(8): tc-codel(8),
tc-fq_codel(8), tc-pie(8), tc-red(8); a limit is the queue's own, `queue=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tdl import quantities, values
from tdl.bounds import MAX_LATENCY_NS, MAX_QUEUE_BYTES
from tdl.suggest import did_you_mean
from tdl.values import ValueProblem

NONE = "none"
CODE = "TS0166"


class Parameter(NamedTuple):
    name: str
    read: Callable[[str], int]
    write: Callable[[int], str]
    default: int
    least: int
    most: int


class Discipline(NamedTuple):
    parameters: tuple[Parameter, ...]
    ecn: int  # whether it marks where nothing is said
    packets: int  # that its queue has room for where `queue=` is not given; 0: as other queues


def _time(name: str, default_ms: int, least_ns: int = 1) -> Parameter:
    return Parameter(
        name, values.latency, quantities.time, default_ms * 10**6, least_ns, MAX_LATENCY_NS
    )


def _number(name: str, default: int, least: int, most: int) -> Parameter:
    return Parameter(name, values.whole, str, default, least, most)


def _size(name: str, default: int, least: int, most: int) -> Parameter:
    return Parameter(name, values.size, quantities.size, default, least, most)


_CODEL = (_time("target", 5), _time("interval", 100))
_FLOWS = (_size("quantum", 1500, 256, 1 << 20), _number("flows", 1024, 1, 16_384))
_PIE = (
    _time("target", 15),
    _time("tupdate", 15, 10**6),
    _number("alpha", 2, 0, 32),
    _number("beta", 20, 0, 32),
)
_RED = (
    _size("min", 0, 0, MAX_QUEUE_BYTES),  # 0: by the size of the queue, as tc-red(8) does
    _size("max", 0, 0, MAX_QUEUE_BYTES),
    Parameter("probability", values.probability, quantities.share, 20_000_000, 1, values.PPB),
    _size("avpkt", 1000, 1, 65_535),
    _number("burst", 0, 0, 715_827),
)
DISCIPLINES: Mapping[str, Discipline] = {
    "codel": Discipline(_CODEL, 0, 1000),
    "fq_codel": Discipline(_CODEL + _FLOWS, 1, 10_240),
    "pie": Discipline(_PIE, 0, 1000),
    "red": Discipline(_RED, 0, 0),
}
_FLAGS = {"ecn": 1, "noecn": 0}


def room(text: str) -> int:
    """For how many packets a queue has room that nobody has given a size; 0: as other queues."""
    return DISCIPLINES[text.partition(";")[0]].packets if text else 0


def canonical(words: Sequence[str]) -> str:
    """Of a list as written, its name first. Raises ValueProblem."""
    name, *said = words
    if name == NONE and not said:
        return ""
    if name == NONE:
        raise ValueProblem(CODE, "none stands alone", "it is a queue that drops when it is full")
    if name not in DISCIPLINES:
        hint = did_you_mean(name, (*DISCIPLINES, NONE)) or f"one of {', '.join(DISCIPLINES)}, none"
        raise ValueProblem(CODE, f"no queue is managed by '{name}'", hint)
    discipline = DISCIPLINES[name]
    known = {row.name: row for row in discipline.parameters}
    found: dict[str, int] = {}
    for word in said:
        key, colon, value = word.partition(":")
        flag = not colon and key in _FLAGS
        if ("ecn" if flag else key) in found:
            raise ValueProblem("TS0013", f"{key} is given twice", "keep one of them")
        if flag:
            found["ecn"] = _FLAGS[key]
        elif key in known and colon:
            found[key] = _amount(known[key], value)
        else:
            raise _unknown(name, word, known)
    amounts = [(row.name, found.get(row.name, row.default)) for row in discipline.parameters]
    _check(dict(amounts))
    ecn = found.get("ecn", discipline.ecn)
    return ";".join([name, *(f"{key}:{value}" for key, value in (*amounts, ("ecn", ecn)))])


def _amount(row: Parameter, value: str) -> int:
    amount = row.read(value)
    if not row.least <= amount <= row.most:
        hint = f"from {row.write(row.least)} to {row.write(row.most)}"
        raise ValueProblem(CODE, f"a {row.name} of {value} is out of range", hint)
    return amount


def _unknown(name: str, word: str, known: Mapping[str, Parameter]) -> ValueProblem:
    key, colon, _ = word.partition(":")
    has = (*known, *_FLAGS)
    if key == "limit":
        hint: str | None = "the limit is the queue's own: queue=1000pkt or queue=100KB"
    elif key in known:
        hint = f"write {key}:{known[key].write(known[key].default)}"
    elif key in _FLAGS:
        hint = f"'{key}' stands alone, without a value"
    else:
        hint = did_you_mean(key, has) or f"{name} has: {', '.join(has)}"
    message = f"{name} has no '{key}'"
    if key in known or (colon and key in _FLAGS):
        message = f"{key} needs a value" if key in known else f"{key} has no value"
    return ValueProblem(CODE, message, hint)


def _check(amounts: Mapping[str, int]) -> None:
    """What parameters are together."""
    least, most = amounts.get("min", 0), amounts.get("max", 0)
    if bool(least) != bool(most):
        raise ValueProblem(CODE, "red takes min and max together", "such as min:30KB;max:90KB")
    if least and least >= most:
        sizes = f"min of {quantities.size(least)} is not below the max of {quantities.size(most)}"
        raise ValueProblem(CODE, f"the {sizes}", "packets are dropped from min on, all from max on")
    target, interval = amounts.get("target", 0), amounts.get("interval", 0)
    if interval and target >= interval:
        times = f"target of {quantities.time(target)} is not below the interval of"
        hint = "the target is 5 to 10 % of the interval (RFC 8289)"
        raise ValueProblem(CODE, f"the {times} {quantities.time(interval)}", hint)


def written(text: str) -> str:
    """The canonical text as the language has it, with what is not the default."""
    if not text:
        return NONE
    name, *pairs = text.split(";")
    discipline = DISCIPLINES[name]
    amounts = {key: int(value) for key, _, value in (pair.partition(":") for pair in pairs)}
    words = [
        f"{row.name}:{row.write(amounts[row.name])}"
        for row in discipline.parameters
        if amounts[row.name] != row.default
    ]
    ecn = amounts["ecn"]
    flag = [] if ecn == discipline.ecn else ["ecn" if ecn else "noecn"]
    return ";".join([name, *words, *flag])
