"""Short, seeded runs of the fuzzers; `make fuzz` runs them for longer."""

from __future__ import annotations

from tdl.formats.readers import READERS
from tdl.tokens.words import MOTION_FORMATS
from tests.fuzz import (
    fuzz_assertions,
    fuzz_channel,
    fuzz_formats,
    fuzz_metadata,
    fuzz_motion,
    fuzz_plan,
    fuzz_reports,
)


def test_mutated_plans_are_refused_or_usable() -> None:
    valid = sum(fuzz_plan.attempt(seed) for seed in range(400))
    assert 0 < valid < 200, "mutants should mostly be broken, and not all at the first look"


def test_nothing_wrong_gets_through_a_channel() -> None:
    whole = sum(fuzz_channel.attempt(seed) for seed in range(400))
    assert 50 < whole < 300, "some sessions should be left alone, most not"


def test_mutated_datagrams_are_refused_or_understood() -> None:
    taken = sum(fuzz_metadata.attempt(seed) for seed in range(1000))
    assert 50 < taken < 500, "some should still be right, and most not"


def test_mutated_runs_are_told_of_or_refused() -> None:
    answered = sum(fuzz_reports.attempt(seed, pictures=seed % 10 == 0) for seed in range(160))
    assert len(fuzz_reports.COMMANDS) < answered < 160, "pages show what there is, records refuse"


def test_mutated_files_of_assertions_say_no_more_than_their_lines() -> None:
    whole = sum(fuzz_assertions.attempt(seed) for seed in range(500))
    assert 50 < whole < 450, "some should be whole, and most not"


def test_mutated_files_of_every_format_are_read_or_refused() -> None:
    assert fuzz_formats.formats() == {one.title for one in READERS}
    read = sum(fuzz_formats.attempt(seed) for seed in range(300))
    assert 30 < read < 270, "some should still be right, and most not"


def test_mutated_files_of_movement_are_read_or_refused() -> None:
    assert {kind for kind, _ in fuzz_motion.seeds()} == {*MOTION_FORMATS, ""}
    read = sum(fuzz_motion.attempt(seed) for seed in range(150))
    assert 3 < read < 100, "some should still be right, and most not"
