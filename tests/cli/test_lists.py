"""`events` and `paths`: the JSON that others script against, tables, selection, seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import TWO_SERVICES, tstorm
from tstorm.exit_codes import CommandError


def rows(*arguments: str) -> list[dict[str, Any]]:
    result = tstorm(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "two.tdl"
    path.write_text(TWO_SERVICES, encoding="utf-8")
    return str(path)


@pytest.fixture
def plan(source: str, tmp_path: Path) -> str:
    target = str(tmp_path / "two.plan")
    assert tstorm("compile", source, "-o", target).exit_code == 0
    return target


def test_events_have_the_fixed_fields(source: str) -> None:
    found = rows("events", source)
    fields = {"seq", "at_ns", "kind", "target", "args", "line", "file"}
    assert all(set(event) == fields for event in found)
    assert [event["seq"] for event in found] == list(range(len(found)))
    assert [event["kind"] for event in found[:6]] == ["join"] * 5 + ["crash"]
    assert found[0]["line"] == 0
    assert found[5]["line"] == 8
    assert found[-1] == {
        "seq": len(found) - 1,
        "at_ns": 30 * 10**9,
        "kind": "quit",
        "target": "",
        "args": {},
        "line": 11,
        "file": "",
    }


def test_a_plan_and_its_source_give_the_same(source: str, plan: str) -> None:
    assert rows("events", source) == rows("events", plan)
    at = ["--at", "12s"]
    assert rows("paths", source, *at) == rows("paths", plan, *at)


def test_another_seed_recompiles_a_plan(source: str, plan: str) -> None:
    crashed = {rows("events", plan, "--seed", str(seed))[5]["target"] for seed in range(20)}
    assert crashed == {"d.0", "d.1", "d.2"}
    assert rows("events", plan, "--seed", "4") == rows("events", source, "--seed", "4")


def test_paths_are_composed(source: str) -> None:
    (path,) = rows("paths", source, "--at", "0s", "--from", "c.0", "--to", "d.1")
    assert path == {
        "src": "c.0",
        "dst": "d.1",
        "reachable": True,
        "rate_bps": 10_000_000,
        "delay_ns": 15_000_000,
        "jitter_ns": 5_000_000,
        "loss_ppb": 10_000_000,
        "rtt_ns": 30_000_000,
        "links": ["c.0->s", "s->t", "t->d.1"],
    }


def test_paths_without_a_time_are_those_of_the_start_and_say_so(source: str) -> None:
    result = tstorm("paths", source)
    assert result.stdout == tstorm("paths", source, "--at", "0s").stdout != ""
    assert "at 0s, when 5 of 5 instances are joined; --at T" in result.stderr
    assert rows("paths", source) == rows("paths", source, "--at", "0s")


def test_what_is_unreachable_says_so(source: str) -> None:
    found = rows("paths", source, "--at", "10s", "--from", "c", "--to", "d")
    assert len(found) == 4  # one of the three was crashed
    assert all(not path["reachable"] and path["rate_bps"] is None for path in found)
    assert "unreachable" in tstorm("paths", source, "--at", "10s").stdout


def test_all_pairs_of_joined_instances(source: str) -> None:
    assert len(rows("paths", source, "--at", "0s")) == 5 * 4
    assert len(rows("paths", source, "--at", "5s")) == 4 * 3


def test_an_instance_that_is_not_joined_is_named(source: str) -> None:
    crashed = rows("events", source)[5]["target"]
    result = tstorm("paths", source, "--at", "6s", "--from", crashed, "--format", "json")
    assert json.loads(result.stdout) == []
    assert crashed in result.stderr


def test_a_wrong_name_is_answered_with_the_nearest(source: str) -> None:
    result = tstorm("paths", source, "--at", "0s", "--from", "c.7")
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr
    other = tstorm("explain", source, "--from", "c.7", "--to", "c.0")
    said = "Error: Invalid value for '--from': "
    assert other.stderr.partition(said)[2] == result.stderr.partition(said)[2] != ""


def test_a_name_is_an_instance_only_as_it_is_written(source: str) -> None:
    for name in ("c.00", "c.+1", "c.", ".0", "c.2", "s", "c.²"):
        result = tstorm("paths", source, "--at", "0s", "--to", name)
        assert result.exit_code == 2, name
        assert f"no service or instance '{name}'" in result.stderr
    assert {row["dst"] for row in rows("paths", source, "--at", "0s", "--to", "d.1")} == {"d.1"}


@pytest.mark.parametrize("at", ["0s", "10s", "12s"])
def test_many_pairs_print_as_few_do(source: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tstorm.commands.experiment import paths

    for form in ("json", "table"):
        few = tstorm("paths", source, "--at", at, "--format", form)
        monkeypatch.setattr(paths, "FEW", 0)
        many = tstorm("paths", source, "--at", at, "--format", form)
        monkeypatch.undo()
        assert few.exit_code == 0
        assert many.stdout == few.stdout != ""


def test_a_path_is_written_in_canonical_form() -> None:
    from compiler.plan.paths.path import PathProperties
    from compiler.plan.properties import Totals
    from tstorm.commands.experiment.paths import _json
    from tstorm.output import to_json

    nodes = {0: '"a"', 1: '"b"'}
    links = {0: '"a->s"', 1: '"s->b"'}
    nothing = PathProperties(0, 1, None, None, ())
    one_way = PathProperties(0, 1, Totals(0, 2**63, 7, 10**9), None, (0, 1))
    there_and_back = PathProperties(0, 1, Totals(10**9, 5, 0, 0), 10, (1,))
    for path in (nothing, one_way, there_and_back):
        names = [links[link].strip('"') for link in path.links]
        record: dict[str, Any] = {"src": "a", "dst": "b", "links": names}
        record |= {"reachable": path.reachable, "rtt_ns": path.rtt_ns}
        for name in ("rate_bps", "delay_ns", "jitter_ns", "loss_ppb"):
            record[name] = getattr(path.totals, name, None)
        wanted = to_json(record)
        assert _json(path, nodes, links) == wanted


def test_a_long_table_stays_aligned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tstorm import output

    monkeypatch.setattr(output, "BLOCK", 3)
    table = [("a", "1"), ("b", "2"), ("ccc", "3"), ("d", "4444"), ("e", "5"), ("f", "6")]
    output.emit_table(("X", "NUMBER"), table, right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["X  NUMBER", "a       1", "b       2"]
    assert lines[3:] == ["ccc       3", "d      4444", "e         5", "f         6"]
    output.emit_table(("X", "NUMBER"), [])
    assert capsys.readouterr().out == "X  NUMBER\n"


def test_a_damaged_route_on_the_way_is_named(plan: str) -> None:
    """routes.bin is read in part and so not compared with its digest; what is read is checked."""
    routes = Path(plan) / "routes.bin"
    data = bytearray(routes.read_bytes())
    data[24 + 8 : 24 + 16] = b"\xff" * 8
    routes.write_bytes(data)
    result = tstorm("paths", plan, "--at", "0s", "--from", "c.0", "--to", "d.1")
    assert isinstance(result.exception, CommandError)
    assert "routes.bin: epoch 0: its routes lie outside the file" in result.exception.message
    assert result.stdout == ""


def test_tables_are_for_people(source: str) -> None:
    lines = tstorm("events", source).stdout.splitlines()
    assert lines[0].split() == ["SEQ", "AT", "KIND", "TARGET", "ARGS", "LINE"]
    assert lines[1].split() == ["0", "0s", "join", "c.0", "-"]


def test_a_damaged_plan_is_refused(plan: str) -> None:
    timeline = Path(plan) / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes()[:-20])
    result = tstorm("events", plan)
    assert isinstance(result.exception, CommandError)
    assert "timeline.jsonl" in result.exception.message


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_edited_plan_of_the_same_size_is_refused(plan: str, form: str) -> None:
    timeline = Path(plan) / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"c.0"', b'"c.1"'))
    result = tstorm("events", plan, "--format", form)
    assert isinstance(result.exception, CommandError)
    assert "timeline.jsonl: was changed" in result.exception.message
    assert result.stdout == ""


def test_names_of_a_run_directory_are_those_of_the_runtime() -> None:
    from compiler.plan import format as form
    from runtime.rundir import runfiles
    from tstorm import loading

    assert (loading.PLAN_HEADER, loading.PLAN_SOURCE) == (form.HEADER, form.SOURCE)
    assert (loading.RUN_MANIFEST, loading.RUN_PLAN) == (runfiles.MANIFEST, runfiles.PLAN)


def test_the_collector_is_only_paused() -> None:
    import gc

    from compiler.plan.collector import collector_paused

    assert gc.isenabled()
    with pytest.raises(CommandError), collector_paused():
        assert not gc.isenabled()
        raise CommandError("")
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled(), "it was off before"
    finally:
        gc.enable()
