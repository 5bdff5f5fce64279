"""The page of a run that goes on: whatever pieces it comes in, it is what a page of it all has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.extension import extend
from compiler.pipeline import write
from compiler.plan.reader import read_plan
from runtime.page import grid
from runtime.page.growing_page import GrowingPage
from runtime.page.page_data import gather
from runtime.rundir import rundir
from tests.page.synthetic import SECOND, Shape, make

SHAPE = Shape(clients=2, seconds=60)
GROWING = ("events.jsonl", "samples.jsonl", "probes.jsonl", "logs.jsonl")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("growing") / "finished", SHAPE)


class GoingOn:
    """The same run again, written line by line."""

    def __init__(self, finished: Path, place: Path) -> None:
        shutil.copytree(finished, place)
        manifest = json.loads((place / "manifest.json").read_text())
        self.closed = json.dumps(manifest)
        self.place = place
        self.left = {name: (place / name).read_bytes().splitlines(True) for name in GROWING}
        self.whole = {name: len(lines) for name, lines in self.left.items()}
        for name in GROWING:
            (place / name).unlink()
        for name in ("outcome", "message"):
            manifest.pop(name, None)
        (place / "manifest.json").write_text(json.dumps(manifest))
        self.page = GrowingPage(rundir.recorded(place), lambda: True)
        self.page.now_ns = lambda: self.seen  # type: ignore[method-assign]
        self.seen = 0

    def write(self, part: int, of: int) -> None:
        for name, lines in self.left.items():
            count = -(-self.whole[name] * part // of) - (self.whole[name] - len(lines))
            with (self.place / name).open("ab") as file:
                file.writelines(lines[:count])
            del lines[:count]
        self.seen = SHAPE.seconds * SECOND * part // of

    def updates(self, parts: int) -> Iterator[dict[str, Any]]:
        for part in range(1, parts + 1):
            self.write(part, parts)
            yield self.page.news()
            yield self.page.growth()


class Browser:
    """What model.js makes of updates."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.events: list[tuple[Any, ...]] = []
        self.lines: list[tuple[str, str]] = []
        self.series: dict[tuple[Any, ...], dict[int, int]] = {}

    def apply(self, update: dict[str, Any]) -> None:
        anew = update.pop("anew", ())
        if "events" in anew:
            self.events.clear()
        if "logs" in anew:
            self.lines.clear()
        for key in [one for one in self.series if one[0] in anew]:
            del self.series[key]
        self.known.update(update)
        self._add_events(update.get("events"))
        for log in update.get("logs", ()):
            self.lines += [(log["instance"], line[2]) for line in log["lines"]]
        for link in update.get("links", ()):
            self._add(("links", link["link"]), link)
        for pair in update.get("pairs", ()):
            self._add(("pairs", pair["src"], pair["dst"]), pair)
            self._add(("pairs", pair["src"], pair["dst"], "probe"), pair.get("probe", {}))

    def _add_events(self, told: dict[str, Any] | None) -> None:
        for _, kind, target, *rest in told["rows"] if told else ():
            assert told is not None
            self.events.append((told["kinds"][kind], told["targets"][target], *rest[:5]))

    def _add(self, key: tuple[Any, ...], record: dict[str, Any]) -> None:
        for name, piece in record.items():
            if isinstance(piece, dict) and "v" in piece:
                at = piece.get("i", range(len(piece["v"])))
                known = self.series.setdefault((*key, name), {})
                told = zip(at, piece["v"], strict=True)
                known.update((bucket, value) for bucket, value in told if value is not None)

    def shown(self) -> dict[tuple[Any, ...], dict[int, int]]:
        """But zeros and gaps, which need not be told."""
        found = {
            key: {at: value for at, value in one.items() if value}
            for key, one in self.series.items()
        }
        return {key: one for key, one in found.items() if one}


def whole(path: Path) -> Browser:
    directory = rundir.recorded(path)
    found = Browser()
    found.apply(gather(directory, directory.manifest(), directory.summary()))
    return found


@pytest.mark.parametrize("parts", [1, 7, 150])
def test_in_whatever_pieces_it_comes_it_is_the_same(
    finished: Path, tmp_path: Path, parts: int
) -> None:
    run, seen = GoingOn(finished, tmp_path / "run"), Browser()
    seen.apply(run.page.whole())
    for update in run.updates(parts):
        seen.apply(update)
    expected = whole(finished)
    assert seen.events == expected.events
    names = [one for one in expected.shown() if one[-1] not in ("lo", "hi")]
    assert {name: seen.shown()[name] for name in names} == {
        name: expected.shown()[name] for name in names
    }
    assert len(names) > 12
    told = {(who, line) for who, line in expected.lines if who == "server.0"}
    assert {one for one in seen.lines if one[0] == "server.0"} == told


