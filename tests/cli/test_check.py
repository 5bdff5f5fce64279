"""`tstorm check`: what it says of a file that is right, and of programs that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tests.cli.support import tstorm
from tstorm.exit_codes import CommandError
from tstorm.loading import plan_to_run
from tstorm.which import finder

TEXT = """\
service a replicas=3 exec="{program}"
service b exec="sh -c 'exit'"
bridge s
link a--s latency=1
link b--s latency=1
at 5s a crash 1
at 9s quit
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(program: str, *arguments: str) -> tuple[str, str]:
    Path("x.tdl").write_text(TEXT.format(program=program), encoding="utf-8")
    result = tstorm("check", "x.tdl", *arguments)
    assert result.exit_code == 0
    return result.stdout, result.stderr


def test_a_file_that_is_right_is_ok_with_what_is_in_it() -> None:
    said = "ok: 2 services, 4 instances, 4 links, 6 events, ends at 9s\n"
    assert check("sleep 9") == (said, "")


def test_moments_that_were_drawn_are_told() -> None:
    lines = "from 1s to 3s a leave 2\nfrom 4s to 5s a--s leave\nfrom 4s to 5s b leave\n"
    text = TEXT.format(program="sleep 9") + lines
    Path("x.tdl").write_text(text, encoding="utf-8")
    _, *said = tstorm("check", "--seed", "3", "x.tdl").stdout.splitlines()
    found = compile_source(text, seed=3).events
    times = {event.target: event.at_ns for event in found if event.kind == "leave"}
    assert [line.rpartition(", ")[2] for line in said] == [
        "moments drawn from the interval",
        "a moment drawn from the interval",
    ]
    assert said[0].startswith("x.tdl:8: a.")
    assert said[1].startswith(f"x.tdl:10: b.0 leave at 4.{times['b.0'] % 10**9:09d}".rstrip("0"))


def test_who_else_a_partition_cuts_off_is_told() -> None:
    text = TEXT.format(program="sleep 9") + "service c\nlink c--s\nat 6s partition a;b\n"
    Path("x.tdl").write_text(text, encoding="utf-8")
    _, *said = tstorm("check", "x.tdl").stdout.splitlines()
    assert said == ["x.tdl:10: the partition also cuts off c.0 from b.0"]
    _, *said = tstorm("check", "-", stdin=text).stdout.splitlines()
    assert said == ["stdin.tdl:10: the partition also cuts off c.0 from b.0"]


def test_a_plan_that_can_never_be_valid_is_told() -> None:
    text = TEXT.format(program="sleep 9").replace("at 5s a crash 1\nat 9s", "at 1s")
    Path("x.tdl").write_text(text, encoding="utf-8")
    _, said = tstorm("check", "x.tdl").stdout.splitlines()
    assert said.startswith("x.tdl: no run of this in real time can be VALID, however good")
    assert said.endswith("; make it longer, or its changes fewer, or run it with --time virtual")


def test_bridges_that_no_packet_passes_are_told() -> None:
    """A way round that nothing takes, and a place with nobody yet; neither is a warning."""
    text = TEXT.format(program="sleep 9").replace("bridge s\n", "bridges s t x y\n")
    text = text.replace("link b--s", "link s--t latency=1\nlink b--t")
    text += "".join(f"link s--{one} latency=5\nlink {one}--t\n" for one in "xy")
    Path("x.tdl").write_text(text, encoding="utf-8")
    _, said = tstorm("check", "--strict", "x.tdl").stdout.splitlines()
    assert said == "x.tdl: nobody is at x, y, and no packet passes there"


def test_a_file_for_the_public_tool_is_told_what_is_other_here() -> None:
    text = "bootstrapper thunderstorm:2.0\n" + TEXT.format(program="sleep 9")
    Path("x.tdl").write_text(text, encoding="utf-8")
    _, image, counts, routes = tstorm("check", "x.tdl").stdout.splitlines()
    assert image.startswith("x.tdl:1: the image is the public tool's")
    assert "takes one where an action has no number" in counts
    assert "`routing hops`" in routes


def test_for_programs_there_is_nothing_beside_the_document() -> None:
    assert check("sleep 9", "--format", "json")[0] == "[]\n"


def test_an_empty_file_is_an_error() -> None:
    Path("x.tdl").write_text("# nothing\n\n", encoding="utf-8")
    for command in ("check", "compile", "run"):
        result = tstorm(command, "x.tdl")
        assert isinstance(result.exception, CommandError)
        assert "error TS0154: there is nothing in this file" in result.stderr


def test_programs_that_are_not_there_are_named() -> None:
    stdout, stderr = check("nothing-of-this-name")
    assert stdout.startswith("ok with 1 warning: ")
    assert "x.tdl:1:9: warning TS0940: there is no program 'nothing-of-this-name'" in stderr
    assert "it would be" in check("./serve")[1]
    Path("serve").touch()
    assert "'./serve' cannot be executed" in check("./serve")[1]
    Path("serve").chmod(0o755)
    assert check("./serve")[1] == ""


def test_programs_that_prepare_and_ask_are_looked_for_too() -> None:
    words = 'exec="sleep 9" setup="no-setup x" ready="no-check"'
    Path("x.tdl").write_text(f"service a {words}\nbridge s\nlink a--s\n", encoding="utf-8")
    stderr = tstorm("check", "x.tdl").stderr
    assert "no program 'no-setup'" in stderr
    assert "no program 'no-check'" in stderr


def test_a_run_names_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.tdl").write_text(TEXT.format(program="no-such && x"), encoding="utf-8")
    plan_to_run("x.tdl", None, find=finder(Path.cwd()))
    stderr = capsys.readouterr().err
    assert "TS0940" in stderr
    assert "TS0941" in stderr
    plan_to_run("x.tdl", None)  # in a cluster
    assert "TS0940" not in capsys.readouterr().err


def test_programs_in_images_are_not_looked_for() -> None:
    text = 'service a img=x exec="no-such"\nservice b exec="no-such"\n'
    text += "bridge s\nlink a--s\nlink b--s\n"
    services = compile_source(text).topology.services
    find = finder(Path.cwd(), images=True)
    assert [find(service, "no-such") is None for service in services] == [True, False]


def test_a_daemon_is_found_without_sbin_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert check("ldconfig")[1] == ""


def test_the_path_of_a_service_is_where_its_program_is_looked_for() -> None:
    Path("x.tdl").write_text(
        'service a exec="sleep 9" env=PATH:/nonexistent\nbridge s\nlink a--s\n', encoding="utf-8"
    )
    assert "TS0940" in tstorm("check", "x.tdl").stderr


def test_shell_syntax_without_a_shell_is_named() -> None:
    assert "'&&' in exec= is for a shell" in check("sleep 9 && sleep 1")[1]


def test_missing_images_are_said_once() -> None:
    check("sleep 9")
    result = tstorm("compile", "x.tdl")
    assert result.stderr == (
        "note: the plan has no manifests for Kubernetes: the services 'a', 'b' have no image; "
        "add img=IMAGE to each\n"
    )
