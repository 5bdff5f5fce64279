"""A short, seeded run of the channel's fuzzer; `make fuzz` runs it for longer."""

from __future__ import annotations

from tests.fuzz.fuzz_channel import attempt


def test_nothing_wrong_gets_through_a_channel() -> None:
    whole = sum(attempt(seed) for seed in range(400))
    assert 50 < whole < 300, "some sessions should be left alone, most not"
