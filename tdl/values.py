"""The text of a number to an exact integer: times in ns, rates in b/s, shares in ppb, sizes in B.

Everything is integer arithmetic; what is not a whole number of the target unit is an error, never
rounded. Every function takes the text of a token and raises ValueProblem. Source: docs/tdl.md,
"Numbers and units".
"""

from __future__ import annotations

import re
from functools import lru_cache

from tdl.bounds import (
    MAX_BURST_MILLI,
    MAX_COUNT,
    MAX_DISTANCE_MM,
    MAX_LATENCY_NS,
    MAX_QUEUE_BYTES,
    MAX_QUEUE_PACKETS,
    MAX_RATE_BPS,
    MAX_SIZE_BYTES,
    MAX_TIME_NS,
)
from tdl.quantities import share
from tdl.suggest import nearest

PPB = 1_000_000_000
NS_PER_MS = 1_000_000
_MAX_DIGITS = 40
_SHARE_DIGITS = 9  # after the point, of a part per billion

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(.*)", re.DOTALL)
_TIME_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)([^0-9.]*)")

_TIME_UNITS = {
    "d": 86_400 * PPB,
    "h": 3_600 * PPB,
    "m": 60 * PPB,
    "s": PPB,
    "ms": NS_PER_MS,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ns": 1,
}
_TIME_WORDS = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "S": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m", "M": "m",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "H": "h",
    "day": "d", "days": "d", "D": "d",
    "msec": "ms", "millis": "ms", "usec": "us", "nsec": "ns", "mS": "ms", "MS": "ms",
}  # fmt: skip
_RATE_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_RATE_SUFFIXES = ("b", "bps", "bit", "b/s", "bit/s")
_RATE_UNITS = {p + s: n for p, n in _RATE_PREFIXES.items() for s in _RATE_SUFFIXES}
_SIZE_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}


