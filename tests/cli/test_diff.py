"""`tstorm diff`: what it says, how it ends, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import TWO_SERVICES, status, tstorm
from tstorm.exit_codes import FAILED, OK, CommandError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TWO_SERVICES, encoding="utf-8")
    return tmp_path


def write(folder: Path, text: str) -> None:
    (folder / "b.tdl").write_text(text, encoding="utf-8")


def both(*options: str) -> dict[str, Any]:
    result = tstorm("diff", "a.tdl", "b.tdl", "--format", "json", *options)
    assert status(result) in (OK, FAILED)
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["equal"] == (status(result) == OK)
    return found


def test_the_same_is_equal_and_says_nothing(folder: Path) -> None:
    result = tstorm("diff", "a.tdl", "a.tdl")
    assert (status(result), result.stdout, result.stderr) == (OK, "", "")


def test_text_that_changes_nothing_is_no_difference(folder: Path) -> None:
    write(folder, "# a comment more\n" + TWO_SERVICES.replace("at 10s", "at  10s"))
    result = tstorm("diff", "a.tdl", "b.tdl")
    assert (status(result), result.stdout) == (OK, "")
    assert "the sources differ in text only" in result.stderr
    assert both()["network"]["groups"] == []


def test_a_statement_more_adds_its_events_and_nothing_else(folder: Path) -> None:
    write(folder, TWO_SERVICES.replace("at 5s", "at 4s c.0--s set loss=2%\nat 5s"))
    found = both()
    assert found["topology"] == {"count": 0, "differences": []}
    assert found["timeline"]["counts"] == {
        "added": 2, "changed": 0, "moved": 0, "removed": 0, "reordered": 0
    }  # fmt: skip
    entries = found["timeline"]["entries"]
    assert [entry["b"]["target"] for entry in entries] == ["c.0->s", "s->c.0"]
    assert {entry["b"]["statement"] for entry in entries} == {"at 4s c.0--s set loss=2%"}
    assert {entry["b"]["line"] for entry in entries} == {8}
    assert all(pair["src"] == "c.0" or pair["dst"] == "c.0" for pair in pairs(found))


def pairs(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [pair for group in found["network"]["groups"] for pair in group["pairs"]]


def test_text_of_a_difference(folder: Path) -> None:
    write(folder, TWO_SERVICES.replace("at 10s s--t leave", "at 12s s--t leave"))
    result = tstorm("diff", "a.tdl", "b.tdl", "--limit", "2")
    assert status(result) == FAILED
    assert (
        result.stdout
        == """\
--- a.tdl (seed 3, 11 events)
+++ b.tdl (seed 3, 11 events)

timeline: 2 moved
  > 10s -> 12s link_down s->t
      a.tdl:9: at 10s s--t leave
      b.tdl:9: at 12s s--t leave
  > 10s -> 12s link_down t->s
      a.tdl:9: at 10s s--t leave
      b.tdl:9: at 12s s--t leave

network: 8 of 20 pairs differ at some time before 30s
  10s to 12s: 8 pairs, only in B
    c.0 -> d.0
    c.0 -> d.2
    … and 6 more pairs (--limit)
