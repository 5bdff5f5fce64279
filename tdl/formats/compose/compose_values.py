"""The short and the long forms of values in a Compose file, and how TDL writes them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tdl import quantities
from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.yaml_tree import Value

_TIMES = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|us|ns)")
_INTEGERS = (
    (16, re.compile(r"([-+]?)0[xX]([0-9a-fA-F]{1,16})", re.ASCII)),
    (8, re.compile(r"([-+]?)0[oO]?([0-7]{1,22})", re.ASCII)),
    (2, re.compile(r"([-+]?)0[bB]([01]{1,64})", re.ASCII)),
    (10, re.compile(r"([-+]?)([1-9][0-9]{0,19}|0)", re.ASCII)),
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_MOST_DIGITS = 400
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(b|kb|k|mb|m|gb|g|kib|mib|gib)?", re.IGNORECASE)
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Mounted(NamedTuple):
    """What stands at `target`: a `bind` of `source`, a `volume` that may have a name, a `tmpfs`."""

    kind: str
    source: str
    target: str
    read_only: bool
    span: Span


class Reading:
    """Reads values; what is wrong goes to the sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def shape(self, value: Value, wanted: str) -> None:
        self.sink.error("TS0501", value.span, f"this is {value.kind}, and not {wanted}")

    def word(self, value: Value | None, wanted: str = "a value") -> str | None:
        """A scalar; None where there is none."""
        if value is None or value.is_null:
            return None
        if value.text is None:
            self.shape(value, wanted)
        return value.text

    def printed(self, value: Value) -> str | None:
        """A scalar as a program gets it: numbers without quotes are read and printed again, so 022
        is 18 and 1.10 is 1.1."""
        said = self.word(value)
        return said if said is None or not value.plain else _printed(said)

    def flag(self, value: Value | None) -> bool:
        return (self.word(value, "true or false") or "").lower() in ("true", "yes", "on")

    def entries(self, value: Value | None, known: Iterable[str], what: str) -> dict[str, Value]:
        """The fields of a map; others than the known ones are errors, but for x-…."""
        if value is None or value.is_null:
            return {}
        if value.entries is None:
            self.shape(value, "a map")
            return {}
        from tdl.suggest import did_you_mean

        found = {}
        for name, span, one in value.values():
            if name in known:
                found[name] = one
            elif not name.startswith("x-"):
                hint = did_you_mean(name, sorted(known)) or "docs/from-compose.md has all of them"
                self.sink.error("TS0501", span, f"{what} has no field '{name[:40]}'", hint)
        return found

    def texts(self, value: Value | None) -> list[Value]:
        """The scalars of a list, or one alone."""
        if value is None or value.is_null:
            return []
        if value.items is None:
            if value.text is None:
                self.shape(value, "a list")
                return []
            return [value]
        for one in value.items:
            if one.text is None:
                self.shape(one, "a word")
        return [one for one in value.items if one.text is not None]

    def words(self, value: Value) -> list[str]:
        """A command: a list as it is, a string as a shell would split it."""
        if value.text is None:
            return [one.text or "" for one in self.texts(value)]
        try:
            return shlex.split(value.text)
        except ValueError:
            self.sink.error("TS0501", value.span, "a quote in this command is not closed")
            return []

    def time_ns(self, value: Value | None, otherwise: int) -> int:
        said = self.word(value, "a time")
        if value is None or said is None:
            return otherwise
        parts = _TIME.findall(said)
        if not parts or "".join(number + unit for number, unit in parts) != said:
            if said == "0":
                return 0
            self.sink.error("TS0501", value.span, f"'{said[:40]}' is no time", "such as 1m30s")
            return otherwise
        return int(sum(Fraction(number) * _TIMES[unit] for number, unit in parts))

    def size(self, value: Value) -> str | None:
        said = self.word(value, "a size")
        if said is None:
            return None
        found = _SIZE.fullmatch(said)
        if found is None or len(said) > 30:
            self.sink.error("TS0501", value.span, f"'{said[:40]}' is no size", "such as 512m")
            return None
        count = int(Fraction(found[1]) * _SIZES[(found[2] or "").lower()[:1]])
        return quantities.size(count) if count else None

    def cpus(self, value: Value) -> str | None:
        said = self.word(value, "a number")
        if said is None:
            return None
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{0,12})?|\.[0-9]{1,12}", said, re.ASCII):
            message = f"'{said[:40]}' is no number of processors"
            self.sink.error("TS0501", value.span, message, "such as 0.5")
            return None
        millis = -(-Fraction(said) * 1000 // 1)
        return quantities.cpu(int(millis)) if millis else None

    def mounted(self, value: Value) -> Mounted | None:
        """A volume of a service."""
        if value.text is not None:
            return self._short(value.text, value.span)
        known = ("type", "source", "target", "read_only", "consistency", "bind", "volume", "tmpfs",
                 "image", "cluster")  # fmt: skip
        fields = self.entries(value, known, "a volume")
        kind = self.word(fields.get("type")) or "volume"
        source, target = self.word(fields.get("source")) or "", self.word(fields.get("target"))
        if not target:
            self.sink.error("TS0501", value.span, "a volume has a target", "target: /data")
            return None
        if kind not in ("bind", "volume", "tmpfs"):
            message = f"there are no volumes of type '{kind[:20]}' here"
            self.sink.error("TS0502", value.span, message, "bind a folder")
            return None
        return Mounted(kind, source, target, self.flag(fields.get("read_only")), value.span)

    def _short(self, said: str, span: Span) -> Mounted | None:
        parts = said.split(":")
        modes = parts[2].split(",") if len(parts) == 3 else []
        if len(parts) > 3 or not parts[-1] or not parts[0]:
            message = f"'{said[:60]}' is no volume"
            self.sink.error("TS0501", span, message, "such as data:/var/lib/data:ro")
            return None
        if len(parts) == 1:
            return Mounted("volume", "", parts[0], False, span)
        kind = "bind" if parts[0][0] in "./~" else "volume"
        return Mounted(kind, parts[0], parts[1], "ro" in modes, span)

    def ports(self, value: Value) -> tuple[range, str] | None:
        """The ports of a container, one or a range, and their protocol."""
        if value.entries is not None:
            target, protocol = value.get("target"), value.get("protocol")
            if target is None:
                self.sink.error("TS0501", value.span, "a port has a target", "such as target: 80")
                return None
            said = f"{self.word(target) or ''}/{self.word(protocol) or 'tcp'}"
        else:
            said = (value.text or "").rpartition(":")[2]
        number, _, protocol_name = said.partition("/")
        begin, is_range, end = number.partition("-")
        bounds = [
            int(one[:6]) if one.isdecimal() else 0
            for one in ((begin, end) if is_range else (begin,))
        ]
        if not 1 <= bounds[0] <= bounds[-1] <= 65_535:
            message = f"'{said[:40]}' is no port"
            self.sink.error("TS0501", value.span, message, 'such as "8080:80"')
            return None
        found = range(bounds[0], bounds[-1] + 1)
        if value.entries is None and not self._as_many(value, len(found)):
            return None
        return found, protocol_name or "tcp"

    def _as_many(self, value: Value, count: int) -> bool:
        """Whether as many ports are published; reported if not. For one there may be a choice."""
        begin, is_range, end = (
            (value.text or "").rpartition(":")[0].rpartition(":")[2].partition("-")
        )
        if not (is_range and begin.isdecimal() and end.isdecimal()):
            return True
        published = int(end[:6]) - int(begin[:6]) + 1
        if count in (1, published):
            return True
        message = f"{published} published ports are for {count} of the container"
        self.sink.error("TS0501", value.span, message, "such as 8000-8001:80-81")
        return False


def _printed(said: str) -> str:
    """As YAML's reader and printer in Go have it."""
    if said.lower() in ("true", "false") and said in (said.lower(), said.upper(), said.title()):
        return said.lower()
    number = said.replace("_", "") if said[:1] not in ("_", ".") else said
    for base, pattern in _INTEGERS:
        if (found := pattern.fullmatch(number)) is None:
            continue
        count = int(f"{found[1]}{found[2]}", base)
        if -(1 << 63) <= count < 1 << 64:
            return str(count)
    if len(number) < _MOST_DIGITS and _FLOAT.fullmatch(number) and math.isfinite(float(number)):
        return _float(float(number))
    return said


def _float(number: float) -> str:
    """The fewest digits that are the same number, with an exponent from 1000000 on."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent if number else 0
    if -4 <= power < 6:
        text = f"{Decimal(repr(number)).normalize():f}"
        return text if number else "-0" if sign else "0"
    first, *others = map(str, digits)
    rest = f".{''.join(others)}" if others else ""
    return f"{'-' if sign else ''}{first}{rest}e{'-' if power < 0 else '+'}{abs(power):02}"