_DRIFT_UNITS = {"%": PPB // 100, "ppm": PPB // 10**6, "ppb": 1}
_PACKET_UNITS = ("pkt", "p", "pkts", "packet", "packets")


class ValueProblem(Exception):  # noqa: N818 (a finding about the input, not a failure)
    """What is wrong with a value: the arguments of a diagnostic, without its place."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def _split(text: str) -> tuple[str, str]:
    """Digits (with an optional point) and the unit after them."""
    if text[:1] == "-":
        raise ValueProblem("TS0026", f"{text} is negative", "only clock= and drift= may be")
    if text[:1] == "+":
        raise ValueProblem("TS0020", f"'{text}' is not a number", f"leave the '+' out: {text[1:]}")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueProblem("TS0020", f"'{text}' is not a number")
    digits, unit = match.groups()
    if unit[:1] == "." or "_" in unit:
        raise ValueProblem("TS0020", f"'{text}' is not a number", "write it like 1500 or 0.93")
    return digits, unit


def _exact(digits: str, scale: int, text: str, what: str) -> int:
    """`digits` times `scale`, which must be a whole number of `what`."""
    if len(digits) > _MAX_DIGITS:
        raise ValueProblem("TS0025", f"{digits[:12]}… has too many digits")
    whole, _, fraction = digits.partition(".")
    divisor = int("1" + "0" * len(fraction))
    quotient, rest = divmod(int((whole + fraction) or "0") * scale, divisor)
    if rest:
        raise ValueProblem(
            "TS0024", f"{text} is not a whole number of {what}", "give fewer digits after the point"
        )
    return quotient


def _limit(value: int, limit: int, text: str, most: str) -> int:
    if value > limit:
        raise ValueProblem("TS0025", f"{text} is too large", f"at most {most}")
    return value


@lru_cache(maxsize=4096)
def time(text: str) -> int:
    """A time or duration with its units, `4h20m` or `0.93s`, in ns. A bare 0 is allowed."""
    return _limit(_duration(text, bare=None), MAX_TIME_NS, text, "292 years")


@lru_cache(maxsize=4096)
def signed_time(text: str) -> int:
    """`+200ms`, `-3s`, `0`: a time that may be negative, in ns."""
    size = time(text.lstrip("+-") if text[:2] not in ("++", "+-", "-+", "--") else text)
    return -size if text.startswith("-") else size


@lru_cache(maxsize=4096)
def drift(text: str) -> int:
    """`50ppm`, `-0.1%`: how much faster a clock goes, in parts per billion."""
    digits, unit = _split(text[1:] if text[:1] in ("+", "-") else text)
    scale = _DRIFT_UNITS.get(unit)
    if scale is None and not unit and digits.strip("0."):
        raise ValueProblem("TS0021", f"{text} has no unit", f"write {text}ppm, or {text}%")
    if scale is None and unit:
        raise ValueProblem("TS0022", f"unknown unit of drift '{unit}'", "such as 50ppm or 0.1%")
    size = _exact(digits, scale or 0, text, "parts per billion")
    return -size if text.startswith("-") else size


@lru_cache(maxsize=4096)
def latency(text: str) -> int:
    """A latency or jitter in ns. Without a unit it is in milliseconds."""
    return _limit(_duration(text, bare=NS_PER_MS), MAX_LATENCY_NS, text, "one day")


def _duration(text: str, bare: int | None) -> int:
    digits, unit = _split(text)
    if not unit:
        if bare is None and digits.strip("0."):
            hint = f"write {text}s for seconds or {text}ms for milliseconds"
            raise ValueProblem("TS0021", f"{text} has no unit", hint)
        return _exact(digits, bare or 0, text, "nanoseconds")
    if unit in _TIME_UNITS:
        return _exact(digits, _TIME_UNITS[unit], text, "nanoseconds")
    total, smallest, pos = 0, MAX_TIME_NS, 0
    for part in _TIME_PART.finditer(text):
        if part.start() != pos:
            break
        pos = part.end()
        scale = _time_scale(part[2], part[1], text)
        if scale >= smallest:
            hint = "go from long to short: 4h20m, 1m30s"
            raise ValueProblem("TS0027", f"the parts of {text} are not in order", hint)
        smallest = scale
        total += _exact(part[1], scale, text, "nanoseconds")
    if pos != len(text):
        raise ValueProblem("TS0020", f"'{text}' is not a duration", "write it like 4h20m or 0.93s")
    return total


def time_unit(word: str) -> str | None:
    """The unit of time that a word is, or stands for in other languages (`min`)."""
    return word if word in _TIME_UNITS else _TIME_WORDS.get(word)


def _time_scale(unit: str, digits: str, text: str) -> int:
    scale = _TIME_UNITS.get(unit)
    if scale is not None:
        return scale
    if not unit:
        raise ValueProblem("TS0021", f"the {digits} at the end of {text} has no unit")
    if unit == "%":
        raise ValueProblem("TS0015", f"{text} is a share, a time is needed here", "such as 5ms")
    better = _TIME_WORDS.get(unit) or nearest(unit, _TIME_UNITS)
    known = f"did you mean {digits}{better}?" if better else "units of time: d h m s ms us ns"
    raise ValueProblem("TS0022", f"unknown unit of time '{unit}'", known)


@lru_cache(maxsize=4096)
def rate(text: str) -> int:
    """A rate such as `100Mb`, in bits per second. 0 needs no unit (the caller decides on zero)."""
    digits, unit = _split(text)
    scale = _RATE_UNITS.get(unit)
    if scale is None:
        if not unit and not digits.strip("0."):
            return 0
        raise _rate_unit_problem(digits, unit)
    return _limit(_exact(digits, scale, text, "bits per second"), MAX_RATE_BPS, text, "10Tb")


def _rate_unit_problem(digits: str, unit: str) -> ValueProblem:
    written = digits + unit
    if not unit:
        return ValueProblem(
            "TS0021", f"the rate {digits} has no unit", f"write {digits}Mb for megabits per second"
        )
    if unit == "%":
        return ValueProblem("TS0015", f"{written} is a share, a rate is needed here", "as in 10Mb")
    if unit in _RATE_PREFIXES:
        return ValueProblem("TS0021", f"the rate {written} has no unit", f"write {written}b (bits)")
    prefix = unit[0] if unit[0] in _RATE_PREFIXES else ""
    rest = unit[len(prefix) :]
    if rest in ("B", "Bps", "B/s", "iB", "iB/s", "Byte", "Bytes", "byte", "bytes"):
        hint = f"write {digits}{prefix}b if bits are meant"
        if "." not in digits and "i" not in rest and len(digits) <= _MAX_DIGITS:
            hint += f", {int(digits) * 8}{prefix}b if bytes are"
        return ValueProblem("TS0023", f"{written} counts bytes; rates are bits per second", hint)
    fixed = _closest_rate_unit(unit)
    hint = f"did you mean {digits}{fixed}?" if fixed else "rates look like 128Kb, 10Mb, 1Gb"
    return ValueProblem("TS0022", f"unknown unit of rate '{unit}'", hint)


def _closest_rate_unit(unit: str) -> str | None:
    upper = unit[0].upper() + unit[1:].lower()
    if upper in _RATE_UNITS:
        return upper
    return nearest(unit, _RATE_UNITS)


@lru_cache(maxsize=4096)
def percent(text: str) -> int:
    """`40%`, in ppb of the whole. The caller decides on the upper limit."""
    digits, unit = _split(text)
    if unit != "%":
        hint = "such as 40%" if unit else f"write {_as_percentage(digits)}"
        raise ValueProblem("TS0015", f"{text} is not a percentage", hint)
    return _limit(_exact(digits, PPB // 100, text, "parts per billion"), 10**15, text, "100000000%")


def _as_percentage(digits: str) -> str:
    """What a bare number was meant as: 0.5 is half of them, 40 is forty percent."""
    if digits.startswith(("0.", ".")) and 0 < len(digits.partition(".")[2]) <= _SHARE_DIGITS:
        return share(_exact(digits, PPB, digits, "parts per billion"))
    return f"{digits}%"


@lru_cache(maxsize=4096)
def probability(text: str, what: str = "loss") -> int:
    """`0.01` or `1%`, in ppb from 0 to 10^9; `what` it is of."""
    if text.endswith("%"):
        value = percent(text)
    else:
        digits, unit = _split(text)
        if unit:
            raise ValueProblem("TS0022", f"unknown unit of {what} '{unit}'", "such as 0.01 or 1%")
        value = _exact(digits, PPB, text, "parts per billion")
    if value > PPB:
        hint = f"{what} is a probability: 0.01 or 1%"
        if not text.endswith("%") and value <= 100 * PPB:
            hint = f"write {text}% for {text} percent"
        raise ValueProblem("TS0106", f"a {what} of {text} is more than everything", hint)
    return value


def queue(text: str) -> tuple[int, str]:
    """The size of a queue, and what it is in: bytes, packets or ns."""
    digits, unit = _split(text)
    if unit in _PACKET_UNITS:
        count = _exact(digits, 1, text, "packets")
        return _limit(count, MAX_QUEUE_PACKETS, text, f"{MAX_QUEUE_PACKETS:,}pkt"), "packets"
    first = _TIME_PART.match(text)
    if first is not None and first[2] in _TIME_UNITS:
        return latency(text), "ns"
    return _limit(size(text), MAX_QUEUE_BYTES, text, "1GiB"), "bytes"


@lru_cache(maxsize=4096)
def size(text: str) -> int:
    """A size in bytes, with B, KB, KiB, MB, MiB, GB, GiB, or bare."""
    digits, unit = _split(text)
    scale = _SIZE_UNITS.get(unit)
    if scale is None:
        raise _size_unit_problem(digits, unit)
    return _limit(_exact(digits, scale, text, "bytes"), MAX_SIZE_BYTES, text, "1024GiB")


def _size_unit_problem(digits: str, unit: str) -> ValueProblem:
    if unit in _PACKET_UNITS:
        return ValueProblem(
            "TS0022", "a size in packets", "sizes are in bytes; a full packet has 1500 (1.5KB)"
        )
    if unit in ("K", "k", "M", "G"):
        prefix = unit.upper()
        hint = f"write {digits}{prefix}B (thousands) or {digits}{prefix}iB (powers of 1024)"
        return ValueProblem("TS0022", f"unknown unit of size '{unit}'", hint)
    if unit in _RATE_UNITS:
        return ValueProblem("TS0022", f"'{unit}' counts bits; sizes are in bytes", "such as 64KB")
    better = nearest(unit, [known for known in _SIZE_UNITS if known])
    hint = f"did you mean {digits}{better}?" if better else "sizes look like 30000, 64KB or 1MiB"
    return ValueProblem("TS0022", f"unknown unit of size '{unit}'", hint)


@lru_cache(maxsize=4096)
def distance(text: str) -> int:
    """A distance in mm, with m or km."""
    digits, unit = _split(text)
    scale = {"m": 10**3, "km": 10**6}.get(unit)
    if scale is None:
        what = f"unknown unit of length '{unit}'" if unit else f"{text} has no unit of length"
        raise ValueProblem("TS0022", what, f"write {digits}m or {digits}km")
    return _limit(_exact(digits, scale, text, "mm"), MAX_DISTANCE_MM, text, "1000000000km")


@lru_cache(maxsize=4096)
def whole(text: str, limit: int = MAX_COUNT) -> int:
    """A whole number from 0 to `limit`; `3.0` is one too."""
    digits, unit = _split(text)
    if unit:
        raise ValueProblem("TS0020", f"'{text}' is not a number", f"a whole number like {digits}")
    if digits.partition(".")[2].strip("0"):
        raise ValueProblem("TS0028", f"{text} is not a whole number")
    return _limit(_exact(digits, 1, text, "units"), limit, text, str(limit))


def amount(text: str) -> int:
    """A number of instances, as `whole`. A share of them would have been a percentage."""
    try:
        return whole(text)
    except ValueProblem as problem:
        if problem.code == "TS0028":
            problem.hint = f"a share is a percentage: {_as_percentage(text)}"
            if not text.startswith(("0.", ".")):
                problem.hint = "a number of instances, or a share of them such as 40%"
        raise


@lru_cache(maxsize=4096)
def packets(text: str) -> int:
    """A mean number of packets, `8` or `2.5`, in thousandths; 0, or at least 1."""
    digits, unit = _split(text)
    if unit:
        raise ValueProblem("TS0022", f"unknown unit '{unit}'", "packets, such as 8 or 2.5")
    value = _exact(digits, 1000, text, "thousandths of a packet")
    if 0 < value < 1000:
        hint = "burst=0 draws each loss alone, burst=1 is the shortest burst"
        raise ValueProblem("TS0138", f"a burst of {text} is shorter than a packet", hint)
    return _limit(value, MAX_BURST_MILLI, text, f"{MAX_BURST_MILLI // 1000:,}")


@lru_cache(maxsize=4096)
def cpu(text: str) -> int:
    """A share of processors, `0.5`, `2` or `500m`, in thousandths."""
    digits, unit = _split(text)
    if unit == "m":
        value = _exact(digits, 1, text, "thousandths of a processor")
    elif not unit:
        value = _exact(digits, 1000, text, "thousandths of a processor")
    else:
        raise ValueProblem("TS0022", f"unknown unit '{unit}'", "such as 0.5, 2 or 500m")
    return _limit(value, MAX_COUNT, text, str(MAX_COUNT // 1000))
