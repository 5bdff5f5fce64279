"""A sample of each trial, bounded; `make trial` has the whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scripts import seeded
from tests.cli.support import status, tstorm
from tests.trials import frames, hostile, kills, stops

ROUNDS = 3


@pytest.mark.e2e
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_part_that_is_killed(seed: int) -> None:
    kills.attempt(random.Random(seed))


@pytest.mark.e2e
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_part_that_is_stopped_or_told_to_end(seed: int) -> None:
    stops.attempt(random.Random(seed))


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_hostile_inputs(kind: str) -> None:
    """Of texts, plans and run directories."""
    found = {hostile.attempt(random.Random(seed), kind) for seed in range(60)}
    assert f"{kind} refused" in found


@pytest.mark.e2e
def test_random_frames_from_an_instance(capsys: pytest.CaptureFixture[str]) -> None:
    assert frames.main(["--seconds", "4", "--seed", "7"]) == 0, capsys.readouterr().out


def test_what_is_not_damaged_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the hostile ones would be refused for another reason than theirs."""
    monkeypatch.chdir(tmp_path)
    hostile.write_run_directory(Path("good.run"), random.Random(1), damaged=0)
    for words in (["inspect", "good.run"], ["events", "good.run"]):
        result = tstorm(*words)
        assert status(result) == 0, result.output


def test_every_trial_is_started() -> None:
    found = seeded.modules("trials")
    assert {f"tests.trials.{n}" for n in ("frames", "kills", "stops", "hostile")} <= {*found}
    assert "tests.trials.scene" not in found
    assert "tests.fuzz.fuzz_tdl" in seeded.modules("fuzz")
