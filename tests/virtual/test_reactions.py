"""A `when` in virtual time: at the instant of the line, on packets, and the same again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import read_plan
from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]
MS = 1_000_000

EXPERIMENT = """
seed 3
service db replicas=3 exec="sh -c 'for i in 1 2 3 4; do sleep 0.25; echo $i leads; done; exit 3'"
service spare replicas=3
service writer exec="sh -c 'mkdir d;sleep 0.4; echo 1 >d/f; sleep 0.2; mv d/f g; mv g d/f; sleep 4'"
service server exec="tprobe serve"
service client exec="tprobe rtt server.0 --count 40 --interval 50ms --each"
bridge s1
link db--s1 latency=1ms
link server--s1 latency=1ms
link spare--s1 latency=1ms
link writer--s1 latency=1ms
link client--s1 latency=1ms
when log db.1 "leads" every at most 2 {
    client--s1 set latency+=10ms
    it disconnect for 100ms
}
when log db.0;db.2 "2 [l]eads" after 123us { spare crash 1 }
when file writer "d/f" every after 1ms { it--s1 set latency+=1ms }
when exit db with 3 { server--s1 set loss=100% }
at 1.6s server pause
at 1.7s server resume
at 2.5s db.1 leave
at 3s quit
"""


def _all(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]


def _events(place: Path) -> list[dict[str, Any]]:
    return [one for one in _all(place) if one.get("origin") == "condition"]


def test_it_happens_at_the_instant_of_the_line_and_repeats(
    tmp_path: Path, kernel: list[str]
) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    done = tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "first")
    assert "happened 4 times, and was reacted to the first 2 only" in done.stderr
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr

    assert all(0 <= one["lag_ns"] < MS for one in _all(tmp_path / "first") if "seq" in one)
    events = _events(tmp_path / "first")
    said = [one for one in events if one["kind"] == "when"]
    assert sorted((one["line"], one["firing"]) for one in said) == [
        *((14, 1), (14, 2), (18, 1), (19, 1), (19, 2), (20, 1))
    ]
    files = [(one["text"], one["seen_ns"] // MS) for one in said if one["target"] == "writer.0"]
    assert files == [("d/f: written", 400), ("d/f: moved here", 600)]
    for one in said:
        assert 0 <= one["planned_ns"] - one["seen_ns"] - one["after_ns"] <= 10_000
    made = [one for one in events if "seq" in one]
    assert all(0 <= one["lag_ns"] < MS for one in made)
    assert {one["kind"] for one in made} == {"set", "disconnect", "reconnect", "crash"}
    first = json.loads((tmp_path / "first/summary.json").read_text(encoding="utf-8"))
    assert first["verdict"]["state"] == "valid"
    assert (first["reactions"]["fired"], first["reactions"]["beyond"]) == (6, 2)
    assert first["reactions"]["latency"]["max_ns"] < MS
    plan = read_plan(tmp_path / "first/plan")
    assert plan.digest == first["plan_digest"]

    log = (tmp_path / "first/logs/client.0.log").read_text(encoding="utf-8").splitlines()
    trips = [json.loads(line) for line in log if line.startswith("{")]
    heard = sorted({round(one["rtt_us"] / 1000) for one in trips if one.get("rtt_us")})
    assert heard == [4, 24, 44]  # before, after the first line, after the second
    assert len([one for one in trips if one.get("rtt_us")]) < 25  # all is lost after the end of db


def test_a_when_ends_the_run_at_the_instant_of_the_line(tmp_path: Path, kernel: list[str]) -> None:
    text = """
service db exec="sh -c 'sleep 0.5; echo leads; sleep 9'"
bridge s1
link db--s1 latency=1ms
when log db "leads" { quit }
at 5s db crash
"""
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    (said, ended) = _events(tmp_path / "run")
    assert (said["kind"], ended["kind"]) == ("when", "quit")
    assert ended["planned_ns"] == said["seen_ns"]
    assert 0 <= ended["lag_ns"] < MS
    assert _all(tmp_path / "run")[-1]["applied_ns"] < 600 * MS
