"""`--param`, and what commands say of expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import status, tstorm
from tstorm.exit_codes import FAILED, OK, USAGE

TEXT = """\
param n = 3
param rtt = 10ms
service a replicas=$n
bridge s
link a--s latency=$rtt
at 1s a crash 1
at 9s quit
expect rtt a.0 a.1 < 60ms
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_check_counts_them_and_takes_other_values(folder: Path) -> None:
    said = tstorm("check", "a.tdl", "--param", "n=5", "--param", "n=4").stdout
    assert said == "ok: 1 service, 4 instances, 4 links, 6 events, 1 expectation, ends at 9s\n"


def test_a_plan_remembers_the_values(folder: Path) -> None:
    """What is compiled again from it has them, unless others are said."""
    assert status(tstorm("compile", "a.tdl", "-o", "p", "--param", "n=5", "--seed", "7")) == OK
    assert json.loads((folder / "p/plan.json").read_bytes())["params"] == {"n": "5", "rtt": "10ms"}
    assert "a.4" in tstorm("events", "p", "--seed", "8").stdout
    again = tstorm("events", "p", "--param", "rtt=20ms", "--format", "json")
    assert again.stdout == tstorm("events", "p", "--format", "json").stdout  # and its seed
    assert status(tstorm("explain", "p", "--event", "0")) == OK


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("rt=5", "a.tdl has no parameter 'rt': did you mean 'rtt'?"),
        ("speed=5", "has no parameter 'speed': it has n, rtt"),
        ("n", "'n' is not NAME=VALUE"),
        ("n=1\n2", "the value of n is not one line"),
    ],
)
def test_a_wrong_param_is_wrong_usage(folder: Path, value: str, said: str) -> None:
    result = tstorm("check", "a.tdl", "--param", value)
    assert result.exit_code == USAGE
    assert said in result.stderr


def test_a_wrong_value_is_an_error_at_its_place(folder: Path) -> None:
    result = tstorm("check", "a.tdl", "--param", "rtt=long")
    assert status(result) == FAILED
    assert "a.tdl:5:" in result.stderr


def test_diff_tells_expectations_and_values(folder: Path) -> None:
    other = TEXT.replace("< 60ms", "< 50ms").replace("10ms", "11ms")
    (folder / "b.tdl").write_text(other, encoding="utf-8")
    result = tstorm("diff", "a.tdl", "b.tdl", "--no-network")
    assert status(result) == FAILED
    for line in (
        '  ~ param rtt value: "10ms" -> "11ms"',
        "  - expect rtt a.0 a.1 < 60ms",
        "  + expect rtt a.0 a.1 < 50ms",
    ):
        assert line in result.stdout.splitlines()
