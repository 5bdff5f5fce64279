"""A short, seeded run of the plan fuzzer; `make fuzz` runs it for longer."""

from __future__ import annotations

from tests.fuzz.fuzz_plan import attempt


def test_mutated_plans_are_refused_or_usable() -> None:
    valid = sum(attempt(seed) for seed in range(400))
    assert 0 < valid < 200, "mutants should mostly be broken, and not all at the first look"
