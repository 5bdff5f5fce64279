"""Hunts with a stand-in for runs: what is found, kept, gone on with, and ended early."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from compiler.expect.storm_space import FaultKind, StormSpace
from runtime.errors import RunError
from runtime.options import DEFAULTS
from tests.waiting import wait_until
from tstorm.campaign import kept_directory
from tstorm.hunt import hunt_directory, hunt_page, hunt_results, hunt_summary
from tstorm.hunt.hunt_directory import DRAFT, HuntRecord
from tstorm.hunt.hunt_results import FAILED, PASSED, SILENT, FailedAt, FindResult, StormResult
from tstorm.hunt.hunting import SILENT_MOST, Hunting
from tstorm.hunt.storms import Storm, drawn

SECOND = 10**9
SPACE = StormSpace(
    (FaultKind("crash", ("a.0", "a.1")), FaultKind("pause", ("a.0",)), FaultKind("kill", ("a.1",))),
    *(3, 0, 20 * SECOND, SECOND // 10, 10 * SECOND, ("a.0", "a.1")),
)
RECORD = HuntRecord(
    hunt_directory.FORMAT, hunt_directory.VERSION, "exp", "exp.tdl", "abc", 1, 3, 60, {},
    DEFAULTS.to_record(),
)  # fmt: skip
SHARES = [sorted(os.sched_getaffinity(0))] * 2
Outcome = Callable[[Storm], Sequence[str]]  # the expectations that fail with it


@dataclass
class StandIn:
    """Runs in no time. A storm reaches the words of its faults. `shrinks`: to which kinds."""

    outcome: Outcome = lambda _storm: ()
    shrinks: Callable[[Storm], tuple[str, ...]] = lambda storm: storm.kinds[:1]
    silent: str = ""

    def storm(self, storm: Storm) -> StormResult | None:
        if self.silent:
            return StormResult(storm, SILENT, message=self.silent)
        failed = tuple(FailedAt("expectation", name, False, 5) for name in self.outcome(storm))
        reached = tuple(f"state {word}" for word in storm.kinds)
        return StormResult(storm, FAILED if failed else PASSED, failed, reached)

    def find(self, found: StormResult, draft: Path) -> FindResult | None:
        draft.mkdir()
        (draft / "repro.tdl").write_text("text")
        kinds = self.shrinks(found.storm)
        names = tuple(one.name for one in found.failed)
        return FindResult(found.storm.number, 0, True, names, kinds, 9, 3, 1, 5, 7)


@dataclass
class Hunted:
    place: Path
    work: Any = field(default_factory=StandIn)
    told: list[StormResult | FindResult] = field(default_factory=list)
    interrupted: bool = False

    def go(self, most: int, shares: list[list[int]] = SHARES) -> hunt_directory.HuntDirectory:
        with hunt_directory.opened(self.place, RECORD) as hunt:
            hunting = Hunting(
                hunt,
                lambda number: drawn(SPACE, RECORD.seed, number, lambda _storm: ""),
                self.work,
                lambda number: number >= most,
                self.told.append,
            )
            hunting.carry_out(shares)
            self.interrupted = hunting.interrupted
            return hunt


def storms_of(place: Path) -> dict[int, Storm]:
    _, storms, _ = hunt_directory.load(place)
    return {number: one.storm for number, one in storms.items()}


def test_all_storms_are_kept_and_the_same_with_any_number_of_jobs(tmp_path: Path) -> None:
    for name, shares in (("one", SHARES[:1]), ("two", SHARES), ("five", SHARES[:1] * 5)):
        hunt = Hunted(tmp_path / name).go(30, shares)
        assert sorted(hunt.storms) == list(range(30))
    found = [storms_of(tmp_path / name) for name in ("one", "two", "five")]
    assert found[0] == found[1] == found[2]


def test_one_that_was_interrupted_goes_on_to_the_same_storms(tmp_path: Path) -> None:
    whole = Hunted(tmp_path / "whole")
    whole.go(25)
    part = Hunted(tmp_path / "part")
    part.go(7)
    part.go(16)
    results = tmp_path / "part" / "results.jsonl"
    results.write_bytes(results.read_bytes() + b'{"storm":{"cut')
    part.go(25)
    assert storms_of(part.place) == storms_of(whole.place)
    assert len(part.told) == 25


def test_storms_that_are_missing_in_between_are_drawn_as_before(tmp_path: Path) -> None:
    whole = Hunted(tmp_path)
    whole.go(20)
    before = storms_of(tmp_path)
    lines = (tmp_path / "results.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"number":11,' not in line and b'"number":17,' not in line]
    assert len(kept) == 18
    (tmp_path / "results.jsonl").write_bytes(b"".join(kept))
    whole.go(20)
    assert storms_of(tmp_path) == before


def test_failures_of_one_cause_are_one_find(tmp_path: Path) -> None:
    def fails(storm: Storm) -> Sequence[str]:
        return ["expect a"] if "pause" in storm.kinds else []

    hunted = Hunted(tmp_path, StandIn(fails, lambda _storm: ("pause",)))
    hunt = hunted.go(30)
    firsts = [one for one in hunt.finds.values() if one.is_first]
    assert [one.find for one in firsts] == [1]
    failed = {number for number, one in hunt.storms.items() if one.outcome == FAILED}
    assert len(failed) > 3
    assert set(hunt.finds) == failed
    assert [path.name for path in hunt.place_of_finds.iterdir()] == ["0001"]
    summary = hunt_summary.gathered(hunt.path, RECORD, hunt.storms, hunt.finds)
    assert summary["finds"][0]["storms"] == sorted(failed)


def test_other_expectations_and_other_kinds_are_other_finds(tmp_path: Path) -> None:
    def fails(storm: Storm) -> Sequence[str]:
        return [f"expect {word}" for word in ("pause", "kill") if storm.kinds == (word,)]

    hunt = Hunted(tmp_path, StandIn(fails)).go(60)
    found = {(one.failures, one.kinds) for one in hunt.finds.values() if one.is_first}
    assert found == {(("expect pause",), ("pause",)), (("expect kill",), ("kill",))}
    assert sorted(path.name for path in hunt.place_of_finds.iterdir()) == ["0001", "0002"]


def test_a_failure_that_does_not_come_again_is_told_and_no_find(tmp_path: Path) -> None:
    class Gone(StandIn):
        def find(self, found: StormResult, draft: Path) -> FindResult | None:
            assert not draft.exists()
            return FindResult(found.storm.number, 0, message="gone")

    hunt = Hunted(tmp_path, Gone(lambda _storm: ["expect a"])).go(3)
    assert [one.find for one in hunt.finds.values()] == [0, 0, 0]
    summary = hunt_summary.gathered(hunt.path, RECORD, hunt.storms, hunt.finds)
    assert summary["finds"] == []
    assert summary["not_again"] == [0, 1, 2]
    words = list(hunt_summary.text({**summary, "reached": {"near": 0}, "rare": []}))
    assert "no find" in words
    assert "reached: nothing that is looked for" in words
    assert not any(one.startswith("rare") for one in words)


def test_a_find_that_cannot_be_written_ends_it_and_is_made_anew(tmp_path: Path) -> None:
    class Full(StandIn):
        def find(self, found: StormResult, draft: Path) -> FindResult | None:
            draft.mkdir()
            raise RunError("repro.tdl: No space left on device", "make room")

    hunted = Hunted(tmp_path, Full(lambda storm: ["expect a"] if storm.number == 1 else []))
    with pytest.raises(RunError, match="No space left"):
        hunted.go(5)
    assert hunt_directory.load(tmp_path)[2] == {}
    hunted.work = StandIn(hunted.work.outcome)
    assert [one.find for one in hunted.go(5).finds.values()] == [1]


def test_folders_of_finds_that_were_not_kept_go(tmp_path: Path) -> None:
    def fails(storm: Storm) -> Sequence[str]:
        return ["expect a"] if storm.number == 1 else []

    hunted = Hunted(tmp_path, StandIn(fails))
    hunted.go(3)
    for name in (f"{DRAFT}2", "0007"):
        (tmp_path / "finds" / name / "run").mkdir(parents=True)
    hunt = hunted.go(4)
    assert [path.name for path in hunt.place_of_finds.iterdir()] == ["0001"]
    assert len(hunt.storms) == 4


def test_storms_that_say_nothing_end_it(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the guest is gone"):
        Hunted(tmp_path, StandIn(silent="the guest is gone")).go(100)
    storms = hunt_directory.load(tmp_path)[1]
    assert SILENT_MOST <= len(storms) <= SILENT_MOST + len(SHARES)


def test_a_signal_ends_it_and_nothing_is_lost(tmp_path: Path) -> None:
    class Slow(StandIn):
        def storm(self, storm: Storm) -> StormResult | None:
            if storm.number < 4:
                return super().storm(storm)
            if storm.number == 4:
                os.kill(os.getppid(), signal.SIGINT)
            signal.pause()
            return None

    hunted = Hunted(tmp_path, Slow())
    hunted.go(50)
    assert hunted.interrupted
    assert sorted(storms_of(tmp_path)) == [0, 1, 2, 3]
    hunted.work = StandIn()
    assert len(hunted.go(10).storms) == 10


def test_a_signal_while_the_last_storm_goes_on_counts(tmp_path: Path) -> None:
    class Last(StandIn):
        def storm(self, storm: Storm) -> StormResult | None:
            if storm.number == 0:
                results = tmp_path / "results.jsonl"
                wait_until(lambda: b'"number":1,' in results.read_bytes(), "the other storm")
                os.kill(os.getppid(), signal.SIGINT)
                signal.pause()
            return super().storm(storm)

    hunted = Hunted(tmp_path, Last())
    hunted.go(2)
    assert hunted.interrupted
    assert sorted(storms_of(tmp_path)) == [1]


def test_a_full_disk_ends_it_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hunted = Hunted(tmp_path)
    hunted.go(3)
    before = storms_of(tmp_path)

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_directory, "write_all", full)
        with pytest.raises(RunError, match=r"results\.jsonl"):
            hunted.go(9)
    assert storms_of(tmp_path) == before
    assert len(hunted.go(9).storms) == 9


def test_another_hunt_is_refused_with_what_differs(tmp_path: Path) -> None:
    Hunted(tmp_path).go(1)
    other = replace(RECORD, seed=2, source_digest="def")
    with (
        pytest.raises(RunError, match=r"exp\.tdl was another text.*; seed: 1 before, 2 now"),
        hunt_directory.opened(tmp_path, other),
    ):
        pass


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with (
        pytest.raises(RunError, match="is not empty, and no hunt"),
        hunt_directory.opened(tmp_path, RECORD),
    ):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[]\n", "is no result of a hunt"),
        (b'{"storm":{}}\n', "results.jsonl:1"),
        (b'{"storm":3}\n', "results.jsonl:1"),
        (b"nonsense\n", "results.jsonl:1"),
    ],
)
def test_results_that_are_none_name_their_line(tmp_path: Path, line: bytes, said: str) -> None:
    Hunted(tmp_path).go(0)
    (tmp_path / "results.jsonl").write_bytes(line)
    with pytest.raises(RunError, match=said):
        hunt_directory.load(tmp_path)


def test_results_read_back_as_they_are(tmp_path: Path) -> None:
    hunt = Hunted(tmp_path, StandIn(lambda _storm: ["expect a"])).go(5)
    _, storms, finds = hunt_directory.load(tmp_path)
    assert (storms, finds) == (hunt.storms, hunt.finds)
    assert hunt_results.line(storms[0]).endswith(b"\n")


def test_a_hunt_stands_beside_an_earlier_one(tmp_path: Path) -> None:
    def fails(word: str) -> Outcome:
        return lambda storm: [f"expect {word}"] if storm.kinds == (word,) else []

    before = Hunted(tmp_path / "before", StandIn(fails("kill"))).go(40)
    now = Hunted(tmp_path / "now", StandIn(fails("pause"))).go(40)
    beside = (before.storms, before.finds)
    summary = hunt_summary.gathered(now.path, RECORD, now.storms, now.finds, beside)
    assert summary["beside"]["finds"] == {
        "new": ["expect pause (by pause)"],
        "gone": ["expect kill (by kill)"],
        "both": [],
    }
    words = list(hunt_summary.text(summary))
    assert "  find, new: expect pause (by pause)" in words
    assert "  find, gone: expect kill (by kill)" in words


def test_what_never_happened_in_any_storm_is_told_first(tmp_path: Path) -> None:
    hunt = Hunted(tmp_path).go(3)
    _, read, finds = hunt_directory.load(tmp_path)
    came = {0: ("a",), 1: (), 2: ("a",)}
    storms = {
        number: replace(one, happened=came[number], never=tuple({"a", "b"} - {*came[number]}))
        for number, one in read.items()
    }
    lines = b"".join(map(hunt_results.line, storms.values()))
    (tmp_path / hunt_results.FILE).write_bytes(lines)
    assert hunt_directory.load(tmp_path)[1] == storms
    summary = hunt_summary.gathered(hunt.path, RECORD, storms, finds)
    assert summary["never"] == ["b"]
    assert next(hunt_summary.text(summary)) == "never happened in any of 3 storms: b"


def test_a_page_has_what_was_found_and_escapes_it(tmp_path: Path) -> None:
    def fails(storm: Storm) -> list[str]:
        return ["expect <b>"] if storm.kinds == ("pause",) else []

    now = Hunted(tmp_path / "now", StandIn(fails)).go(40)
    before = Hunted(tmp_path / "before").go(10)
    beside = (before.storms, before.finds)
    summary = hunt_summary.gathered(now.path, RECORD, now.storms, now.finds, beside)
    page = hunt_page.render(summary, now.storms)
    assert "expect &lt;b&gt;" in page
    assert "<b>" not in page
    assert '<a href="finds/0001/repro.tdl">repro.tdl</a>' in page
    assert "why.txt" not in page  # there is none
    assert "Beside 10 storms before" in page
    failed = summary["outcomes"][FAILED]
    assert failed and page.count('class="fail"') == failed
    assert "3 things reached" in page


class Overtaken(StandIn):
    """The find of the first storm takes longer than that of the second, and storm 0 longer than
    both."""

    def __init__(self, place: Path) -> None:
        super().__init__(outcome=lambda storm: (f"failure {storm.number}",))
        self._place = place

    def storm(self, storm: Storm) -> StormResult | None:
        if storm.number == 0:
            wait_until((self._place / "storm 1").exists, "storm 1")
        (self._place / f"storm {storm.number}").touch()
        return super().storm(storm)

    def find(self, found: StormResult, draft: Path) -> FindResult | None:
        if found.storm.number == 0:
            wait_until((self._place / "find 1").exists, "find 1")
        made = super().find(found, draft)
        (self._place / f"find {found.storm.number}").touch()
        return replace(made, kinds=("crash",), failures=("one",)) if made else None


def test_finds_do_not_depend_on_which_process_is_faster(tmp_path: Path) -> None:
    hunted = Hunted(tmp_path / "hunt", Overtaken(tmp_path))
    hunt = hunted.go(4, SHARES[:1] * 2)
    finds = [one for one in hunted.told if isinstance(one, FindResult)]
    assert [one.storm for one in finds] == [0, 1, 2, 3]
    assert [(one.find, one.is_first) for one in finds] == [(1, True), *[(1, False)] * 3]
    assert hunt.finds.keys() == {0, 1, 2, 3}
