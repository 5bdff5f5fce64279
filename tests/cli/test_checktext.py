"""What `replay --check` says of differences."""

from __future__ import annotations

import pytest

from runtime.results.event_comparison import EventDifference
from runtime.results.filetree import RunDifference
from tstorm.text.checktext import COMPUTING_DIFFERS, ReplayComparison

EXIT = EventDifference("exit", -1, "1 × a.0 ended with status 1", "")
START = EventDifference("start", -1, "a.0 started", "a.0 could not start: no", "a.0")
EVENT = EventDifference("event", 3, "1 ns join a.0", "")
LINK = RunDifference("link", "a.0->s1", 1_300_000_000, "pkts=3", "pkts=5", 1200)
LOG = RunDifference("log", "a.0.log:8", None, "line\x1b[2J", "")


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (ReplayComparison([]), True),
        (ReplayComparison([EXIT]), True),
        (ReplayComparison([START]), False),
        (ReplayComparison([EVENT]), False),
        (ReplayComparison([], []), True),
        (ReplayComparison([], [LOG]), False),
        (ReplayComparison([START], []), False),
    ],
)
def test_when_a_check_holds(check: ReplayComparison, *, holds: bool) -> None:
    assert check.holds == holds


def test_everything_is_told_with_its_moment(capsys: pytest.CaptureFixture[str]) -> None:
    ReplayComparison([], [LINK, LOG]).tell("text")
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "at 1.300000000 s link a.0->s1: recorded: pkts=3; replayed: pkts=5; 1,200 more after it",
        "log a.0.log:8: recorded: line\\x1b[2J; replayed: nothing",
    ]
    assert said.err == ("check: the runs differ in 2 places; the first moment is 1.300000000 s\n")


def test_a_run_that_is_the_same_says_what_was_compared(capsys: pytest.CaptureFixture[str]) -> None:
    ReplayComparison([], [], "5 lines of events.jsonl, 2 logs").tell("text")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "check: everything is the same: 5 lines of events.jsonl, 2 logs\n"


def test_events_alone_are_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    ReplayComparison([EVENT, EXIT]).tell("text")
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "event 3: recorded: 1 ns join a.0; replayed: nothing",
        "program: recorded: 1 × a.0 ended with status 1; replayed: nothing",
    ]
    assert said.err == "check: 1 events differ\n"
    ReplayComparison([EXIT]).tell("text")
    assert "the same events, on the same targets" in capsys.readouterr().err


def test_many_places_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    ReplayComparison([], [LOG] * 25).tell("text")
    assert capsys.readouterr().out.splitlines()[-1] == "… and 15 more places"


def test_records_say_what_was_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert ReplayComparison([EXIT]).records() == {
        "compared": "events",
        "differences": [{"what": "exit", "seq": -1, "recorded": EXIT.first, "replayed": ""}],
    }
    check = ReplayComparison([START], [LINK])
    assert check.records() == {
        "compared": "everything",
        "differences": [
            {
                "what": "link",
                "subject": "a.0->s1",
                "at_ns": 1_300_000_000,
                "recorded": "pkts=3",
                "replayed": "pkts=5",
                "more": 1200,
            },
            {"what": "start", "seq": -1, "recorded": START.first, "replayed": START.second},
        ],
    }
    check.tell("json")
    said = capsys.readouterr()
    assert said.out == ""
    assert "could not start in one of the runs or in both prove nothing: a.0" in said.err


def test_where_computing_takes_time_the_check_says_why_it_compares_events_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check = ReplayComparison([EVENT], why_no_more=COMPUTING_DIFFERS)
    check.tell("text")
    why, found = capsys.readouterr().err.splitlines()
    assert why.startswith("check: computing took virtual time (--cpu)")
    assert found == "check: 1 events differ"
    assert check.records()["compared"] == "events"
    assert check.records()["why_no_more"] == COMPUTING_DIFFERS
