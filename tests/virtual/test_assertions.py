"""Assertions of real programs, of which some empty their file when they begin; and what no run of a
campaign has come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ROOT, tstorm

pytestmark = pytest.mark.virtual

WORDS = ("--time", "virtual", "--no-probes", "--quiet", "--out", "run")
KEEPER = """#!/bin/sh
say() {
    said='"must_hit": true, "hit": true, "message": "'$2'", "condition": '$3
    echo '{"antithesis_assert": {"assert_type": "'$1'", '$said'}}'
}
[ -e life ] && again=true || again=false
say sometimes recovered $again >"$ANTITHESIS_SDK_LOCAL_OUTPUT"
say always "first life" $again >>"$ANTITHESIS_SDK_LOCAL_OUTPUT"
[ "$1" ] && exit
: >life
sync
exec sleep 1000
"""
TEXT = """
service keeper exec="./keeper"
service other exec="sleep 1000"
bridge s1
link keeper--s1 latency=1ms
link other--s1 latency=1ms
at 1s keeper crash 1 power
at 2s keeper join
at 4s quit
expect run "./keeper command" ok on keeper.0 at 3s
expect assertions keeper
expect sometimes log * "gave up"
"""


def _found(run: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((run / "summary.json").read_text())["expectations"]
    return found


def test_each_start_and_command_has_a_file_that_no_other_one_empties(tmp_path: Path) -> None:
    (tmp_path / "keeper").write_text(KEEPER)
    (tmp_path / "keeper").chmod(0o755)
    (tmp_path / "k.tdl").write_text(TEXT)
    done = tstorm(tmp_path, "run", "k.tdl", *WORDS, "--seeds", "1..2", code=5)
    never = 'never happened in any of 2 runs: expect sometimes log * "gave up"'
    assert [line for line in done.stderr.splitlines() if "never happened in any" in line] == [never]
    command, asserted, sometimes = _found(tmp_path / "run/seed-1")
    assert (command["state"], asserted["state"]) == ("passed", "failed")
    assert "(keeper.0's .assertions/program-001.jsonl, line 2)" in asserted["message"]
    assert asserted["happened"] == [
        'sometimes "recovered" (expect assertions keeper)',
        'always "first life" (expect assertions keeper)',
    ]
    assert sometimes["never"] == ['expect sometimes log * "gave up"']
    kept = tmp_path / "run/seed-1/kept/keeper.0/.assertions"
    names = ["command-001.jsonl", "program-001.jsonl", "program-002.jsonl"]
    assert sorted(one.name for one in kept.iterdir()) == names
    assert tstorm(tmp_path, "inspect", "run").stdout.splitlines()[0] == never


def test_the_example_is_right(tmp_path: Path) -> None:
    tstorm(tmp_path, "run", str(ROOT / "examples/outbox/outbox.tdl"), *WORDS)
    always, eventually, sometimes, asserted = _found(tmp_path / "run")
    assert {one["state"] for one in (always, eventually, sometimes, asserted)} == {"passed"}
    assert asserted["message"] == "1 assertion holds"
    assert 4 * 10**9 < eventually["at_ns"] <= 9 * 10**9
