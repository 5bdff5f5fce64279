"""`compile`, `check`: diagnostics in their place, plans whole or not, the same everywhere."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tstorm.cli import cli
from tstorm.exit_codes import CommandError

ROOT = Path(__file__).resolve().parents[2]
LISTING1 = ROOT / "examples" / "listing1.tdl"
GOOD = 'service a img=x exec="true"\nbridge s\nlink a--s latency=1ms\nat 10s quit\n'
BAD = "service a img=x\nbridge s\nlink a--t latency=1ms\nat 5s b crash\n"


def tstorm(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_default_plan_is_in_the_working_directory() -> None:
    result = tstorm("compile", str(LISTING1))
    assert result.exit_code == 0
    assert result.stdout.startswith("listing1.plan: ")
    assert Path("listing1.plan/plan.json").is_file()
    assert not (LISTING1.parent / "listing1.plan").exists()


def test_listing1_has_exactly_one_warning() -> None:
    result = tstorm("check", str(LISTING1), "--format", "json")
    assert result.exit_code == 0
    (warning,) = json.loads(result.stdout)
    assert warning["severity"] == "warning"
    assert "backend" in warning["hint"]


def test_strict_makes_the_warning_an_error_and_writes_nothing() -> None:
    result = tstorm("compile", str(LISTING1), "--strict")
    assert isinstance(result.exception, CommandError)
    assert result.exception.code == 1
    assert "error TS0901" in result.stderr
    assert "error TS0922" in result.stderr  # of its manifests
    assert result.exception.message == "error: 2 warnings, and --strict is on"
    assert not Path("listing1.plan").exists()


def test_strict_errors_are_errors_for_tools_too() -> None:
    found = tstorm("check", str(LISTING1), "--strict", "--format", "json")
    assert [one["severity"] for one in json.loads(found.stdout)] == ["error"]
    log = json.loads(tstorm("check", str(LISTING1), "--strict", "--format", "sarif").stdout)
    assert [one["level"] for one in log["runs"][0]["results"]] == ["error"]


def test_all_errors_are_told_on_stderr_with_their_place() -> None:
    Path("bad.tdl").write_text(BAD, encoding="utf-8")
    result = tstorm("compile", "bad.tdl")
    assert isinstance(result.exception, CommandError)
    assert result.stdout == ""
    assert "bad.tdl:3:" in result.stderr
    assert "bad.tdl:4:" in result.stderr
    assert not Path("bad.plan").exists()


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_machine_readable_errors_are_the_product(form: str) -> None:
    Path("bad.tdl").write_text(BAD, encoding="utf-8")
    result = tstorm("check", "bad.tdl", "--format", form)
    assert isinstance(result.exception, CommandError)
    found = json.loads(result.stdout)
    assert (found if form == "json" else found["runs"][0]["results"]) != []


def test_standard_input() -> None:
    result = tstorm("compile", "-", stdin=GOOD)
    assert result.exit_code == 0, result.stderr
    assert Path("stdin.plan/plan.json").is_file()
    told = tstorm("check", "-", stdin=BAD)
    assert "stdin.tdl:3:" in told.stderr


def test_an_older_plan_is_replaced_and_nothing_else() -> None:
    Path("x.tdl").write_text(GOOD, encoding="utf-8")
    assert tstorm("compile", "x.tdl").exit_code == 0
    first = Path("x.plan/plan.json").read_bytes()
    assert tstorm("compile", "x.tdl", "--seed", "9").exit_code == 0
    assert Path("x.plan/plan.json").read_bytes() != first
    mine = Path("mine")
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    assert tstorm("compile", "x.tdl", "-o", "mine").exit_code != 0
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


def test_a_missing_file_is_named() -> None:
    result = tstorm("compile", "nowhere.tdl")
    assert isinstance(result.exception, CommandError)
    assert "nowhere.tdl" in result.exception.message


def test_the_same_bytes_everywhere(tmp_path: Path) -> None:
    plans = []
    environments: list[dict[str, str]] = [
        {},
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "2", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "0"},
    ]
    for number, variables in enumerate(environments):
        folder = tmp_path / str(number)
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-m", "tstorm", "compile", str(LISTING1), "-o", "p"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            check=True,
            capture_output=True,
        )
        written = [file for file in (folder / "p").rglob("*") if file.is_file()]
        plans.append({str(file.relative_to(folder)): file.read_bytes() for file in written})
    assert "p/manifests/40-agent.yaml" in plans[0]
    assert plans[0] == plans[1]
    assert plans[0] == plans[2]


def test_colour_only_on_a_terminal_and_never_with_no_color() -> None:
    result = tstorm("check", str(LISTING1))
    assert "\x1b[" not in result.stderr


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    leader, follower = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}
    if not variables:
        environment.pop("NO_COLOR", None)
    subprocess.run(
        [sys.executable, "-m", "tstorm", "check", str(LISTING1)],
        stderr=follower,
        stdout=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    os.close(follower)
    text = os.read(leader, 65536)
    os.close(leader)
    assert b"TS0901" in text
    assert (b"\x1b[" in text) == coloured


@pytest.mark.parametrize("place", ["/proc/x.plan", "/nowhere/x.plan"])
def test_a_place_that_takes_no_plan_is_named(place: str) -> None:
    result = tstorm("compile", str(LISTING1), "-o", place)
    assert isinstance(result.exception, CommandError)
    assert place.rpartition("/")[0] in result.exception.message


@pytest.mark.parametrize("name", ["check", "fmt", "compile"])
def test_a_plan_in_place_of_a_text_is_named(name: str) -> None:
    assert tstorm("compile", str(LISTING1), "-o", "a.plan").exit_code == 0
    result = tstorm(name, "a.plan")
    said = result.stderr
    if isinstance(result.exception, CommandError):
        said += result.exception.message
    assert "a.plan is a plan, not a TDL file; its source is a.plan/source.tdl" in said


@pytest.mark.parametrize("name", ["check", "events", "compile", "fmt"])
def test_what_may_not_be_read_is_an_error_of_the_input(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the kernel's refusal is played."""
    import_module(f"tstorm.commands.experiment.{name}")  # which is read, too
    Path("secret.tdl").write_text("bridge s\n", encoding="utf-8")

    def refuse(_path: Path, _mode: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "secret.tdl")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    result = tstorm(name, "secret.tdl")
    assert result.exit_code == 1
    said = result.stderr + getattr(result.exception, "message", "")
    assert "error: reading secret.tdl: Permission denied" in said


