"""Integers with a unit, for people: `90061500000000` ns is `1d1h1m1.5s`.

Durations print in the language's own form, so that what a table shows can be given back to `--at`.
"""

from __future__ import annotations

_LONG = (("d", 86_400 * 10**9), ("h", 3_600 * 10**9), ("m", 60 * 10**9))
_SHORT = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
_RATES = (("Gb", 10**9), ("Mb", 10**6), ("Kb", 10**3))


def _decimal(value: int, unit: int) -> str:
    """`value / unit` exactly, without trailing zeros; `unit` is a power of ten."""
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def duration(ns: int) -> str:
    """Exactly: `0s`, `9.1ms`, `1h30m0.5s`."""
    if ns < 0:
        return f"-{duration(-ns)}"
    text = ""
    for name, unit in _LONG:
        count, ns = divmod(ns, unit)
        text += f"{count}{name}" if count else ""
    if text:
        return text + (f"{_decimal(ns, 10**9)}s" if ns else "")
    if ns == 0:
        return "0s"
    name, unit = next((name, unit) for name, unit in _SHORT if ns >= unit)
    return f"{_decimal(ns, unit)}{name}"


def rate(bps: int) -> str:
    """Exactly: `800Mb`, `1.5Gb`, `999b`; 0 is `unlimited`."""
    if bps == 0:
        return "unlimited"
    name, unit = next(((name, unit) for name, unit in _RATES if bps >= unit), ("b", 1))
    return f"{_decimal(bps, unit)}{name}"


def probability(ppb: int) -> str:
    """Parts per billion as an exact percentage: `1.5%`."""
    return f"{_decimal(ppb, 10**7)}%"
