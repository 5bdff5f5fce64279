"""A short, seeded run of the fuzzer of reports; `make fuzz` runs it for longer."""

from __future__ import annotations

from tests.fuzz.fuzz_reports import COMMANDS, attempt


def test_mutated_runs_are_told_of_or_refused() -> None:
    answered = sum(attempt(seed, pictures=seed % 10 == 0) for seed in range(160))
    assert len(COMMANDS) < answered < 160, "pages show what there is, records refuse"
