"""Decimals of foreign files as integers of a smaller unit, rounded half up. No floats."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_MOST_DIGITS, _MOST_EXPONENT = 60, 40


def scaled(text: str, scale: int) -> int:
    """The number times `scale`. ValueError for what is none, and for far too many digits."""
    match = _DECIMAL.fullmatch(text.strip())
    if match is None or len(text) > _MOST_DIGITS:
        raise ValueError(text[:_MOST_DIGITS])
    sign, whole, fraction, power = match.groups(default="")
    exponent = int(power or 0)
    if not whole + fraction or abs(exponent) > _MOST_EXPONENT:
        raise ValueError(text)
    value = int(whole + fraction) * scale * (-1 if sign == "-" else 1)
    shift = exponent - len(fraction)
    if shift >= 0:
        return value * int(10**shift)
    divisor = int(10**-shift)
    return (2 * value + divisor) // (2 * divisor)


def divided(value: int, by: int) -> int:
    """Rounded half up; `by` is above 0."""
    return (2 * value + by) // (2 * by)
