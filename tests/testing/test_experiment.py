"""Waiting for a run, and its end, with runs that were made by hand (fake.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing.fake import text
from tstorm.testing import DeadlineError, Experiment, ExperimentError, StartError, run

pytestmark = pytest.mark.usefixtures("fake")


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Experiment]:
    """It has done everything, and goes on until it is ended."""
    with run(text(open=True), out=tmp_path / "run") as found:
        yield found
    assert not found.is_running


def test_an_event_that_was_done_is_found(going: Experiment) -> None:
    assert going.wait_for("join")["target"] == "a.0"
    assert going.wait_for(kind="exit", target="a.0")["status"] == 1
    assert going.wait_for(target="a.0")["seq"] == 0
    assert [one["kind"] for one in going.events] == ["join", "exit", "exit", "quit"]
    with pytest.raises(ValueError, match="kind=, target= or both"):
        going.wait_for()


def test_a_deadline_tells_the_last_known_state(going: Experiment) -> None:
    with pytest.raises(DeadlineError) as error:
        going.wait_for("crash", "a.0", timeout=0.05)
    assert str(error.value) == (
        "not within 0.05 s: an event crash a.0; the run goes on, 4 events of 1s; "
        "the last: quit after 1.000000001s"
    )
    with pytest.raises(DeadlineError, match=r"has not ended within .* it goes on, 4 events"):
        going.finish(timeout=0.05)


def test_a_moment_that_has_passed_is_not_waited_for(going: Experiment) -> None:
    going.wait_until("1s")
    assert going.at_ns > 10**9  # its clock began with the machine's
    with pytest.raises(DeadlineError, match=r"not within 0\.05 s: 365d; the run goes on"):
        going.wait_until("8760h", timeout=0.05)


def test_the_end_of_the_run_ends_a_wait(tmp_path: Path) -> None:
    found = run(text(), out=tmp_path / "run")
    assert found.finish().outcome == "completed"
    assert found.exit_code == 0
    assert found.finish() is found.finish()
    found.wait_until("1s")
    with pytest.raises(ExperimentError, match=r"ended before 1\.5s: it ended with 0"):
        found.wait_until("1.5s")
    with pytest.raises(ExperimentError, match="ended before an event crash"):
        found.wait_for("crash")


def test_a_run_that_was_stopped_is_read(going: Experiment) -> None:
    assert going.stop().outcome == "interrupted"
    assert going.finish().outcome == "interrupted"


def test_a_run_that_was_killed_has_no_results(going: Experiment) -> None:
    going.kill()
    assert going.exit_code == -9
    with pytest.raises(ExperimentError, match="has not ended"):
        going.finish()


def test_a_run_that_does_not_begin_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(StartError) as error:
        run(text(fails=2), out=tmp_path / "run")
    assert error.value.code == 2
    assert "error: the fake was to fail" in str(error.value)


def test_a_command_is_a_list(going: Experiment) -> None:
    with pytest.raises(TypeError, match=r"list of words: \['ping', '-c1'\]"):
        going.exec("a.0", "ping -c1")
