"""Integers with units, as people see them."""

from __future__ import annotations

import pytest

from tstorm import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5us"),
        (9_100_000, "9.1ms"),
        (930_000_000, "930ms"),
        (10**9, "1s"),
        (60 * 10**9, "1m"),
        (90_061_500_000_000, "1d1h1m1.5s"),
        (4 * 3600 * 10**9 + 20 * 60 * 10**9, "4h20m"),
        (3600 * 10**9 + 1, "1h0.000000001s"),
    ],
)
def test_duration(ns: int, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("bps", "text"),
    [(0, "unlimited"), (999, "999b"), (128_000, "128Kb"), (1_500_000_000, "1.5Gb"), (1, "1b")],
)
def test_rate(bps: int, text: str) -> None:
    assert units.rate(bps) == text


@pytest.mark.parametrize(
    ("ppb", "text"), [(0, "0%"), (10_000_000, "1%"), (15_000_000, "1.5%"), (1, "0.0000001%")]
)
def test_probability(ppb: int, text: str) -> None:
    assert units.probability(ppb) == text
