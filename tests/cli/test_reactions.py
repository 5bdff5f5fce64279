"""A `when` in real time: what was done, what it is judged by, replayed and recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.reader import read_plan
from tests.cli.process import tstorm
from tstorm.testing import ExperimentError, run

pytestmark = pytest.mark.e2e

TDL = """\
seed 3
service db replicas=2 exec="sh -c 'sleep 0.3; echo I lead; sleep 0.3; echo I lead; sleep 9'"
service client exec="sh -c 'sleep 0.9; exit 7'" expect=any
bridge s1
link db--s1 latency=1ms
link client--s1 latency=1ms
when log db.1 "lead$" every at most 1 {
    it disconnect for 100ms
}
when exit client with 7 { db leave 1 }
when ready client { db.0 crash 1000 }
at 1600ms quit
"""


def all_events(place: Path) -> list[dict[str, Any]]:
    lines = (place / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def events(place: Path) -> list[dict[str, Any]]:
    return [one for one in all_events(place) if one.get("origin") == "condition"]


def essence(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    made = [one for one in found if "seq" in one]
    return sorted((one["planned_ns"], one["kind"], one["target"]) for one in made)


def test_what_a_when_does_is_done_judged_replayed_and_recorded(tmp_path: Path) -> None:
    text = TDL.replace("when ready client { db.0 crash 1000 }\n", "")
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    done = tstorm(tmp_path, "run", "exp.tdl", "--out", "run")
    assert "line 7: this happened 2 times, and was reacted to the first 1 only" in done.stderr
    found = events(tmp_path / "run")
    said = [one for one in found if one["kind"] == "when"]
    assert [(one["line"], one["target"], one["text"]) for one in said] == [
        (7, "db.1", "I lead"),
        (10, "client.0", "status 7"),
    ]
    kinds = [kind for _, kind, _ in essence(found)]
    assert kinds == ["disconnect", "reconnect", "leave"]
    summary = json.loads((tmp_path / "run/summary.json").read_text(encoding="utf-8"))
    assert summary["reactions"]["latency"]["count"] == 2
    assert summary["plan_digest"] == read_plan(tmp_path / "run/plan").digest

    replayed = tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")
    assert "the same events" in replayed.stderr
    again = events(tmp_path / "again")
    assert essence(again) == essence(found)
    assert [one for one in again if one["kind"] == "when"] == []

    tstorm(tmp_path, "record", "run", "-o", "recorded.tdl")
    recorded = compile_source((tmp_path / "recorded.tdl").read_bytes())
    plan = read_plan(tmp_path / "run/plan")
    assert [(e.at_ns, e.kind, e.target) for e in recorded.events] == [
        (e.at_ns, e.kind, e.target) for e in plan.events
    ]


def test_what_cannot_be_done_is_told_and_changes_nothing(tmp_path: Path) -> None:
    text = TDL.replace("db.0 crash 1000", "db crash 2 and client crash and client.0 disconnect")
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    done = tstorm(tmp_path, "run", "exp.tdl", "--out", "run", "--until", "800ms")
    refused = [one for one in events(tmp_path / "run") if "refused" in one]
    assert [(one["line"], one["target"]) for one in refused] == [(11, "client.0")]
    assert "client.0" in refused[0]["refused"]
    assert "1 reactions could not be done" in done.stderr
    assert "crash" not in {one["kind"] for one in events(tmp_path / "run")}


def test_agents_of_all_hosts_do_what_a_when_does(tmp_path: Path) -> None:
    text = """\
service db replicas=2 exec="sh -c 'sleep 0.5; echo I lead; exec tprobe serve'"
service client exec="tprobe rtt db.0 --count 2000 --each"
bridges s1 s2
link db--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
when log db.1 "lead$" { s1--s2 set latency=60ms }
when log db.1 "lead$" after 2500ms { quit }
"""
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--hosts", "2", "--out", "run")
    found = events(tmp_path / "run")
    fired, over = [one for one in found if one["kind"] == "when"]
    assert (fired["line"], fired["target"], fired["events"]) == (7, "db.1", 2)
    assert over["events"] == 1
    changed = [one for one in found if one["kind"] == "set"]
    assert [one["args"] for one in changed] == [{"delay_ns": 60_000_000}] * 2
    start = json.loads((tmp_path / "run/manifest.json").read_text("utf-8"))["start_monotonic_ns"]
    log = (tmp_path / "run/logs/client.0.log").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in log if line.startswith("{")]
    after_ns = start + max(one["applied_ns"] for one in changed) + 100_000_000
    seen = [one["rtt_us"] for one in answers if one.get("rtt_us") and one["t_ns"] > after_ns]
    assert seen
    assert min(seen) >= 2 * (1 + 60 + 1) * 1000 - 10
    plan = read_plan(tmp_path / "run/plan")
    assert len(plan.events) == len([one for one in all_events(tmp_path / "run") if "seq" in one])


def test_what_is_done_by_hand_and_by_a_when_go_together(tmp_path: Path) -> None:
    text = """\
service db replicas=2 exec="sh -c 'sleep 2.5; echo I lead; sleep 9'"
bridge s1
link db--s1 latency=1ms
at 300s db.0--s1 set loss=0%
when log db.1 "lead" { it--s1 set latency+=10ms }
when exit db { quit }
"""
    with run(text, folder=tmp_path, out=tmp_path / "run") as experiment:
        told = experiment.do("db--s1 set latency=20ms")
        assert (told["action"], told["events"]) == (1, 4)
        with pytest.raises(ExperimentError, match="TS0018"):
            experiment.do("db.0 crsh")
        fired = experiment.wait_for("when")
        assert (fired["action"], fired["events"]) == (2, 2)
        last = experiment.do("quit")
        assert last["action"] == 3
        found = experiment.finish()
    changed = [one for one in found.events if one.get("origin") == "condition" and "seq" in one]
    assert [one["args"] for one in changed] == [{"delay_ns": 30_000_000}] * 2
