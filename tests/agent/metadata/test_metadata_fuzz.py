"""A short, seeded run of the metadata fuzzer; `make fuzz` runs it for longer."""

from __future__ import annotations

from tests.fuzz.fuzz_metadata import attempt


def test_mutated_datagrams_are_refused_or_understood() -> None:
    taken = sum(attempt(seed) for seed in range(1000))
    assert 50 < taken < 500, "some should still be right, and most not"
