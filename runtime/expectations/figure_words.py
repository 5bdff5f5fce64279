"""Figures and moments in words."""

from __future__ import annotations

from runtime.expectations.finding import BPS, PPB
from runtime.judge.verdict import milliseconds


def moment(at_ns: int) -> str:
    """Plan time."""
    return f"{round(at_ns / 1e9, 3):.12g} s"


def span(from_ns: int, to_ns: int) -> str:
    return f"from {moment(from_ns)} to {moment(to_ns)}"


def quantity(value: int, unit: str) -> str:
    if unit == BPS:
        return f"{value / 1e6:.4g} Mb/s" if value >= 10**6 else f"{value / 1e3:.4g} kb/s"
    return f"{value / 1e7:.3g} %" if unit == PPB else milliseconds(value)


def printable(text: str, most: int) -> str:
    """A line of a program's, cut, without characters that a terminal would act on."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text[:most])
