"""What is judged of the commands of a test template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler.plan.parts.expectations import DRIVERS
from runtime.expectations import kept_files
from runtime.options import RunOptions
from runtime.rundir.runfiles import INSTANCE_ENDED
from tests.certify.scene import SECOND, TDL, Scene
from tests.expectations.support import expecting, finding, happened

NAMES = ["eventually_e", "first_f", "parallel_driver_p"]


def _template(**more: Any) -> dict[str, Any]:
    said = {"template": "main", "commands": NAMES, "ignored": [], **more}
    return {"kind": "template", "target": "", "applied_ns": 0, "expectation": 0, **said}


def _ended(command: str, at_s: int, *output: str, **how: Any) -> dict[str, Any]:
    times = {"began_ns": at_s * SECOND - 1000, "applied_ns": at_s * SECOND}
    said = {"command": command, "output": [*output], **times, **(how or {"status": 0})}
    return {"kind": "command_end", "target": "b.0", "expectation": 0, **said}


def _judged(
    place: Path, *records: dict[str, Any], options: RunOptions | None = None, **how: Any
) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    scene = Scene(place, TDL, options=options) if options else Scene(place, TDL)
    happened(scene, *records)
    times = {"from_ns": 0, "to_ns": scene.plan.end_ns // 2, "argv": ("t",)}
    return finding(scene, expecting(scene, DRIVERS, "b.0", **times), **how)


WELL = (_template(), _ended("first_f", 1), _ended("parallel_driver_p", 2))
LOST = _ended("parallel_driver_p", 30, lost="by a check")
CHECKED = (*WELL, LOST, _ended("eventually_e", 40))


def test_all_ended_with_0(tmp_path: Path) -> None:
    found = _judged(tmp_path, *CHECKED)
    assert (found["state"], found["message"]) == (
        "passed",
        "3 commands of main ended with 0: eventually_e, first_f, parallel_driver_p",
    )
    said = [f"main/{one} ended with 0 (expect drivers)" for one in NAMES]
    assert [*found["happened"]] == said
    assert "never" not in found


def test_the_first_one_that_did_not_is_told(tmp_path: Path) -> None:
    wrong = _ended("parallel_driver_p", 3, "trying", "no row 7", status=4)
    found = _judged(tmp_path, *WELL, wrong, _ended("eventually_e", 40, error="could not be run: x"))
    assert (found["state"], found["subject"], found["at_ns"]) == ("failed", "b.0", 3 * SECOND)
    said = "parallel_driver_p in b.0 ended with status 4 at 3 s: no row 7 (2 of 4 commands failed)"
    assert (found["message"], found["figure"], found["threshold"]) == (said, 4, 0)
    assert [one["line"] for one in found["log"]] == ["trying", "no row 7"]


def test_a_check_that_has_not_ended_when_the_experiment_did(tmp_path: Path) -> None:
    late = _ended("eventually_e", 60, lost="with its run")
    found = _judged(tmp_path / "whole", *WELL, late)
    assert found["state"] == "failed"
    assert found["message"].startswith("eventually_e in b.0 had not ended when the experiment did")
    found = _judged(tmp_path / "short", *WELL, late, options=RunOptions(until_ns=40 * SECOND))
    assert found["state"] == "not_measured"
    message = "no check has run to its end (eventually_e): eventually_e had not ended"
    assert found["message"] == message
    found = _judged(tmp_path / "cut", *WELL, late, outcome="interrupted")
    assert found["state"] == "not_measured"


@pytest.mark.parametrize("name", ["first_f", "eventually_e"])
def test_what_was_awaited_and_ended_with_its_instance_is_not_measured(
    tmp_path: Path, name: str
) -> None:
    cut = _ended(name, 2, lost=INSTANCE_ENDED)
    others = [one for one in CHECKED[1:] if one["command"] != name]
    found = _judged(tmp_path, CHECKED[0], cut, *others)
    assert found["state"] == "not_measured"
    assert name in found["message"] and "had not ended when" not in found["message"]


def test_a_check_that_drivers_have_kept_from_running(tmp_path: Path) -> None:
    found = _judged(tmp_path, *WELL, LOST)
    said = "no check has run to its end (eventually_e): parallel_driver_p had not ended"
    assert (found["state"], found["message"]) == ("not_measured", said)


def test_what_is_no_template(tmp_path: Path) -> None:
    found = _judged(tmp_path / "none", _template(commands=[], error="there is no driver in t"))
    assert (found["state"], found["message"]) == ("failed", "there is no driver in t")
    away = _template(commands=[], error="nobody looks", unavailable=True)
    assert _judged(tmp_path / "away", away)["state"] == "not_measured"
    assert _judged(tmp_path / "nothing")["message"] == "the run has no record of it"


def test_a_cluster_says_beforehand_that_it_does_not_measure_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TDL)
    scene.plan.__dict__["expectations"] = (expecting(scene, DRIVERS, "b.0", argv=("t",)),)
    said = f"not measured: expect drivers: {kept_files.AWAY}"
    assert kept_files.not_in_cluster(scene.plan) == said


def test_what_did_not_run_in_this_run_is_for_campaigns(tmp_path: Path) -> None:
    more = _template(commands=[*NAMES, "finally_x"])
    found = _judged(tmp_path / "well", more, *CHECKED[1:])
    assert found["state"] == "passed"
    never = ["main/finally_x ended with 0 (expect drivers)"]
    assert [*found["never"]] == never
    unwell = _ended("first_f", 1, status=1)
    found = _judged(tmp_path / "failed", more, unwell, *CHECKED[2:])
    assert found["state"] == "failed"
    assert [*found["never"]] == ["main/first_f ended with 0 (expect drivers)", *never]
    quit_ = {"kind": "quit", "target": "", "planned_ns": 10 * SECOND, "applied_ns": 10 * SECOND}
    found = _judged(tmp_path / "cut", more, unwell, quit_, outcome="interrupted")
    assert found["state"] == "failed" and "never" not in found
