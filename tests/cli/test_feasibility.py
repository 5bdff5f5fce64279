"""--budget and --underlay: what they accept, and what they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tests.cli.support import tstorm
from tstorm.command_support import declared_at
from tstorm.exit_codes import CommandError
from tstorm.loading import plan_to_run

TEXT = "service a replicas=3\nbridge s\nlink a--s latency=0.1 up=500Mb symmetric\nat 9s quit\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.tdl").write_text(TEXT, encoding="utf-8")


def codes(*arguments: str) -> list[str]:
    result = tstorm("check", "x.tdl", "--format", "json", *arguments)
    assert result.exit_code == 0
    return [one["code"] for one in json.loads(result.stdout)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], []),
        (["--budget", "1.5Gb", "--underlay", "400us"], []),
        (["--budget", "1Gb"], ["TS0917"]),
        (["--budget", "100Mb"], ["TS0916", "TS0917"]),
        (["--underlay", "0.5"], ["TS0920"]),
        (["--budget", "1Gb", "--underlay", "0.5ms"], ["TS0917", "TS0920"]),
    ],
)
def test_nothing_is_compared_with_machines_unless_they_are_told(
    arguments: list[str], expected: list[str]
) -> None:
    assert codes(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "1GB"], "1GB counts bytes"),
        (["--budget", ""], "a rate is missing"),
        (["--budget", "0"], "a rate of zero compares with nothing"),
        (["--budget", "-1Gb"], "--budget"),
        (["--underlay", "fast"], "--underlay"),
        (["--underlay", "0ms"], "a round trip of zero compares with nothing"),
    ],
)
def test_values_are_those_of_the_language(arguments: list[str], message: str) -> None:
    result = tstorm("check", "x.tdl", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_strict_makes_them_errors_and_writes_nothing() -> None:
    result = tstorm("compile", "x.tdl", "--strict", "--budget", "1Gb")
    assert isinstance(result.exception, CommandError)
    assert "error TS0917" in result.stderr
    assert not Path("x.plan").exists()


def test_they_do_not_change_the_plan() -> None:
    plain = tstorm("compile", "x.tdl", "-o", "one.plan").stdout.partition(":")[2]
    asked = tstorm("compile", "x.tdl", "-o", "two.plan", "--budget", "1Mb", "--underlay", "1s")
    assert asked.exit_code == 0
    assert asked.stderr.count("warning TS09") == 3
    assert asked.stdout.partition(":")[2] == plain


def test_a_plan_is_not_compared_again() -> None:
    assert tstorm("compile", "x.tdl").exit_code == 0
    result = tstorm("run", "x.plan", "--budget", "1Gb")
    assert result.exit_code == 2
    assert "x.plan is compiled already" in result.stderr
    assert not Path("runs").exists()


def test_a_run_warns_of_its_pace_and_budget(capsys: pytest.CaptureFixture[str]) -> None:
    Path("y.tdl").write_text(TEXT + "from 1s to 2s a--s flap 10ms\n", encoding="utf-8")
    assert plan_to_run("y.tdl", None).name == "y"
    assert capsys.readouterr().err == ""
    plan_to_run("y.tdl", None, budget_bps=10**9, pace=20)
    said = capsys.readouterr().err
    assert "TS0915" in said
    assert "at pace 20" in said
    assert "TS0917" in said


@pytest.mark.parametrize("target", ["x.plan", "other"])
def test_a_run_is_called_after_the_directory_of_its_plan(target: str) -> None:
    assert tstorm("compile", "x.tdl", "-o", target).exit_code == 0
    Path("link").symlink_to(target)
    assert plan_to_run("link", None).name == Path(target).name.removesuffix(".plan")
    assert plan_to_run("link", 3).name == "link"


def test_a_direction_is_declared_by_the_statement_that_says_it() -> None:
    text = "service a\nbridge x\nlink a->x latency=1ms\nlink x->a latency=2ms\nat 5s quit\n"
    plan = compile_source(text).plan
    assert [declared_at(plan, link)[1] for link in ("a.0->x", "x->a.0")] == [3, 4]


def test_a_link_that_has_a_name_is_declared_where_that_stands() -> None:
    text = "service a\nbridge x\nlink a--x name=p\nlink a->x name=q\nlink x->a name=q\n"
    plan = compile_source(text).plan
    links = ("p:a.0->x", "p:x->a.0", "q:a.0->x", "q:x->a.0")
    assert [declared_at(plan, link)[1] for link in links] == [3, 3, 4, 5]


def test_a_common_link_is_declared_where_its_service_has_it() -> None:
    text = "service a replicas=2 share\nbridge x\nlink a--x latency=1ms\nat 5s quit\n"
    plan = compile_source(text).plan
    links = ("a-share->x", "x->a-share", "a.1->a-share")
    assert [declared_at(plan, link)[1] for link in links] == [3, 3, 1]
