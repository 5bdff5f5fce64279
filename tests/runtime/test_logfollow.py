"""Logs and events of a run that goes on: each line once, whole, and in the order of its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from runtime.results.logfollow import Follower
from runtime.results.loglines import LINE_BYTES, Merger
from runtime.rundir.held_directory import HeldDirectory

MS = 1_000_000


class GoingOn:
    """A run directory in which somebody writes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "logs").mkdir()
        for name in ("logs.jsonl", "events.jsonl", "logs/a.0.log", "logs/b.0.log"):
            (place / name).touch()
        self.held = HeldDirectory.hold(place.resolve())
        self.follower = Follower(self.held, ["a.0"], ["a.0", "b.0"])

    def write(self, data: bytes, name: str = "a.0") -> None:
        with (self.place / f"logs/{name}.log").open("ab") as file:
            file.write(data)

    def tell(self, from_ms: int, until_ms: int, name: str = "a.0") -> None:
        """That the log grew then."""
        self.tell_size(name, (self.place / f"logs/{name}.log").stat().st_size, from_ms, until_ms)

    def tell_size(self, name: str, size: int, from_ms: int = 0, until_ms: int = 1) -> None:
        self.line("logs.jsonl", from_ns=from_ms * MS, elapsed_ns=until_ms * MS, bytes={name: size})

    def event(self, kind: str, target: str, at_ms: int) -> None:
        self.line("events.jsonl", kind=kind, target=target, applied_ns=at_ms * MS)

    def line(self, file: str, **record: object) -> None:
        with (self.place / file).open("a") as out:
            out.write(json.dumps(record) + "\n")

    def part(self, *, last: bool = False) -> list[tuple[str, int | None, int | None]]:
        found = self.follower.part(last=last)
        return [
            (line.text or str((line.record or {})["kind"]), *(line.from_ns, line.until_ns))
            for line in found
        ]


@pytest.fixture
def run(tmp_path: Path) -> GoingOn:
    return GoingOn(tmp_path)


def test_lines_come_once_they_are_whole_and_have_a_time(run: GoingOn) -> None:
    assert run.part() == []
    run.write(b"one\ntw")
    assert run.part() == [], "nobody has told yet when the log grew"
    run.tell(100, 200)
    assert run.part() == [("one", None, 200 * MS)]
    run.write(b"o\n")
    run.tell(300, 400)
    assert run.part() == [("two", 300 * MS, 400 * MS)]
    assert run.part() == []
    run.write(b"end")
    assert run.part() == []
    assert run.part(last=True) == [("end", 400 * MS, None)]


def test_logs_that_have_not_grown_are_left_alone(run: GoingOn) -> None:
    run.write(b"one\n")
    run.tell(0, 100)
    assert run.part()
    (run.place / "logs/a.0.log").unlink()
    assert run.part() == [], "nobody has told that there is more"
    run.tell_size("a.0", 8)
    with pytest.raises(RunError):
        run.part()


def test_events_of_who_is_followed_stand_between_the_lines(run: GoingOn) -> None:
    run.write(b"one\n")
    run.tell(0, 100)
    run.write(b"two\n")
    run.tell(300, 400)
    run.write(b"not asked for\n", "b.0")
    run.tell(300, 400, "b.0")
    run.event("crash", "a.0", 200)
    run.event("crash", "b.0", 200)
    run.event("set", "a.0->s", 250)
    found = [text for text, _, _ in run.part()]
    assert found == ["one", "crash", "set", "two"]
    assert run.part() == []


def test_a_line_without_an_end_is_waited_for_and_cut(run: GoingOn) -> None:
    run.write(b"x" * (2 * LINE_BYTES))
    run.tell(0, 100)
    assert run.part() == []
    run.write(b"\nnext\n")
    run.tell(200, 300)
    long, following = run.follower.part()
    assert (len(long.text), long.cut) == (LINE_BYTES, LINE_BYTES)
    assert (following.text, following.cut) == ("next", 0)


@given(data=st.lists(st.binary(max_size=20), max_size=12))
def test_in_whatever_pieces_it_is_written_it_is_what_the_whole_log_says(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes]
) -> None:
    run = GoingOn(tmp_path_factory.mktemp("run"))
    found = []
    for number, piece in enumerate(data):
        run.write(piece)
        run.tell(100 * number, 100 * number + 50)
        found += [line.text for line in run.follower.part()]
    found += [line.text for line in run.follower.part(last=True)]
    merged = Merger(run.held).merged(["a.0"], lambda _: True)
    assert found == [line.text for line in merged]
