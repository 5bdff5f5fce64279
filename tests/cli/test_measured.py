"""What commands say of measured paths."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = pytest.mark.e2e

TEXT = """\
service a
service b
path a--b abw-flows-up=1:4Mb;4:8Mb abw-down=2Mb rtt=24ms
at 2s a--b set capacity=50Mb
at 5s quit
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "exp.tdl").write_text(TEXT)
    return tmp_path


def test_explain_prints_the_bounds(place: Path) -> None:
    said = tstorm(place, "explain", "exp.tdl", "--from", "a", "--to", "b").stdout
    assert "a.0->b.0 is a measured path: round trip 24ms, capacity 100Mb, windows of 125KiB" in said
    rows = [line.split() for line in said.splitlines() if line.strip().startswith(("1 4Mb", "1  "))]
    assert ["4Mb", "2Mb", "1450KB", "1450KB", "256ms", "256ms", "12KB", "6KB", "2900KB"] in [
        row[1:] for row in rows
    ]
    words = ("--from", "b", "--to", "a", "--at", "3s", "--format", "json")
    [path] = json.loads(tstorm(place, "explain", "exp.tdl", *words).stdout)["measured"]
    assert path["links"] == ["b.0->a.0", "a.0->b.0"]
    assert (path["capacity_bps"], path["rtt_ns"]) == ([50_000_000] * 2, 24_000_000)
    first, second = path["rows"]
    assert (first["flows"], second["flows"]) == (1, 4)
    assert first["rate_bps"] == [2_000_000, 4_000_000]
    assert first["most_bytes"] == sum(first["queue_bytes"]) == 1_450_000
    assert first["full_ns"] == first["filled_ns"] == 256_000_000
    assert second["least_bytes"] == [6000, 24_000]


SHARED = """\
service a
service b
service c
bottleneck west capacity=50Mb
path a--b abw-flows=1:4Mb;4:8Mb rtt=24ms bottleneck-up=west
path c--a abw=2Mb rtt=24ms bottleneck-down=west
at 5s quit
"""


def test_explain_says_who_shares_a_queue(place: Path) -> None:
    (place / "exp.tdl").write_text(SHARED)
    said = tstorm(place, "explain", "exp.tdl", "--from", "a", "--to", "b").stdout
    assert "a.0->b.0 is a measured path: round trip 24ms, capacity 50Mb and 100Mb" in said
    lines = said.splitlines()
    [at] = [number for number, line in enumerate(lines) if "bottleneck west" in line]
    assert lines[at].endswith("capacity 50Mb, of 2 links: a.0->b.0, a.0->c.0")
    rows = [line.split()[:2] for line in lines[at + 2 : at + 6]]
    # of two flows the path to b has 4 + 4/3 Mb/s, of four 8; the other one 2 in any case
    assert rows == [["1", "3.666667Mb"], ["2", "5Mb"], ["4", "5Mb"], ["8", "5Mb"]]
    # in the table of hops, too, and not that of the path by itself
    [hop] = [line for line in lines if line.split()[1:2] == ["a.0->b.0"]]
    shared = lines[at + 2].split()[2]
    assert shared in hop.split()
    words = ("--from", "c", "--to", "a", "--format", "json")
    story = json.loads(tstorm(place, "explain", "exp.tdl", *words).stdout)
    [[there], [back]] = story["there"]["hops"], story["back"]["hops"]
    assert "shares" not in there
    assert back["shares"]["links"] == ["a.0->b.0", "a.0->c.0"]
    assert back["shares"]["rows"][1]["rate_bps"] == 5_000_000
    assert "what other paths of the bottleneck change is not among these" in said


def test_a_path_that_is_down_has_no_part_in_what_is_shared(place: Path) -> None:
    away = "from 1s to 2s c--a leave\nexpect throughput a b > 90% of plan from 2s to 4s\n"
    (place / "exp.tdl").write_text(SHARED.replace("at 5s quit", f"{away}at 5s quit"))
    said = tstorm(place, "explain", "exp.tdl", "--from", "a", "--to", "b", "--at", "1500ms").stdout
    [line] = [one for one in said.splitlines() if "bottleneck west" in one]
    assert line.endswith("of 1 link: a.0->b.0")
    told = tstorm(place, "explain", "exp.tdl", "--expect").stdout
    assert "planned: rate 8Mb" in told  # its own, not the bottleneck's 50Mb


