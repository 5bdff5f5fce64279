"""Files of services: found beside the text from any directory, and kept by the plan."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from tests.cli.support import status, tstorm

TEXT = """\
service a replicas=3 img=x exec="python3 w.py" files=conf/;w.py
bridge s1
link a--s1 latency=1ms
at 5s a crash 1
at 9s quit
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("exp/conf").mkdir(parents=True)
    Path("exp/a.tdl").write_text(TEXT)
    Path("exp/w.py").write_text("print(1)\n")
    Path("exp/conf/a.conf").write_text("x = 1\n")


def test_names_begin_beside_the_text_wherever_it_is_compiled() -> None:
    assert tstorm("compile", "exp/a.tdl", "--no-manifests", "-o", "one.plan").exit_code == 0
    service = read_plan("one.plan").topology.services[0]
    assert [file.path for file in service.files] == ["conf/a.conf", "w.py"]
    given = tstorm("check", "-", stdin=TEXT)
    assert status(given) == 1
    assert "error TS0133: there is no file 'w.py'" in given.stderr


def test_a_plan_with_another_seed_needs_no_file() -> None:
    assert tstorm("compile", "exp/a.tdl", "--no-manifests", "-o", "one.plan").exit_code == 0
    shutil.rmtree("exp")
    before = tstorm("events", "one.plan").stdout
    assert tstorm("events", "one.plan", "--seed", "0").stdout == before
    seeds = {tstorm("events", "one.plan", "--seed", str(seed)).stdout for seed in range(1, 6)}
    assert len(seeds) > 1
    assert "" not in seeds


def test_a_missing_file_is_an_error_where_it_is_named() -> None:
    Path("exp/w.py").rename("exp/v.py")
    said = tstorm("check", "exp/a.tdl")
    assert status(said) == 1
    assert "exp/a.tdl:1:60: error TS0133: there is no file 'w.py'" in said.stderr


def test_two_plans_are_compared_by_what_their_files_hold() -> None:
    for name in ("one", "two"):
        arguments = ("exp/a.tdl", "--no-manifests", "-o", f"{name}.plan")
        assert tstorm("compile", *arguments).exit_code == 0
        Path("exp/w.py").write_text("print(2)\n")
    said = tstorm("diff", "one.plan", "two.plan")
    assert "service a files" in said.stdout