def test_who_comes_later_knows_the_same(finished: Path, tmp_path: Path) -> None:
    run, first, late = GoingOn(finished, tmp_path / "run"), Browser(), Browser()
    first.apply(run.page.whole())
    for number, update in enumerate(run.updates(20)):
        first.apply(update)
        if number == 21:
            late.apply(run.page.whole())
        elif number > 21:
            late.apply(update)
    assert late.shown() == first.shown()
    assert (late.events, late.lines) == (first.events, first.lines)


def test_points_are_joined_two_by_two_and_nothing_is_lost(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(finished)
    monkeypatch.setattr(grid, "MOST_BUCKETS", 100)
    run, seen = GoingOn(finished, tmp_path / "run"), Browser()
    seen.apply(run.page.whole())
    anew = 0
    for update in run.updates(60):
        anew += update.get("anew") == ["links", "pairs"]
        seen.apply(update)
    axis = seen.known["time"]["grid"]
    assert (anew, axis["step_ns"], axis["count"]) == (3, 800_000_000, 75)
    for key in ("links", 0, "rate"), ("pairs", "server.0", "client.0", "rate"):
        step_ns = expected.known["time"]["grid"]["step_ns"]
        fine = sum(expected.series[key].values()) * step_ns
        assert abs(sum(seen.series[key].values()) * axis["step_ns"] - fine) < fine / 1000
        high = seen.series[(*key[:-1], "hi")]
        assert max(high.values()) == max(expected.series[key].values())
        assert min(seen.series[(*key[:-1], "lo")].values()) == min(expected.series[key].values())
    probes = seen.series["pairs", "server.0", "client.0", "probe", "got"]
    assert sum(probes.values()) == sum(
        expected.series["pairs", "server.0", "client.0", "probe", "got"].values()
    )


def test_the_end_is_the_page_of_the_whole_run(finished: Path, tmp_path: Path) -> None:
    run = GoingOn(finished, tmp_path / "run")
    list(run.updates(2))
    assert run.page.end() is None
    (run.place / "manifest.json").write_text(run.closed)
    end = run.page.end()
    assert end is not None
    directory = rundir.recorded(finished)
    expected = gather(directory, directory.manifest(), directory.summary())
    assert {key: end[key] for key in expected} == expected
    assert run.page.whole() == end


def test_a_run_that_was_killed_ends_too(finished: Path, tmp_path: Path) -> None:
    run = GoingOn(finished, tmp_path / "run")
    list(run.updates(2))
    page = GrowingPage(rundir.recorded(run.place), lambda: False)
    end = page.end()
    assert end is not None
    assert (end["run"]["outcome"], page.ended) == ("unfinished", True)


def test_what_is_planned_next_is_told(finished: Path, tmp_path: Path) -> None:
    run = GoingOn(finished, tmp_path / "run")
    run.write(1, 4)
    run.page.news()
    run.page.growth()
    coming = run.page.whole()["coming"]
    assert [kind for _, kind, _ in coming] == ["disconnect", "reconnect", "set", "set", "quit"]
    assert coming[0] == [30 * SECOND, "disconnect", "client.0"]


def test_events_come_with_what_time_it_is(finished: Path, tmp_path: Path) -> None:
    """The page's picture is that of the time which it was told last; of the grid it has points."""
    run = GoingOn(finished, tmp_path / "run")
    points, told = 0, 0
    for part in range(1, 40):
        run.write(part, 40)
        found = run.page.news()
        if "events" in found:
            assert found["time"]["now_ns"] == run.seen
            assert found["time"]["grid"]["count"] == points or not points
            told += 1
        if part % 3 == 0:
            points = run.page.growth()["time"]["grid"]["count"]
    assert told > 3


def test_what_a_when_has_done_is_in_the_network_once_it_is_on_the_disk(tmp_path: Path) -> None:
    place = make(tmp_path / "run", SHAPE)
    page = GrowingPage(rundir.recorded(place), lambda: True)
    page.news()
    record = {"kind": "when", "target": "client.0", "action": 1, "applied_ns": SECOND}
    with (place / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    assert "network" not in page.news()  # its plan comes later
    plan = read_plan(place / "plan")
    longer = extend(plan, 1, "client--s1 set latency=123ms", 40 * SECOND)
    shutil.rmtree(place / "plan")
    write(longer, place / "plan")
    topology = page.plan.topology
    assert page.news()["network"]
    assert page.plan.digest == longer.plan.digest
    assert page.plan.topology is topology, "only what is new is read"
    assert page.plan.epochs == longer.plan.epochs
    assert "network" not in page.news()
