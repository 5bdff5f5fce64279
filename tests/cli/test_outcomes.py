"""What `run` and `replay` say of a result that is not what it seems, and what they end with."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.judge.verdict import Judge
from runtime.launch.run_result import RunResult
from tests.cli.process import DEADLINE_SECONDS, begun, command, ended, environment, tstorm
from tests.waiting import wait_until
from tstorm.text.ending_text import report

pytestmark = pytest.mark.e2e

NETWORK = "bridge s\nlink a--s latency=1ms\n"
MISSPELT = 'service a img=x exec="/nowhere/postgress"\n' + NETWORK + "at 1s quit\n"
SERVE = 'service a img=x exec="./serve"\n' + NETWORK + "at 1s quit\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An experiment in a folder of its own, with its program beside it."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "serve.tdl").write_text(SERVE, encoding="utf-8")
    script = folder / "serve"
    script.write_text('#!/bin/sh\necho "here from $TSTORM_START_DIR"\nexec sleep 60\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "misspelt.tdl").write_text(MISSPELT, encoding="utf-8")
    return tmp_path


def name_it_whole(place: Path) -> None:
    """A run keeps no copy of a program whose path is absolute: it can be missing in a replay."""
    text = SERVE.replace("./serve", str(place / "lab/serve"))
    (place / "lab/serve.tdl").write_text(text, encoding="utf-8")


def log(place: Path, run: str) -> str:
    return (place / run / "logs/a.0.log").read_text()


# -- what is told first -----------------------------------------------------------------------


def test_what_came_late_is_said_first_everywhere(place: Path) -> None:
    """Nothing is ever exactly on time: what is allowed here was not kept."""
    source = "lab/serve.tdl"
    late = tstorm(place, "run", source, "--quiet", "--max-lateness", "1ns", "--out", "r", code=4)
    first, *others = late.stderr.splitlines()
    assert first.startswith("warning: DEGRADED: ")
    assert others[-1].startswith("error: something was ")
    assert late.stdout == f"{place / 'r'}\n", "the run itself is complete"
    shown = tstorm(place, "inspect", "r").stdout.splitlines()
    assert shown[0].startswith("verdict: DEGRADED: ")
    assert any(line.endswith(": completed") for line in shown)
    found = json.loads(tstorm(place, "replay", "r", "--format", "json", code=4).stdout)
    assert found["verdict"] == found["summary"]["verdict"]
    assert (found["outcome"], found["verdict"]["state"]) == ("completed", "degraded")
    tstorm(place, "replay", "r", "--max-lateness", "1h", "--out", "s")


def test_the_last_words_are_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "a b"
    result = RunResult("completed", "a", place, summary={"verdict": Judge().verdict()})
    report(result, "text")
    said = capsys.readouterr()
    assert said.out == f"{place}\n"
    assert said.err.splitlines()[-1] == f"page: file://{tmp_path}/a%20b/report.html"
    report(result, "json")
    report(result, "text", quiet=True)
    report(replace(result, summary={**result.summary, "no_page": "the disk is full"}), "text")
    assert "page: file:" not in capsys.readouterr().err


def test_a_program_that_could_not_start_is_told_at_once_and_in_the_end(place: Path) -> None:
    done = tstorm(place, "run", "misspelt.tdl", "--quiet", "--out", "r", code=5)
    lines = done.stderr.splitlines()
    why = "a.0: cannot start '/nowhere/postgress': no such program"
    assert len([line for line in lines if f"warning: {why}" in line]) == 1
    assert "  a.0: could not start: no such program" in lines
    assert lines[-1] == f"error: {why}"
    shown = tstorm(place, "inspect", "r").stdout
    assert why in shown
    again = tstorm(place, "replay", "r", "--quiet", "--no-fail-on-exit", code=5)
    assert again.stderr.splitlines()[-1] == f"error: {why}"


# -- where programs are -----------------------------------------------------------------------


def test_relative_programs_are_beside_the_tdl_file_from_wherever_it_is_run(place: Path) -> None:
    tstorm(place, "run", "lab/serve.tdl", "--fail-on-exit", "--quiet", "--out", "r")
    assert log(place, "r") == f"here from {place}\n"
    manifest = json.loads((place / "r/manifest.json").read_text())
    assert manifest["start_directory"] == str(place)
    assert manifest["source_directory"] == str(place / "lab")


def test_relative_programs_are_beside_a_plan(place: Path) -> None:
    tstorm(place, "compile", "lab/serve.tdl", "-o", "lab/serve.plan")
    tstorm(place, "run", "lab/serve.plan", "--fail-on-exit", "--quiet", "--out", "r")
    assert log(place, "r") == f"here from {place}\n"


def test_a_replay_finds_programs_where_the_run_did(place: Path) -> None:
    tstorm(place, "run", "lab/serve.tdl", "--quiet", "--out", "r")
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    for options in (["--check"], ["--seed", "9"]):
        done = ended(
            command("replay", "../r", "--fail-on-exit", "--quiet", "--out", "again", *options),
            cwd=elsewhere,
            env=environment(place),
        )
        assert done.returncode == 0, done.stderr
        assert log(place, "elsewhere/again") == f"here from {place}\n"
        (elsewhere / "again").rename(elsewhere / f"again{options[0]}")


def test_a_check_fails_where_a_program_could_not_start(place: Path) -> None:
    name_it_whole(place)
    tstorm(place, "run", "lab/serve.tdl", "--quiet", "--out", "r")
    (place / "lab/serve").rename(place / "lab/gone")
    one = tstorm(place, "replay", "r", "--check", "--quiet", "--out", "s", code=5)
    assert one.stderr.splitlines()[-1].startswith("error: a.0: cannot start ")
    (place / "lab/gone").rename(place / "lab/serve")
    back = tstorm(place, "replay", "s", "--check", "--quiet", code=1)
    assert "replayed: a.0 started" in back.stdout


# -- options ----------------------------------------------------------------------------------


def test_a_run_over_hosts_is_replayed_hop_exact_with_hosts_0(place: Path) -> None:
    tstorm(place, "run", "lab/serve.tdl", "--hosts", "2", "--quiet", "--out", "r")
    tstorm(place, "replay", "r", "--hosts", "0", "--check", "--quiet", "--out", "s")
    manifest = json.loads((place / "s/manifest.json").read_text())
    assert manifest["options"]["hosts"] == 0
    assert "hosts" not in manifest


def test_hosts_0_takes_the_kernels_datapath_back(place: Path) -> None:
    """It was recorded with one that only hosts have."""
    tstorm(place, "run", "lab/serve.tdl", "--quiet", "--out", "r")
    path = place / "r/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"].update(hosts=2, datapath="kernel", faults={"host1": {}})
    path.write_text(json.dumps(manifest))
    tstorm(place, "replay", "r", "--hosts", "0", "--check", "--quiet")


# -- nobody listens ---------------------------------------------------------------------------


def test_a_run_goes_on_when_nobody_reads_what_it_says(place: Path) -> None:
    """As `tstorm run … 2>&1 | head -1` does it."""
    readable, writable = os.pipe()
    process = subprocess.Popen(
        command("run", "lab/serve.tdl", "--fail-on-exit", "--out", "r"),
        cwd=place,
        env=environment(place),
        stdout=writable,
        stderr=writable,
    )
    os.close(writable)
    with os.fdopen(readable) as said:
        assert said.readline()
    assert process.wait(DEADLINE_SECONDS) == 0
    summary = json.loads((place / "r/summary.json").read_text())
    assert (summary["outcome"], summary["events"]["applied"]) == ("completed", 2)
    assert (place / "r/report.html").exists()


def status_into(output: int, place: Path, *words: str) -> int:
    """Of a command that says everything there."""
    return subprocess.run(
        command(*words),
        cwd=place,
        env=environment(place),
        stdout=output,
        stderr=output,
        check=False,
        timeout=DEADLINE_SECONDS,
    ).returncode


def test_an_exit_code_outlives_a_reader_that_is_gone(place: Path) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    assert status_into(writable, place, "run", "misspelt.tdl", "--fail-on-exit", "--out", "r") == 5
    name_it_whole(place)
    tstorm(place, "run", "lab/serve.tdl", "--quiet", "--out", "s")
    (place / "lab/serve").unlink()
    assert status_into(writable, place, "replay", "s", "--check", "--out", "t") == 5
    os.close(writable)


def test_a_result_that_cannot_be_written_is_an_error(place: Path) -> None:
    with Path("/dev/full").open("w") as full:
        words = ("run", "lab/serve.tdl", "--format", "json", "--out", "r")
        assert status_into(full.fileno(), place, *words) == 1
    assert json.loads((place / "r/summary.json").read_text())["outcome"] == "completed"


def test_a_second_interrupt_says_so(place: Path) -> None:
    program = "sh -c 'trap : TERM; while :; do sleep 1; done'"
    text = f'service a img=x exec="{program}"\n' + NETWORK + "at 60s quit\n"
    (place / "stubborn.tdl").write_text(text, encoding="utf-8")
    with begun(place, "run", "stubborn.tdl", "--out", "r") as process:
        assert process.stderr is not None
        wait_until(lambda: "1/2 events" in process.stderr.readline(), "the program's start")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "stopping" in process.stderr.readline(), "the grace")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 130
        *_, said, page = process.stderr.read().splitlines()
        assert said.startswith("interrupted: interrupted twice")
        assert page.startswith("page: file://")
    assert json.loads((place / "r/manifest.json").read_text())["outcome"] == "interrupted"


# -- what was written, and when ---------------------------------------------------------------


def test_logs_and_events_are_one_list(place: Path) -> None:
    text = "service a img=x exec=\"sh -c 'echo begun; sleep 60'\"\n" + NETWORK
    text += "at 500ms a.0 crash\nat 700ms a.0 join\nat 1s quit\n"
    (place / "twice.tdl").write_text(text, encoding="utf-8")
    tstorm(place, "run", "twice.tdl", "--quiet", "--out", "r")
    shown = tstorm(place, "logs", "r").stdout.splitlines()
    words = [line.split(" s ", 1)[1].split() for line in shown]
    wanted = ["a.0 begun", "a.0 *** crash", "a.0 *** join", "a.0 begun"]
    found = [" ".join(line) for line in words]
    assert [line for line in found if line in wanted] == ["a.0 *** join", *wanted]
    near = tstorm(place, "logs", "r", "a", "--around", "500ms±50ms", "--format", "json").stdout
    assert [one["event"]["kind"] for one in json.loads(near) if "event" in one] == ["crash"]
    assert json.loads(near) == json.loads(
        tstorm(place, "logs", "r", "a.0", "--around", "500ms+-50ms", "--format", "json").stdout
    )
    assert "there are: a.0" in tstorm(place, "logs", "r", "b", code=1).stderr
