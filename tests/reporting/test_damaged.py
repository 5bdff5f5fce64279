"""Reports of run directories that somebody has edited: an error with its place, or a report; never
a fault of the command, and nothing half-written."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.format import PlanError
from runtime.errors import RunError
from runtime.rundir import rundir
from tests.cli.support import status, tstorm
from tests.reporting import support
from tests.runtime import recorded
from tstorm.reporting import formats
from tstorm.reporting.run_facts import gather

STRANGE: list[Any] = [None, -1, 2**63, "x\x00", [], {}, [[1]], {"state": 5}, True, 1.5]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value in a document."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, one in list(enumerate(value)) if isinstance(value, list) else inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    whole = copy.deepcopy(value)
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return whole


def made(run: Path) -> str:
    """`whole`, or why not; anything but the two errors is a fault of ours."""
    try:
        facts = gather(rundir.recorded(run), live=False)
        for form in formats.FORMATS:
            if form != formats.CSV:
                b"".join(formats.pieces(facts, form, "valid"))
        for rows in formats.tables(facts).values():
            b"".join(rows)
    except (PlanError, RunError) as error:
        return str(error)
    return "whole"


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("summary.json", support.summary()),
        ("certificate.json", support.certificate()),
        ("manifest.json", recorded.MANIFEST),
    ],
)
def test_any_value_may_be_another(tmp_path: Path, name: str, document: dict[str, Any]) -> None:
    run = support.make(tmp_path / "run")
    assert made(run) == "whole"
    refused = 0
    for number, path in enumerate(places(document)):
        for new in (STRANGE[(number + more) % len(STRANGE)] for more in (0, 3, 7)):
            support.put(run, name, changed(document, path, new))
            refused += made(run) != "whole"
    assert refused


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("events.jsonl", recorded.EVENTS),
        ("samples.jsonl", recorded.SAMPLES),
        ("probes.jsonl", support.PROBES),
    ],
)
def test_any_value_of_a_line_may_be_another(
    tmp_path: Path, name: str, records: list[dict[str, Any]]
) -> None:
    run = support.make(tmp_path / "run")
    refused = 0
    for number, path in enumerate(places(records)):
        if len(path) > 1:
            new = STRANGE[number % len(STRANGE)]
            (run / name).write_bytes(recorded.lines(changed(records, path, new)))
            refused += made(run) != "whole"
    assert refused


def test_without_its_summary_a_run_is_as_robust(tmp_path: Path) -> None:
    run = support.make(tmp_path / "run")
    (run / "summary.json").unlink()
    for number, path in enumerate(places(recorded.EVENTS)):
        if len(path) > 1:
            new = STRANGE[number % len(STRANGE)]
            (run / "events.jsonl").write_bytes(recorded.lines(changed(recorded.EVENTS, path, new)))
            made(run)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"\xff", b"[" * 100_000])
def test_what_is_damaged_leaves_what_was_there(tmp_path: Path, data: bytes) -> None:
    run = support.make(tmp_path / "run")
    (run / "summary.json").write_bytes(data)
    target = tmp_path / "r.json"
    target.write_text("before", encoding="utf-8")
    result = tstorm("report", str(run), "-o", str(target))
    assert status(result) == 1
    assert "summary.json" in result.stderr or "summary.json" in str(result.exception)
    assert target.read_text(encoding="utf-8") == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "run"]


def test_a_table_that_breaks_off_is_not_written(tmp_path: Path) -> None:
    run = support.make(tmp_path / "run")
    with (run / "probes.jsonl").open("ab") as file:
        file.write(json.dumps({"at_ns": 2 * 10**9, "probes": [[7, 1, 1]]}).encode() + b"\n")
    for target in ("-", str(tmp_path / "p.csv")):
        result = tstorm("report", str(run), "--table", "probes", "-o", target)
        assert (status(result), result.stdout) == (1, "")
    result = tstorm("report", str(run), "--format", "csv", "-o", str(tmp_path / "all"))
    assert status(result) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
