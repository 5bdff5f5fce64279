"""Waiting for a run, and its end, with runs that were made by hand (fake.py)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.recorded import EVENTS
from tests.testing.fake import text
from tests.waiting import wait_until
from tstorm.testing import DeadlineError, Experiment, ExperimentError, StartError, child, run

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


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "killed"])
def test_a_run_that_something_else_has_ended_is_an_error(tmp_path: Path, outcome: str) -> None:
    found = run(text(outcome=outcome), out=tmp_path / "run")
    how = "failed" if outcome == "failed" else f"was {outcome} from outside"
    with pytest.raises(ExperimentError, match=f"^the run {how}\n"):
        found.finish()
    assert found.finish(check=False).outcome == outcome
    assert found.stop().outcome == outcome  # it had ended before
    with pytest.raises(ExperimentError, match=how):
        found.finish()


def test_a_clock_that_cannot_be_asked_any_more_is_told(tmp_path: Path) -> None:
    """In virtual time, of a run that is ending: nobody registers it any more."""
    with run(text(open=True), time="virtual", out=tmp_path / "run") as found:
        with pytest.raises(ExperimentError, match="cannot be asked for its time: it goes on, 4"):
            _ = found.at_ns
        with pytest.raises(DeadlineError, match=r"not within 0\.05 s: 2s"):
            found.wait_until("2s", timeout=0.05)


def test_a_run_that_does_not_begin_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(StartError) as error:
        run(text(fails=2), out=tmp_path / "run")
    assert error.value.code == 2
    assert "error: the fake was to fail" in str(error.value)


START = {"kind": "start", "target": "a.0", "applied_ns": 1}


@pytest.mark.parametrize(("start_at_ns", "events"), [(0, []), (0, [START]), (10**8, EVENTS)])
def test_a_run_has_not_begun_before_who_is_in_it_from_the_start(
    tmp_path: Path, start_at_ns: int, events: list[dict[str, Any]]
) -> None:
    """A command there would be refused."""
    asked = text(open=True, start_at_ns=start_at_ns, events=events)
    with pytest.raises(DeadlineError, match=r"has not begun within 0\.5 s"):
        run(asked, out=tmp_path / "run", timeout=0.5)


def test_a_later_start_has_begun_with_who_is_there(tmp_path: Path) -> None:
    asked = text(open=True, start_at_ns=10**8, events=[START])
    with run(asked, out=tmp_path / "run") as found:
        assert found.wait_for("start")["target"] == "a.0"


def test_a_run_that_ends_before_it_has_begun_is_read(tmp_path: Path) -> None:
    with run(text(outcome="failed", events=[]), out=tmp_path / "run") as found:
        assert found.finish(check=False).outcome == "failed"


def test_a_command_is_a_list(going: Experiment) -> None:
    with pytest.raises(TypeError, match=r"list of words: \['ping', '-c1'\]"):
        going.exec("a.0", "ping -c1")


def test_a_daemon_does_not_hold_up_the_end_of_its_command(tmp_path: Path) -> None:
    """It has the command's pipes, and a session of its own, so that it is not killed with it."""
    there = tmp_path / "there"
    script = "setsid sh -c 'echo $$ > $0.new && mv $0.new $0 && exec sleep 60' $0 & exec sleep 60"
    process = subprocess.Popen(
        ["sh", "-c", script, str(there)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    daemon = int(wait_until(lambda: there.exists() and there.read_text(), "the daemon"))
    try:
        with pytest.raises(subprocess.TimeoutExpired), child._ended(process):
            process.communicate(timeout=0.01)
        assert process.returncode == -signal.SIGKILL
        assert Path(f"/proc/{daemon}/cmdline").read_text(), "it was waited for"
    finally:
        os.kill(daemon, signal.SIGKILL)
