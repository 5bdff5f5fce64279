"""A campaign's directory: begun, gone on with, refused, and read as foreign data."""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.options import DEFAULTS
from tests.waiting import wait_until
from tstorm.campaign import campaign_directory, kept_directory
from tstorm.campaign.campaign_directory import Campaign
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.points import Grid, Point
from tstorm.campaign.results import ExpectationOutcomes, PointResult

RECORD = CampaignRecord("bank", "bank.tdl", "d1", Grid(range(1, 4)), DEFAULTS)


def found(seed: int, outcome: str = "completed") -> PointResult:
    expected = ExpectationOutcomes(1, ("at 5s expect rtt a b < 1ms",), 0)
    return PointResult(Point(seed), 5, outcome, "valid", ("a.0",), expected, "", ran=True)


def ended(place: Path) -> None:
    """What there is of a run that has ended, as far as a campaign looks."""
    place.mkdir()
    for name in ("manifest.json", "summary.json"):
        (place / name).write_text('{"outcome":"completed"}')


def begun(place: Path, *seeds: int) -> None:
    with campaign_directory.opened(place, RECORD) as campaign:
        for seed in seeds:
            ended(campaign.place(Point(seed)))
            campaign.add(found(seed))


def test_what_is_done_is_known_again(tmp_path: Path) -> None:
    begun(tmp_path / "c", 1, 3)
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        assert campaign.done == {Point(1): found(1), Point(3): found(3)}
    _, record, results = campaign_directory.load(tmp_path / "c")
    assert (record, list(results)) == (RECORD, [Point(1), Point(3)])


def test_what_was_interrupted_or_is_gone_is_not_done(tmp_path: Path) -> None:
    begun(tmp_path / "c", 1, 2)
    shutil.rmtree(tmp_path / "c/seed-2")
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        campaign.place(Point(3)).mkdir()
        campaign.add(found(3, "interrupted"))
        campaign.add(replace(found(1), ran=False))
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        assert campaign.done == {}


def test_a_line_that_was_cut_is_left_out_and_written_over(tmp_path: Path) -> None:
    begun(tmp_path / "c", 1)
    with (tmp_path / "c/results.jsonl").open("a") as file:
        file.write('{"point":"seed-2"')
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        campaign.place(Point(2)).mkdir()
        campaign.add(found(2))
    assert list(campaign_directory.load(tmp_path / "c")[2]) == [Point(1), Point(2)]


@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
@pytest.mark.parametrize("left", [None, "", "\0" * 64, "{}", '{"outcome":"com'])
def test_a_run_that_a_power_cut_has_damaged_is_not_done_and_put_aside(
    tmp_path: Path, name: str, left: str | None
) -> None:
    begun(tmp_path / "c", 1, 2)
    damaged = tmp_path / "c/seed-2" / name
    damaged.unlink()
    if left is not None:
        damaged.write_text(left)
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        assert campaign.done == {Point(1): found(1)}
        assert list(campaign.damaged) == [Point(2)]
        assert name in campaign.damaged[Point(2)]
        assert campaign.clear(Point(2)) == "seed-2.damaged-1"
        assert not campaign.place(Point(2)).exists()
        assert (tmp_path / "c/seed-2.damaged-1").is_dir()


def test_a_result_is_on_the_disk_when_it_has_been_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(os.fstat(one).st_size))
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        assert (tmp_path / "c/campaign.json").stat().st_size in synced
        campaign.add(found(1))
        assert synced[-1] == (tmp_path / "c/results.jsonl").stat().st_size > 0


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (replace(RECORD, source_digest="d2"), "the experiment: bank.tdl was another text"),
        (replace(RECORD, grid=Grid(range(2, 9))), "the grid: seeds 1..3 before, seeds 2..8 now"),
        (
            replace(RECORD, options=replace(DEFAULTS, pace=2, until_ns=5)),
            "the option pace: 1 before, 2 now; the option until_ns: not given before, 5 now",
        ),
    ],
)
def test_another_campaign_is_refused_with_what_differs(
    tmp_path: Path, wanted: CampaignRecord, words: str
) -> None:
    begun(tmp_path / "c", 1)
    before = {one.name: one.stat().st_mtime_ns for one in (tmp_path / "c").iterdir()}
    with pytest.raises(RunError, match=words), campaign_directory.opened(tmp_path / "c", wanted):
        pass
    assert {one.name: one.stat().st_mtime_ns for one in (tmp_path / "c").iterdir()} == before


def test_more_seeds_extend_it(tmp_path: Path) -> None:
    begun(tmp_path / "c", 1)
    wanted = replace(RECORD, grid=Grid(range(9)))
    with campaign_directory.opened(tmp_path / "c", wanted) as campaign:
        assert list(campaign.done) == [Point(1)]
    assert campaign_directory.load(tmp_path / "c")[1] == wanted


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(RunError, match="not empty"), campaign_directory.opened(tmp_path, RECORD):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["notes"]


def test_a_second_command_is_refused_while_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with campaign_directory.opened(tmp_path / "c", RECORD):
        monkeypatch.setattr(kept_directory, "LOCK_SECONDS", 0.0)
        with (
            pytest.raises(RunError, match="another command works in"),
            campaign_directory.opened(tmp_path / "c", RECORD),
        ):
            pass


def test_whoever_comes_while_a_killed_command_ends_waits_for_it(tmp_path: Path) -> None:
    second: list[Campaign] = []

    def go_on() -> None:
        with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
            second.append(campaign)

    with campaign_directory.opened(tmp_path / "c", RECORD):
        thread = threading.Thread(target=go_on)
        thread.start()
    wait_until(lambda: bool(second), "the second command")
    thread.join()


def test_a_half_done_run_goes_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/keep").write_text("x")
    with campaign_directory.opened(tmp_path / "c", RECORD) as campaign:
        (campaign.place(Point(1)) / "logs").mkdir(parents=True)
        campaign.place(Point(2)).symlink_to(tmp_path / "mine")
        for seed in (1, 2, 3):
            campaign.clear(Point(seed))
            assert not campaign.place(Point(seed)).is_symlink()
            assert not campaign.place(Point(seed)).exists()
    assert (tmp_path / "mine/keep").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("campaign.json", "{}"),
        ("campaign.json", "["),
        ("campaign.json", '{"format":"thunderstorm-campaign","version":9}'),
        ("results.jsonl", "{}\n"),
        ("results.jsonl", "\xff\n"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, name: str, text: str) -> None:
    begun(tmp_path / "c", 1)
    (tmp_path / "c" / name).write_text(text, encoding="latin-1")
    with pytest.raises(RunError, match=name):
        campaign_directory.load(tmp_path / "c")


def test_a_result_that_names_another_directory_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "c", 1)
    row = json.loads((tmp_path / "c/results.jsonl").read_text())
    row["point"] = "../../other"
    (tmp_path / "c/results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(RunError, match="is not the name of its point"):
        campaign_directory.load(tmp_path / "c")


def test_a_range_without_end_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "c")
    record = json.loads((tmp_path / "c/campaign.json").read_text())
    record["grid"]["seeds"] = [0, 10**15]
    (tmp_path / "c/campaign.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="not the first and the last seed"):
        campaign_directory.load(tmp_path / "c")
