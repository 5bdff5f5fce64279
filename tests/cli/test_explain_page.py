"""docs/explain.md and docs/tour.md: what they show is what the commands print."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.pages.page import commands
from tstorm.cli import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
SHOWN = [(found.text.removeprefix("tstorm "), found.shown) for found in commands(PAGE + TOUR)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With quickstart.tdl, after.tdl and reach.tdl, which have more lines, and a list of flows."""
    shutil.copy(ROOT / "examples" / "quickstart.tdl", tmp_path)
    lines = (tmp_path / "quickstart.tdl").read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(8, "at 7s server--s1 set loss=1%\n")
    (tmp_path / "after.tdl").write_text("".join(lines), encoding="utf-8")
    (more,) = re.findall(r"```\n(expect .*?)```", PAGE, re.DOTALL)
    quickstart = (tmp_path / "quickstart.tdl").read_text(encoding="utf-8")
    (tmp_path / "reach.tdl").write_text(quickstart + more, encoding="utf-8")
    (flows,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "flows.csv").write_text(flows, encoding="utf-8")
    (statements,) = re.findall(r"```\n(let all .*?)```", PAGE, re.DOTALL)
    (tmp_path / "flows.tdl").write_text(statements, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_enough() -> None:
    told = [command.split()[0] for command, _ in SHOWN]
    assert told.count("explain") >= 4
    assert told.count("diff") >= 2


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_output_is_as_shown(command: str, shown: str, folder: Path) -> None:
    result = CliRunner().invoke(cli, command.split())
    assert result.stdout == shown


def test_flows_in_tdl_are_as_many_as_the_page_says(folder: Path) -> None:
    words = ["predict", "quickstart.tdl", "--flows", "flows.tdl", "--format", "json"]
    found = json.loads(CliRunner().invoke(cli, words).stdout)["flows"]
    assert f"The same two flows, and {len(found) - 2} more:" in PAGE
    assert [one["line"] for one in found[:2]] == [2, 3]
    assert {one["to"] for one in found} == {"server.0", "server.1", "server.2"}


def test_the_draw_can_be_computed_by_hand(folder: Path) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code
    printed: list[tuple[object, ...]] = []
    exec(code.group(1), {"print": lambda *words: printed.append(words)})
    ((key, word),) = printed
    explained = CliRunner().invoke(cli, ["explain", "quickstart.tdl", "--event", "18"]).stdout
    assert f"key {key}\n" in explained
    assert f"is 0x{word}," in explained


def keys(value: object) -> Iterator[str]:
    """Of all objects in a JSON document, but for the arguments of events."""
    if isinstance(value, dict):
        yield from value
        for key, item in value.items():
            yield from keys(item if key != "args" else None)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


@pytest.mark.parametrize(
    "command",
    [
        "explain quickstart.tdl --from client --to server.1 --at 6s",
        "explain quickstart.tdl --from client --to server.0 --at 20.5s",
        "explain quickstart.tdl --event 18",
        "explain reach.tdl --expect",
        "predict quickstart.tdl --flows flows.csv",
        "diff quickstart.tdl after.tdl",
        "diff quickstart.tdl after.tdl --seed 1",
    ],
)
def test_every_key_of_the_json_is_on_the_page(command: str, folder: Path) -> None:
    result = CliRunner().invoke(cli, [*command.split(), "--format", "json"])
    words = set(
        re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", PAGE.partition("## JSON")[2])))
    )
    also = {"queue_bytes", "distribution", "state"}  # of a link, in plan.md
    span = {"line", "col", "end_line", "end_col"}
    told = set(keys(json.loads(result.stdout)))
    assert len(told) > 10
    assert told <= words | also | span
