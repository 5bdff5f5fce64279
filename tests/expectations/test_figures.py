"""Figures of the experiment's own: numbers out of logs and JSON files, and why there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.parts.figures import PlannedFigure
from runtime.certify import certificate
from runtime.expectations import measured_figures
from runtime.expectations.run_evidence import RunEvidence
from runtime.json_schema import is_numeral
from runtime.judge.lateness import smallest_delay
from runtime.judge.verdict import Judge
from runtime.options import K8S, RunOptions
from runtime.rundir.held_directory import HeldDirectory
from tests.certify.scene import Scene
from tests.expectations.support import logged

LOST = "lost ([0-9]+)"


def found(scene: Scene, **said: Any) -> dict[str, Any]:
    """What becomes of a figure of a.0."""
    node = scene.numbers["a.0"]
    one = PlannedFigure("n", "figure n = …", 3, "", (node,), **said)
    scene.plan.__dict__["figures"] = (one,)
    held = HeldDirectory.hold(scene.place.resolve())
    judge = Judge(smallest_delay(scene.timeline), thresholds=scene.options.thresholds)
    evidence = certificate.gather(held, scene.plan, scene.timeline, scene.facts, judge)
    summary = {"outcome": "completed", "verdict": judge.verdict()}
    records = RunEvidence(held, scene.plan, scene.timeline, evidence, summary)
    files = measured_figures.of_files(held, scene.plan, here=scene.options.on_this_machine)
    (record,) = measured_figures.measured(scene.plan, records, files)
    assert (record["name"], record["instance"], record["line"]) == ("n", "a.0", 3)
    return record


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "run")


def put(scene: Scene, path: str, text: str) -> None:
    place = scene.place / "instances/a.0" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def test_in_a_cluster_no_file_is_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "run", options=RunOptions(backend=K8S))
    record = found(scene, path="result.json", key="p99")
    why = "in a cluster the files of instances are not read"
    assert (record["value"], record["message"]) == (None, why)
    said = f"not measured: n: {why}; print such a number, and take it from the log"
    assert measured_figures.not_in_cluster(scene.plan) == said


def test_the_last_line_of_a_log_gives_the_number(scene: Scene) -> None:
    logged(scene, "a.0", [(1, "lost 12 orders"), (2, "lost 360 orders"), (3, "lost none")])
    record = found(scene, pattern=LOST)
    assert (record["value"], record["message"]) == ("360", "")


@pytest.mark.parametrize(
    ("lines", "pattern", "why"),
    [
        (["all is well"], LOST, f"no line of a.0 has {LOST!r} in it"),
        ([], LOST, f"no line of a.0 has {LOST!r} in it"),
        (["lost many"], "lost (.*)", "'many' in the log of a.0 is no number"),
        (["lost NaN"], "lost (.*)", "'NaN' in the log of a.0 is no number"),
        (["lost 5"], "lost( 6)?", "'None' in the log of a.0 is no number"),
        (
            ["lost 5", "x" * 70_000],
            LOST,
            "a line of the log of a.0 has more than 65,536 bytes: those that follow were not"
            " looked at",
        ),
    ],
)
def test_why_a_log_gives_none(scene: Scene, lines: list[str], pattern: str, why: str) -> None:
    logged(scene, "a.0", [(1, line) for line in lines])
    record = found(scene, pattern=pattern)
    assert (record["value"], record["message"]) == (None, why)


@pytest.mark.parametrize(
    ("value", "key", "number"),
    [
        ({"latency": {"p99": 12.50}}, "latency.p99", "12.5"),
        ({"runs": [{"ms": 1}, {"ms": -2}]}, "runs.1.ms", "-2"),
        ({"n": 1e-07}, "n", "1e-07"),
        ({"n": " 7 "}, "n", "7"),
    ],
)
def test_a_json_file_gives_what_is_at_the_key(
    scene: Scene, value: object, key: str, number: str
) -> None:
    put(scene, "out/r.json", json.dumps(value))
    assert found(scene, path="out/r.json", key=key)["value"] == number


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("{", "n", "r.json of a.0 is no JSON"),
        ("[" * 100_000, "n", "r.json of a.0 is no JSON"),
        ("{}", "n", "there is no n in a.0's r.json"),
        ("[1]", "1", "there is no 1 in a.0's r.json"),
        ('{"n": true}', "n", "'True' at n in a.0's r.json is no number"),
        ('{"n": Infinity}', "n", "'Infinity' at n in a.0's r.json is no number"),
        ('{"n": {"m": 1}}', "n", "\"{'m': '1'}\" at n in a.0's r.json is no number"),
        ('{"n": 1e999}', "n", "'1e999' at n in a.0's r.json is no number"),
    ],
)
def test_why_a_file_gives_none(scene: Scene, text: str, key: str, why: str) -> None:
    put(scene, "r.json", text)
    record = found(scene, path="r.json", key=key)
    assert (record["value"], record["message"]) == (None, why)


def test_what_is_not_there_or_elsewhere_is_not_read(scene: Scene) -> None:
    missing = found(scene, path="r.json", key="n")
    assert missing["message"] == "r.json of a.0 cannot be read: No such file or directory"
    put(scene, "secret.json", '{"n": 1}')
    place = scene.place / "instances/a.0"
    (place / "r.json").symlink_to("secret.json")
    assert found(scene, path="r.json", key="n")["value"] is None
    (place / "out").symlink_to(".")
    assert found(scene, path="out/secret.json", key="n")["value"] is None
    os.mkfifo(place / "pipe")
    record = found(scene, path="pipe", key="n")
    why = "pipe of a.0 cannot be read: no file of at most 16 MiB"
    assert (record["value"], record["message"]) == (None, why)


def test_what_is_a_numeral() -> None:
    good = ("0", "-1", "+1.50", ".5", "2.", "1e3")
    bad = ("", " 1", "1\n", "0x1", "1_0", "inf", "1e999", "٣", "1" * 41, 1, None)
    assert all(map(is_numeral, good))
    assert not any(map(is_numeral, bad))


def test_the_last_such_line_was_cut(scene: Scene) -> None:
    logged(scene, "a.0", [(1, "lost 7"), (2, "lost 0")], ended=False)
    record = found(scene, pattern=LOST)
    assert (record["value"], record["message"]) == (
        None,
        "a.0 had not ended the last such line: it was cut",
    )
    (scene.place / "logs.jsonl").unlink()
    logged(scene, "a.0", [(1, "lost 7"), (2, "lost")], ended=False)
    assert found(scene, pattern=LOST)["value"] == "7"
