"""Files in files: every command that reads a text reads them, and plans carry them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from compiler.sources import member, path_of
from tests.cli.support import tstorm

MAIN = """\
include "net/core.tdl"
service pg replicas=3 exec="sleep 9"
for i in 0..2 {
    link pg.$i--dc$i latency=1ms
}
include "../lib/events.tdl"
at 30s quit
"""
CORE = "let wan = 20ms\nbridges dc[0..2] core\nfor i in 0..2 { link dc$i--core latency=$wan }\n"
EVENTS = "from 5s to 9s pg crash 1\nat 10s dc0--core set loss=1%\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("exp/net", "lib"):
        Path(folder).mkdir(parents=True)
    Path("exp/main.tdl").write_text(MAIN)
    Path("exp/net/core.tdl").write_text(CORE)
    Path("lib/events.tdl").write_text(EVENTS)


def printed(*arguments: str, code: int = 0) -> str:
    result = tstorm(*arguments)
    assert result.exit_code == code, result.stderr
    return str(result.stdout)


def test_a_file_is_checked_with_all_that_it_includes() -> None:
    said, drawn = printed("check", "exp/main.tdl").splitlines()
    assert said == "ok: 1 service, 3 instances, 6 links, 7 events, ends at 30s"
    assert drawn.startswith("lib/events.tdl:1: pg.")


@pytest.mark.parametrize("path", ["pipe", f"{'../' * 20}proc/version"])
@pytest.mark.parametrize("statement", ['include "{}"', "service more files={} img=x"])
def test_what_is_no_file_on_a_disk_is_not_included(path: str, statement: str) -> None:
    os.mkfifo("exp/pipe")
    main = Path("exp/main.tdl")
    main.write_text(f"{main.read_text()}{statement.format(path)}\n")
    said = tstorm("check", "exp/main.tdl")
    assert said.exit_code == 1
    assert "is not a file" in said.stderr


def test_a_message_names_the_included_file_and_shows_its_line() -> None:
    with Path("exp/net/core.tdl").open("a") as file:
        file.write("at 11s dcx leave\n")
    result = tstorm("check", "exp/main.tdl")
    assert result.exit_code == 1
    assert "exp/net/core.tdl:4:8: error TS0201" in result.stderr
    assert " 4 | at 11s dcx leave" in result.stderr


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
@pytest.mark.parametrize("line", ["at 11s hunter2 leave", "hunter2", "let hunter2"])
@pytest.mark.parametrize("linked", [False, True])
def test_words_of_files_elsewhere_are_not_shown(line: str, form: str, *, linked: bool) -> None:
    """Any file that can be read could be included, and its lines were in the log."""
    Path("lib/events.tdl").write_text(f"bridge far\n{line}\n")
    if linked:
        Path("exp/events.tdl").symlink_to("../lib/events.tdl")
        Path("exp/main.tdl").write_text(MAIN.replace("../lib/events", "events"))
    result = tstorm("check", "--format", form, "exp/main.tdl")
    assert result.exit_code == 1
    assert "hunter2" not in result.stdout + result.stderr
    assert "not below" in result.stdout + result.stderr
    named = tstorm("check", "lib/events.tdl")  # who names it sees it
    assert "hunter2" in named.stderr


def test_a_place_elsewhere_is_named() -> None:
    with Path("lib/events.tdl").open("a") as file:
        file.write("at 11s dcx leave\n")
    result = tstorm("check", "exp/main.tdl")
    assert "lib/events.tdl:3:8: error TS0201: unknown name" in result.stderr
    assert "'tstorm check lib/events.tdl' shows lines of it" in result.stderr
    (found,) = json.loads(tstorm("check", "exp/main.tdl", "--format", "json").stdout)
    assert (found["file"], found["line"]) == ("lib/events.tdl", 3)
    log = json.loads(tstorm("check", "exp/main.tdl", "--format", "sarif").stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "lib/events.tdl"


def test_a_file_that_is_not_there_is_named_at_its_include() -> None:
    Path("exp/net/core.tdl").rename("exp/net/cores.tdl")
    result = tstorm("check", "exp/main.tdl")
    assert "main.tdl:1:9: error TS0151: there is no file 'net/core.tdl'" in result.stderr
    assert "did you mean 'cores.tdl'?" in result.stderr


def test_standard_input_includes_from_here() -> None:
    result = tstorm("check", "-", stdin='include "exp/net/core.tdl"\n')
    assert "TS0151" not in result.stderr


def test_a_plan_has_what_it_was_made_of() -> None:
    printed("compile", "exp/main.tdl", "-o", "p")
    shutil.rmtree("exp")
    shutil.rmtree("lib")
    files = {event.file for event in read_plan(Path("p")).events}
    assert files == {"", "../lib/events.tdl"}
    told = printed("explain", "p", "--event", "3")
    assert "../lib/events.tdl:1:1\n 1 | from 5s to 9s pg crash 1" in told
    assert "../lib/events.tdl:2" in printed("events", "p")
    assert printed("events", "p", "--seed", "5") != printed("events", "p")


def test_two_plans_differ_in_what_they_include() -> None:
    printed("compile", "exp/main.tdl", "-o", "p")
    assert "differ" not in printed("diff", "p", "exp/main.tdl")
    Path("exp/net/core.tdl").write_text(CORE.replace("20ms", "30ms"))
    Path("lib/events.tdl").write_text(EVENTS.replace("10s", "11s"))
    told = printed("diff", "p", "exp/main.tdl", code=1)
    assert "delay_ns: 20ms -> 30ms" in told
    assert "events.tdl:2: at 11s dc0--core set loss=1%" in told


def test_the_same_texts_give_the_same_plan() -> None:
    printed("compile", "exp/main.tdl", "-o", "p")
    Path("copy").mkdir()
    shutil.copytree("exp", "copy/exp")
    shutil.copytree("lib", "copy/lib")
    printed("compile", "copy/exp/main.tdl", "-o", "q")
    for file in ("plan.json", "files.tar", "timeline.jsonl"):
        assert Path("p", file).read_bytes() == Path("q", file).read_bytes()


def test_formatting_is_of_one_file() -> None:
    assert printed("fmt", "--check", "lib/events.tdl") == ""
    printed("fmt", "exp/main.tdl")
    assert Path("exp/net/core.tdl").read_text() == CORE


@pytest.mark.parametrize("path", ["a.tdl", "../a.tdl", "../../x/%2E%2E/a%25.tdl"])
def test_names_in_a_plan_are_those_of_the_files(path: str) -> None:
    assert ".." not in member(path).split("/")
    assert path_of(member(path)) == path
