"""docs/testing.md: its first test passes, as the steps of the examples for CI run it, what it says
there is is there, and both examples say the same.

Of those steps only what tests is run: installing would change the machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.process import ended, environment
from tests.pages.reader import ROOT
from tstorm.testing import Experiment, Run, Series, run
from tstorm.testing.pair_series import WHATS

PAGE = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
INSTALLING = ("sudo sysctl ", "sudo apt-get ", "apt-get ", "pip install ")


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docs/ci" / name).read_text(encoding="utf-8"))
    return found


def github() -> list[str]:
    """Its commands."""
    steps = example("github.yml")["jobs"]["experiments"]["steps"]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def gitlab() -> list[str]:
    job = example("gitlab.yml")["experiments"]
    return [*job["before_script"], *job["script"]]


def judging(commands: list[str]) -> list[str]:
    return [line for line in commands if not line.startswith(INSTALLING)]


def test_both_examples_test_the_same() -> None:
    assert judging(github()) == judging(gitlab())
    installed = 'pip install "tstorm[pytest] @ $THUNDERSTORM"'
    assert installed in github()
    assert installed in gitlab()


def test_what_they_keep_is_what_there_is() -> None:
    steps = example("github.yml")["jobs"]["experiments"]["steps"]
    kept = steps[-1]["with"]["path"].split()
    job = example("gitlab.yml")["experiments"]["artifacts"]
    assert kept == [*job["paths"], job["reports"]["junit"]]
    assert f"--junitxml={kept[1]} --tstorm-artifacts={kept[0]}" in judging(github())[-1]


@pytest.mark.e2e
def test_their_steps_pass_and_keep_the_page_of_a_failure(tmp_path: Path) -> None:
    name, text = re.findall(r"Write `([^`]+)`:\n```python\n(.*?)```", PAGE, re.DOTALL)[0]
    failing = "def test_bad(tstorm):\n    assert tstorm.run(NETWORK, until='0s').finish() is None\n"
    (tmp_path / name).write_text(f"{text}\n\n{failing}")
    script = "\n".join(judging(github()))
    bin_ = Path(sys.executable).parent
    done = ended(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**environment(tmp_path), "PATH": f"{bin_}:{os.environ['PATH']}"},
        timeout=180,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
    assert (tmp_path / f"failed-runs/{name}-test_bad/run/report.html").exists()
    assert 'failures="1"' in (tmp_path / "report.xml").read_text()


@pytest.mark.e2e
def test_the_action_runs_an_experiment_and_fails_with_it(tmp_path: Path) -> None:
    action = example("action/action.yml")
    assert action["runs"]["using"] == "composite"
    (run_it,) = (step for step in action["runs"]["steps"] if step.get("name") == "Run")
    values = {"experiment": "a b.tdl", "arguments": "--seed 3  --until 2s", "out": "experiment"}
    given = {}
    for name, value in run_it["env"].items():
        (asked,) = re.findall(r"^\$\{\{ inputs\.(\w+) \}\}$", value)
        assert asked in action["inputs"]
        given[name] = values[asked]
    text = 'service a expect=any exec="false"\nservice b\nlink a--b latency=1ms\nat 1s quit\n'
    (tmp_path / "a b.tdl").write_text(text + 'expect no log * "never"\n')
    env = environment(tmp_path) | given
    env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = ["bash", "-e", "-o", "pipefail", "-c", run_it["run"]]
    done = ended(script, cwd=tmp_path, env=env, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((tmp_path / "experiment/manifest.json").read_text())
    assert manifest["seed"] == 3
    (tmp_path / "a b.tdl").write_text(text + 'expect log a "never"\n')
    done = ended(script, cwd=tmp_path, env=env | {"OUT": "second"}, timeout=180)
    assert done.returncode == 5, done.stdout + done.stderr
    assert 'failures="1"' in (tmp_path / "second.xml").read_text()


@pytest.mark.parametrize(
    ("heading", "kind"),
    [("An experiment that goes on", Experiment), ("A finished run", Run)],
)
def test_everything_that_the_page_names_is_there(heading: str, kind: type) -> None:
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = part.partition("has:\n")[2] or part
    cells = re.findall(r"^\| (`[^|]+) \|", table.partition("\n\n`series`")[0], re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)", cell)]
    assert len(names) > 10
    assert [name for name in names if not hasattr(kind, name)] == []


def test_what_a_series_can_be_is_told() -> None:
    part = PAGE.partition("\n| what | unit |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)`", part, re.MULTILINE)) == WHATS
    for name in ("between", "least", "most", "median", "mean"):
        assert hasattr(Series, name)
        assert f"`{name}(" in PAGE


def test_arguments_that_are_told_are_taken() -> None:
    part = PAGE.partition("\n## An experiment that goes on\n")[2].partition("If it does")[0]
    names = set(re.findall(r"`(\w+)=`", part)) | {"source"}
    assert names | {"folder", "out"} == set(run.__annotations__) - {"return"}
