"""`crash power`: what a program has synced is there afterwards, whichever way it asked; what it has
not may be gone. With the example: the bug shows with power failures, and not with crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import ROOT, tstorm
from tests.virtual.guests import compiled

pytestmark = pytest.mark.virtual

EXAMPLE = ROOT / "examples/tornlog"
WORDS = ("--time", "virtual", "--no-probes", "--quiet")
WAYS = """\
service a exec="./syncs" files=syncs
service b
bridge s
link a--s latency=1ms
link b--s latency=1ms
service c replicas=8 exec="sh names.sh" files=names.sh
link c--s latency=1ms
at 2s a crash power
at 2s c crash power
at 3s a join
at 3s c join
at 4s quit
"""
NAMES = """\
[ -e renamed ] && { cat renamed; ls | grep removed; exit; }
echo old >renamed
echo old >removed
sync
echo new >next
sync next
mv next renamed
rm removed
sleep 100
"""
COPIES = 8


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ways")
    compiled("syncs", place, "-static")
    (place / "names.sh").write_text(NAMES)
    (place / "e.tdl").write_text(WAYS)
    tstorm(place, "run", "e.tdl", *WORDS, "--seed", "2", "--out", "run")
    return place / "run" / "logs"


@pytest.fixture
def log(logs: Path) -> list[str]:
    """What a static program without a C library's help finds in its second life."""
    return (logs / "a.0.log").read_text().splitlines()


@pytest.mark.parametrize(
    "way",
    [
        *("fsync", "fdatasync", "msync", "O_DSYNC", "openat2", "renamed", "RWF_DSYNC"),
        *("truncated-and-synced", "sync"),
        "folder/unnamed",  # whose name comes back with this seed
    ],
)
def test_every_way_to_sync_is_heard(log: list[str], way: str) -> None:
    assert f"{way} whole" in log


@pytest.mark.parametrize("name", ["nothing", "replaced"])
def test_what_is_not_synced_is_lost_with_this_seed(log: list[str], name: str) -> None:
    """Also where a file was that was written through."""
    assert f"{name} whole" not in log
    assert any(line.startswith(f"{name} ") for line in log)


@pytest.mark.parametrize("call", ["io_uring", "io_setup"])
def test_a_program_falls_back_to_calls_that_are_heard(log: list[str], call: str) -> None:
    assert f"{call} ENOSYS" in log


def test_names_that_were_removed_or_replaced_come_back(logs: Path) -> None:
    lives = [(logs / f"c.{one}.log").read_text().partition(": join\n") for one in range(COPIES)]
    assert {found for _, _, found in lives} == {"new\n", "old\nremoved\n"}


def test_a_file_without_a_name_can_be_synced(log: list[str]) -> None:
    assert "gone synced" in log


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("example")
    said = tstorm(
        place, "run", str(EXAMPLE / "tornlog.tdl"), *WORDS, "--seed", "1", "--out", "run", code=5
    )
    assert "LOST" in said.stderr + (place / "run" / "logs" / "client.0.log").read_text()
    return place / "run"


def test_the_loss_is_told_with_the_event(lost: Path) -> None:
    events = map(json.loads, (lost / "events.jsonl").read_text().splitlines())
    [crash] = [one for one in events if one["kind"] == "crash"]
    assert crash["lost_files"] + crash["lost_names"] > 0
    assert set(crash["args"]) == {"power_seed"}


def test_a_replay_loses_the_same(lost: Path) -> None:
    said = tstorm(lost.parent, "replay", "run", "--check", "--quiet", "--out", "again", code=5)
    assert "check: everything is the same" in said.stderr


@pytest.mark.parametrize(("fault", "how"), [("crash power", "safe"), ("crash", "careless")])
def test_it_is_not_lost_by_a_safe_program_nor_by_a_crash(
    tmp_path: Path, fault: str, how: str
) -> None:
    text = (EXAMPLE / "tornlog.tdl").read_text()
    assert "crash power" in text
    (tmp_path / "e.tdl").write_text(text.replace("crash power", fault))
    (tmp_path / "log.py").write_bytes((EXAMPLE / "log.py").read_bytes())
    words = ("--seed", "1", "--param", f"how={how}", "--out", "run")
    tstorm(tmp_path, "run", "e.tdl", *WORDS, *words)
