"""Numbers are exact integers, whatever their unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tdl import bounds, quantities, values

MS = 10**6
S = 10**9


@pytest.mark.parametrize(
    ("convert", "text", "value"),
    [
        (values.time, "4h20m", 15_600 * S),
        (values.time, "10h2m", 36_120 * S),
        (values.time, "0.93s", 930 * MS),
        (values.time, "1d", 86_400 * S),
        (values.time, "250ms", 250 * MS),
        (values.time, "15us", 15_000),
        (values.time, "15µs", 15_000),
        (values.time, "1d2h3m4s5ms6us7ns", 93_784_005_006_007),
        (values.time, ".5s", 500 * MS),
        (values.time, "1.5h", 5_400 * S),
        (values.time, "0", 0),
        (values.time, "0.000000001s", 1),
        (values.latency, "9.1", 9_100_000),
        (values.latency, "5", 5 * MS),
        (values.latency, "0.000001", 1),
        (values.latency, "1.5s", 1_500 * MS),
        (values.rate, "1Gb", 10**9),
        (values.rate, "800Mb", 8 * 10**8),
        (values.rate, "128Kb", 128_000),
        (values.rate, "128kbit", 128_000),
        (values.rate, "1.5Gbps", 15 * 10**8),
        (values.rate, "2Tbit/s", 2 * 10**12),
        (values.rate, "300b/s", 300),
        (values.rate, "0", 0),
        (values.probability, "0.01", 10_000_000),
        (values.probability, "1%", 10_000_000),
        (values.probability, "0.0000001%", 1),
        (values.probability, "1", 10**9),
        (values.percent, "40%", 400_000_000),
        (values.percent, "200%", 2_000_000_000),
        (values.size, "30000", 30_000),
        (values.size, "64KiB", 65_536),
        (values.size, "1.5KB", 1_500),
        (values.size, "2MB", 2_000_000),
        (values.size, "512Mi", 512 * 2**20),
        (values.cpu, "0.5", 500),
        (values.cpu, "250m", 250),
        (values.whole, "65000", 65_000),
        (values.whole, "3.0", 3),
    ],
)
def test_values(convert: Callable[[str], int], text: str, value: int) -> None:
    assert convert(text) == value


@pytest.mark.parametrize(
    ("convert", "text", "code"),
    [
        (values.time, "", "TS0020"),
        (values.time, "s", "TS0020"),
        (values.time, "4h..20m", "TS0020"),
        (values.time, "5..5s", "TS0020"),
        (values.time, "9" * 41 + "s", "TS0025"),
        (values.time, "9" * 5000, "TS0025"),
        (values.whole, "9" * 5000, "TS0025"),
        (values.latency, "1ps", "TS0022"),
        (values.latency, "0.5ns", "TS0024"),
        (values.rate, "1Gib", "TS0022"),
        (values.percent, "40", "TS0015"),
        (values.size, "1TB", "TS0022"),
        (values.time, "٣s", "TS0020"),
    ],
)
def test_what_is_not_a_value(convert: Callable[[str], int], text: str, code: str) -> None:
    with pytest.raises(values.ValueProblem) as caught:
        convert(text)
    assert caught.value.code in (code, "TS0021")


@given(st.integers(0, bounds.MAX_TIME_NS))
def test_a_time_reads_back(ns: int) -> None:
    assert values.time(quantities.time(ns)) == ns


@given(st.integers(0, bounds.MAX_LATENCY_NS))
def test_a_latency_reads_back(ns: int) -> None:
    assert values.latency(quantities.latency(ns)) == ns


@given(st.integers(0, bounds.MAX_RATE_BPS))
def test_a_rate_reads_back(bps: int) -> None:
    assert values.rate(quantities.rate(bps)) == bps


@given(st.integers(0, 10**9))
def test_a_share_reads_back(ppb: int) -> None:
    assert values.percent(quantities.share(ppb)) == ppb
    assert values.probability(quantities.share(ppb)) == ppb


@given(st.integers(0, bounds.MAX_SIZE_BYTES))
def test_a_size_reads_back(count: int) -> None:
    assert values.size(quantities.size(count)) == count


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_a_problem(text: str) -> None:
    for convert in (
        values.time,
        values.latency,
        values.rate,
        values.probability,
        values.size,
        values.cpu,
    ):
        try:
            assert convert(text) >= 0
        except values.ValueProblem as problem:
            assert problem.code.startswith("TS0")