MANY = "service a\nbridge s\nlink a--s\n" + "at 5s b leave\n" * 40 + "at 1s tags=no leave\n"


def test_a_text_shows_twenty_and_counts_the_rest() -> None:
    result = tstorm("check", "-", stdin=MANY)
    assert result.stderr.count("error TS0201") == 20
    assert "and 20 more errors, 1 more warning;" in result.stderr
    result = tstorm("check", "-", "--max-errors", "3", stdin=MANY)
    assert result.stderr.count("error TS0201") == 3
    result = tstorm("check", "-", "--max-errors", "0", stdin=MANY)
    assert result.stderr.count("error TS0201") == 40
    assert result.stderr.count("warning TS0901") == 1
    assert " more " not in result.stderr


def test_programs_get_all_unless_they_ask_for_less() -> None:
    everything = json.loads(tstorm("check", "-", "--format", "json", stdin=MANY).stdout)
    assert len(everything) == 41
    few = tstorm("check", "-", "--format", "json", "--max-errors", "4", stdin=MANY)
    assert json.loads(few.stdout) == everything[:4]
    log = json.loads(tstorm("check", "-", "--format", "sarif", stdin=MANY).stdout)
    assert len(log["runs"][0]["results"]) == 41


def test_a_program_is_called_no_text_in_one_message() -> None:
    result = tstorm("check", sys.executable)
    assert result.exit_code == 1
    assert result.stderr.count("error TS") == 1
    assert "this is not a text file" in result.stderr
    assert len(result.stderr.splitlines()) == 2


def test_a_file_without_an_end_is_read_as_far_as_is_needed() -> None:
    result = tstorm("check", "/dev/zero")
    assert "not a text file" in result.stderr