"""
    )


def test_figures_are_those_at_the_beginning_of_an_interval(folder: Path) -> None:
    write(folder, TWO_SERVICES.replace("latency=10ms jitter=3ms", "latency=12ms jitter=2ms"))
    found = both()
    first = found["network"]["groups"][0]
    assert (first["from_ns"], first["to_ns"]) == (0, 5 * 10**9)
    assert first["differs"] == ["delay", "jitter"]
    pair = first["pairs"][0]
    assert (pair["src"], pair["dst"]) == ("c.0", "d.1")  # crashes at 5 s
    assert pair["a"] == {
        "route": ["c.0->s", "s->t", "t->d.1"],
        "rate_bps": 10_000_000,
        "delay_ns": 15_000_000,
        "jitter_ns": 5_000_000,
        "loss_ppb": 10_000_000,
    }
    assert (pair["b"]["delay_ns"], pair["b"]["jitter_ns"]) == (17_000_000, 4_472_136)
    fields = {(one["name"], one["field"]) for one in found["topology"]["differences"]}
    assert fields == {(link, f) for link in ("s->t", "t->s") for f in ("delay_ns", "jitter_ns")}


def test_elements_that_only_one_has(folder: Path) -> None:
    more = TWO_SERVICES.replace("bridges s t", "bridges s t u\nlink t--u latency=1ms")
    write(folder, more.replace("service d img=x replicas=3", "service d img=y replicas=4"))
    found = both("--limit", "100")["topology"]["differences"]
    told = {(one["kind"], one["name"], one["field"]): (one["a"], one["b"]) for one in found}
    assert told["service", "d", "image"] == ("x", "y")
    assert told["service", "d", "replicas"] == (3, 4)
    assert told["instance", "d.3", ""] == (None, "d.3")
    assert told["bridge", "u", ""] == (None, "u")
    assert told["link", "t->u", ""] == (None, "t->u")
    text = tstorm("diff", "b.tdl", "a.tdl", "--limit", "100").stdout
    assert "\n  - bridge u\n" in text
    assert "\n  ~ service d replicas: 4 -> 3\n" in text


def test_what_is_left_out_is_counted(folder: Path) -> None:
    write(folder, TWO_SERVICES.replace("seed 3", "seed 4").replace("latency=4ms", "latency=5ms"))
    result = tstorm("diff", "a.tdl", "b.tdl", "--limit", "0")
    counts = both("--limit", "0")
    assert counts["topology"]["count"] > 0
    assert counts["topology"]["differences"] == []
    assert f"… and {counts['topology']['count']} more differences (--limit)" in result.stdout
    assert f"… and {counts['network']['count']} more groups (--limit)" in result.stdout
    one = tstorm("diff", "a.tdl", "b.tdl", "--limit", "1").stdout
    assert f"… and {counts['topology']['count'] - 1} more differences (--limit)" in one


def test_one_of_what_is_left_out_is_not_several(folder: Path) -> None:
    text = "service a\nservice b\nlink a--b rate=9Mb\nat 1s quit\n"
    (folder / "one.tdl").write_text(text)
    (folder / "two.tdl").write_text(text.replace("rate=9Mb", "up=9Mb down=8Mb loss=1%"))
    found = tstorm("diff", "one.tdl", "two.tdl", "--limit", "1").stdout
    assert "\n  … and 1 more group with 1 pair (--limit)\n" in found


def test_plans_and_texts_can_be_compared(folder: Path) -> None:
    assert tstorm("compile", "a.tdl", "-o", "a.plan").exit_code == 0
    assert status(tstorm("diff", "a.tdl", "a.plan")) == OK
    run = folder / "run"
    run.mkdir()
    (folder / "a.plan").rename(run / "plan")
    (run / "manifest.json").write_text("{}", encoding="utf-8")
    assert status(tstorm("diff", "run", "a.tdl")) == OK
    seeds = tstorm("diff", "run", "a.tdl", "--seed", "9")
    assert status(seeds) == OK
    write(folder, TWO_SERVICES.replace("at 20s", "at 21s"))
    assert "run/plan/source.tdl:10: at 20s s--t join" in tstorm("diff", "run", "b.tdl").stdout


def test_without_network(folder: Path) -> None:
    write(folder, TWO_SERVICES.replace("at 20s", "at 21s"))
    assert both("--no-network")["network"] is None
    assert "network:" not in tstorm("diff", "a.tdl", "b.tdl", "--no-network").stdout


def test_errors_end_with_1_and_an_empty_output(folder: Path) -> None:
    write(folder, "at 5s nobody crash\n")
    for arguments in (("a.tdl", "b.tdl"), ("b.tdl", "a.tdl"), ("a.tdl", "missing.tdl")):
        result = tstorm("diff", *arguments)
        assert (status(result), result.stdout) == (FAILED, "")
    assert status(tstorm("diff", "-", "-")) == 2


def test_a_damaged_plan_is_refused(folder: Path) -> None:
    assert tstorm("compile", "a.tdl", "-o", "a.plan").exit_code == 0
    write(folder, TWO_SERVICES.replace("at 20s", "at 21s"))
    for name in ("routes.bin", "snapshots.jsonl", "timeline.jsonl", "topology.json", "source.tdl"):
        path = folder / "a.plan" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        result = tstorm("diff", "a.plan", "b.tdl")
        assert isinstance(result.exception, CommandError)
        assert f"error: a.plan: {name}" in result.exception.message
        other = tstorm("diff", "b.tdl", "a.plan")
        assert str(other.exception).startswith(f"error: a.plan: {name}"), "not the first one"
        assert result.stdout == ""
        path.write_bytes(whole)