@pytest.mark.parametrize("where", [("--hosts", "2"), ("--datapath", "kernel", "--hosts", "2")])
def test_over_hosts_bottlenecks_are_refused_with_the_line(
    place: Path, where: tuple[str, ...]
) -> None:
    (place / "exp.tdl").write_text(SHARED)
    done = tstorm(place, "run", "exp.tdl", *where, "--out", "run", code=1)
    assert "exp.tdl:5: the capacity of link a.0->b.0 is not possible with" in done.stderr
    assert not (place / "run").exists()


@pytest.mark.parametrize("words", [("--hosts", "2"), ("--datapath", "kernel", "--hosts", "2")])
def test_over_hosts_they_are_refused_with_the_line(place: Path, words: tuple[str, ...]) -> None:
    done = tstorm(place, "run", "exp.tdl", *words, "--out", "run", code=1)
    assert "exp.tdl:3: the capacity of link a.0->b.0 is not possible with" in done.stderr
    assert not (place / "run").exists()


def test_a_background_that_gives_way_is_refused_there_too(place: Path) -> None:
    text = TEXT.replace("path a--b abw-flows-up=1:4Mb;4:8Mb abw-down=2Mb", "link a--b rate=9Mb")
    text = text.replace("rtt=24ms", "latency=9ms").replace(
        "set capacity=50Mb", "background 1Mb flows=2"
    )
    (place / "exp.tdl").write_text(text)
    done = tstorm(place, "run", "exp.tdl", "--hosts", "2", "--out", "run", code=1)
    assert "exp.tdl:4: a background of flows (flows=) on link a.0->b.0 is not" in done.stderr
    assert not (place / "run").exists()


def test_events_name_what_changes_in_the_languages_words(place: Path) -> None:
    assert "capacity=50Mb" in tstorm(place, "events", "exp.tdl").stdout


def test_a_queue_that_becomes_stated_has_no_round_trip_any_more(place: Path) -> None:
    (place / "exp.tdl").write_text(SHARED)
    (place / "other.tdl").write_text(SHARED.replace("capacity=50Mb", "capacity=50Mb queue=64KB"))
    said = tstorm(place, "diff", "exp.tdl", "other.tdl", code=1).stdout
    assert "link a.0->b.0 queue by round trip: 24ms -> none" in said
    (place / "exp.tdl").write_text(SHARED.replace("at 5s", "at 2s west set queue=64KB\nat 5s"))
    assert "queue=64KB queue by round trip=none" in tstorm(place, "events", "exp.tdl").stdout


def test_what_is_no_file_has_a_remedy(place: Path) -> None:
    os.mkfifo(place / "fifo")
    (place / "exp.tdl").write_text('service a\nservice b\nlink a--b jitter=1ms dist="fifo"\n')
    said = tstorm(place, "check", "exp.tdl", code=1).stderr
    assert "exp.tdl:3:27: error TS0178: 'fifo' cannot be read: it is no file on a disk" in said
    assert "help: copy what it gives to a file" in said


def test_explain_names_the_file_of_delays(place: Path) -> None:
    (place / "delays.txt").write_text("0\n1\n2\n5\n")
    (place / "exp.tdl").write_text(
        "service a\nservice b\nlink a--b dist=delays.txt\nat 2s a--b set dist=normal\nat 5s quit\n"
    )
    words = ("explain", "exp.tdl", "--from", "a", "--to", "b")
    assert "a.0->b.0 draws its jitter from delays.txt" in tstorm(place, *words).stdout
    assert "delays.txt" not in tstorm(place, *words, "--at", "2s").stdout.split("changed last")[0]
    story = json.loads(tstorm(place, *words, "--format", "json").stdout)
    assert story["there"]["hops"][0]["delays"] == "delays.txt"
