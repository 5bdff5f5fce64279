"""What `explain`, `paths`, `diff` and `check` say of links that follow traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import status, tstorm
from tstorm.exit_codes import OK

TDL = """\
service a img=x
service b img=x
bridge s
link a--s latency=5ms trace-up=cell.trace trace-down=wifi.csv queue=100KB
link b--s latency=1ms
at 4s a->s set trace=none rate=3Mb
at 9s quit
"""
UP = "a.0->s follows cell.trace: rate 606Kb on average, 12Kb to 1.2Mb in single seconds"
DOWN = "s->a.0 follows wifi.csv: rate 2Mb on average, 1Mb to 3Mb; loss 1.5% on average, 1% to 2%"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TDL)
    lines = [*range(10, 1001, 10), 2000]
    (tmp_path / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    (tmp_path / "wifi.csv").write_text("time,rate,loss\n0,1Mb,1%\n1,3Mb,2%\n")
    return tmp_path


def test_check_is_quiet(folder: Path) -> None:
    result = tstorm("check", "--strict", "a.tdl")
    assert status(result) == OK, result.stderr
    assert "warning" not in result.stderr


def test_a_path_is_explained_with_what_its_links_follow(folder: Path) -> None:
    text = tstorm("explain", "a.tdl", "--from", "a", "--to", "b", "--at", "1s").stdout
    assert f"  {UP}\n" in text
    assert f"  {DOWN}\n" in text
    said = ("explain", "a.tdl", "--from", "a", "--to", "b", "--format", "json")
    found = json.loads(tstorm(*said).stdout)
    assert found["there"]["hops"][0]["follows"] == {
        "name": "cell.trace",
        "begin_ns": 0,
        "rate_bps": {"mean": 606_000, "least": 12_000, "most": 1_200_000},
    }
    later = json.loads(tstorm(*said, "--at", "5s").stdout)
    assert "follows" not in later["there"]["hops"][0]


def test_paths_have_the_mean_and_a_note(folder: Path) -> None:
    result = tstorm("paths", "a.tdl", "--at", "1s")
    assert "606Kb" in result.stdout
    assert "note: until 4s a.0->s follows cell.trace: rate" in result.stderr
    assert "note: until 4s s->a.0 follows wifi.csv: rate" in result.stderr


def test_a_difference_names_them(folder: Path) -> None:
    (folder / "b.tdl").write_text(TDL.replace("trace-up=cell.trace", "trace-up=wifi.csv"))
    text = tstorm("diff", "a.tdl", "b.tdl").stdout
    assert '~ link a.0->s trace: "cell.trace (' in text
    assert '-> "wifi.csv (' in text
    (folder / "b.tdl").write_text(TDL.replace("trace=none rate=3Mb", "trace=wifi.csv"))
    text = tstorm("diff", "a.tdl", "b.tdl").stdout
    assert "trace=none" in text
    assert "trace=wifi.csv (" in text
