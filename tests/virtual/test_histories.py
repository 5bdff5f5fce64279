"""A program whose fault no log line tells, and the history that does (examples/register)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import ROOT, tstorm

pytestmark = pytest.mark.virtual


def test_a_partition_shows_what_the_failover_of_a_register_is_worth(tmp_path: Path) -> None:
    example = str(ROOT / "examples/register/register.tdl")
    words = ("--time", "virtual", "--no-probes", "--quiet", "--until", "7s", "--out", "run")
    tstorm(tmp_path, "run", example, *words, code=5)
    (found,) = json.loads((tmp_path / "run/summary.json").read_text())["expectations"]
    assert found["state"] == "failed"
    assert found["subject"] == "client.1" and 5 * 10**9 < found["at_ns"] < 9 * 10**9
    guilty = [one for one in found["operations"] if one["guilty"]]
    assert [one["process"] for one in guilty] == ["client.1 1"]
    assert "client.1's history.jsonl, line " in found["message"]
    assert (tmp_path / "run/kept/client.0/history.jsonl").exists()
