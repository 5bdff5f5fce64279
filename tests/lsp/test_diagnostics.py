"""`tstorm lsp` over its protocol: an editor sees what `tstorm check` says, while it types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import status, tstorm
from tests.lsp.editor import Editor

pytest.importorskip("pygls", reason="the extra [lsp] is not installed")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.tdl"))
SEVERITIES = {1: "error", 2: "warning"}


@pytest.fixture(scope="module")
def examples() -> Iterator[Editor]:
    with Editor(ROOT / "examples") as editor:
        yield editor


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("above") / "open"
    folder.mkdir()
    with Editor(folder) as one:
        yield one


def said(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """As the JSON of `tstorm check` has it; of a text of ASCII alone."""
    rows = []
    for one in found:
        start, end, data = one["range"]["start"], one["range"]["end"], one["data"]
        place = (start["line"] + 1, start["character"] + 1, end["line"] + 1, end["character"] + 1)
        text = (data["message"], data["hint"] or None, data["note"] or None)
        rows.append((one.get("code"), SEVERITIES[one["severity"]], *place, *text))
    return sorted(rows, key=str)


def checked(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """By file, what `tstorm check` says."""
    result = tstorm("check", str(file), "--format", "json")
    assert status(result) in (0, 1)
    found: dict[str, list[tuple[Any, ...]]] = {str(file): []}
    keys = ("code", "severity", "line", "col", "end_line", "end_col", "message", "hint", "note")
    for one in json.loads(result.stdout):
        found.setdefault(one["file"], []).append(tuple(one[key] for key in keys))
    return {name: sorted(rows, key=str) for name, rows in found.items()}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_the_diagnostics_of_check(examples: Editor, file: Path) -> None:
    name = str(file.relative_to(examples.folder))
    expected = checked(file)
    assert said(examples.open(name)) == expected.pop(str(file))
    for other, rows in expected.items():
        there = str(Path(other).relative_to(examples.folder))
        assert said(examples.published(there, lambda one: bool(one["diagnostics"]))) == rows
    examples.close(name)


START = 'service a img=x exec="sleep 9" replicas=2\nbridge s\nlink a--s latency=1ms\n'


def checked_beside(file: Path, text: str) -> dict[str, list[tuple[Any, ...]]]:
    """The same of a text that is in the editor only, by the names of files."""
    file.write_text(text)
    found = checked(file)
    file.unlink()
    return {Path(name).name: rows for name, rows in found.items()}


WRONG = {
    "syntax": "service a img=x\nlink a b\n",
    "undeclared": "service a img=x exec=a\nbridge s\nlink a--t latency=1ms\nat 1s quit\n",
    "let": f"{START}let wait = 5x\nat $wait a crash\n",
    "for": f"{START}for i in 1..3 {{\n    at ${{i}}s a.9 crash\n}}\n",
    "warning": f"{START}link a--s latency=2ms name=other\nat 5s a--s set loss=100%\nat 9s quit\n",
    "timeline": f"{START}at 1s a crash 3\nat 5s quit\n",
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_told_as_check_tells_it(editor: Editor, kind: str) -> None:
    file = editor.folder / f"{kind}.tdl"
    file.write_text(WRONG[kind])
    found = editor.open(file.name)
    assert found
    assert said(found) == checked(file)[str(file)]
    first = found[0]
    assert first["source"] == "tstorm"
    if first["data"]["hint"]:
        assert first["message"].endswith(f"help: {first['data']['hint']}")
    editor.close(file.name)


def test_a_text_in_the_editor_wins_over_the_disk(editor: Editor) -> None:
    (editor.folder / "net.tdl").write_text("bridge s\nlink a--s latency=1ss\n")
    whole = 'include "net.tdl"\nservice a img=x exec="sleep 9" replicas=2\nat 5s quit\n'
    assert editor.open("whole.tdl", whole) == []
    wrong = editor.published("net.tdl", lambda one: bool(one["diagnostics"]))
    assert said(wrong) == checked_beside(editor.folder / "whole.tdl", whole)["net.tdl"]
    # By itself the part would miss `a`; as a part of the whole it does not.
    editor.open("net.tdl", "bridge s\nlink a--s latency=1ms\n")
    assert editor.published("net.tdl", lambda one: "version" in one) == []
    editor.change("net.tdl", "bridge s\nlink a--t latency=1ms\n")
    found = editor.published("net.tdl", lambda one: bool(one["diagnostics"]))
    assert said(found)[0][0] == "TS0102"
    editor.close("whole.tdl")
    alone = editor.published("net.tdl", lambda one: len(one["diagnostics"]) > 1)
    assert {row[0] for row in said(alone)} == {"TS0102"}
    editor.close("net.tdl")
    assert editor.published("net.tdl", lambda one: not one["diagnostics"]) == []


def test_columns_are_counted_as_the_editor_counts(editor: Editor, tmp_path: Path) -> None:
    text = 'service a img=x exec="echo 🌩🌩" replicas=x\n'
    file = editor.folder / "wide.tdl"
    file.write_text(text)
    place = editor.open("wide.tdl")[0]["range"]["start"]
    assert text.encode("utf-16-le")[2 * place["character"] :].decode("utf-16-le").startswith("x\n")
    with Editor(tmp_path, encodings=("utf-8", "utf-16")) as other:
        assert other.capabilities["positionEncoding"] == "utf-8"
        place = other.open("wide.tdl", text)[0]["range"]["start"]
        assert text.encode()[place["character"] :].decode().startswith("x\n")


@pytest.mark.parametrize("encodings", [None, ()])
def test_an_editor_that_names_no_encoding_has_utf_16(
    tmp_path: Path, encodings: tuple[str, ...] | None
) -> None:
    text = 'service a img=x exec="echo 🌩🌩" replicas=x\n'
    with Editor(tmp_path, encodings=encodings) as other:
        place = other.open("wide.tdl", text)[0]["range"]["start"]
    assert text.encode("utf-16-le")[2 * place["character"] :].decode("utf-16-le").startswith("x\n")


def test_nothing_outside_of_the_open_folder_is_read(editor: Editor) -> None:
    outside = editor.folder.parent
    (outside / "secret.tdl").write_text("bridge s\n")
    (outside / "up.trace").write_text("1\n2\n")
    (editor.folder / "link.tdl").symlink_to(outside / "secret.tdl")
    (editor.folder / "data").mkdir()
    (editor.folder / "data" / "link").symlink_to(outside / "up.trace")
    for number, (code, line) in enumerate(
        (
            ("TS0151", 'include "../secret.tdl"'),
            ("TS0151", 'include "link.tdl"'),
            ("TS0151", 'include "../docker-compose.yml"'),
            ("TS0171", "link a--s trace-up=../up.trace"),
            ("TS0178", "link a--s latency=5ms jitter=1ms dist=../up.trace"),
            ("TS0190", 'mobility "../moves.csv" unit=m'),
            ("TS0133", "service b img=x files=../up.trace"),
            ("TS0133", "service b img=x files=/etc/passwd"),
            ("TS0133", "service b img=x files=data"),
        )
    ):
        found = editor.open(f"beyond{number}.tdl", f"{START}{line}\nat 5s quit\n")
        refused = [one for one in found if "outside of the open folder" in one["message"]]
        assert [one["code"] for one in refused] == [code], line


def test_a_program_that_describes_a_topology_does_not_run(editor: Editor) -> None:
    (editor.folder / "topo.py").write_text('open("ran", "w")\n')
    found = editor.open("python.tdl", 'include "topo.py:tree"\n')
    assert "nothing runs it here" in found[0]["message"]
    assert not (editor.folder / "ran").exists()


def test_a_text_without_a_file_is_checked_too(editor: Editor) -> None:
    uri = "untitled:Untitled-1"
    item = {"uri": uri, "languageId": "tdl", "version": 1, "text": 'include "x"\n'}
    editor.notify("textDocument/didOpen", textDocument=item)
    (found,) = editor.published(uri, lambda one: bool(one["diagnostics"]))
    assert found["code"] == "TS0151"
