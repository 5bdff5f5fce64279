"""Another name for a service, a bridge, a part, a tag, a link or a variable: through include, let
and for, and nothing where the texts would say something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ROOT
from tests.lsp.editor import Editor
from tstorm.lsp.checking import AskedText, RenamedText, TextSession, Unanswered

EXAMPLES = sorted((ROOT / "examples").rglob("*.tdl"))
ORDER = (("start", "line"), ("start", "character"), ("end", "line"), ("end", "character"))
TEXT = """start when ready
param wait = 5s
let victim = db
let far = "latency=20ms"
service db img=x exec="sleep 9" replicas=3 tags=core
service app img=x exec="app --peer db.0 --patience $wait" after=db:start tags=edge
bridge s tags=core
link db--s latency=1ms
link app--s name=slow $far
at $wait db.0 crash
at 6s db--s set latency=20ms only=from:app;to:db
at 6s partition app;db
at 7s heal
for i in 0..2 {
    let later = 7.$i
    at ${later}s db.$i->s set latency=${i*2}ms
}
for i in db;app { at 8s $i--s set loss=1% }
at 8s $victim.1 crash
at 9s quit
expect rtt app db < 99ms to 3s
expect exit db.* 0
"""


def asked(text: str, word: str, new: str | None, **more: Any) -> RenamedText | Unanswered:
    """At the first place that is marked so: `|`."""
    line = next(n for n, one in enumerate(text.split("\n")) if word in one)
    units = text.split("\n")[line].index(word) + word.index("|")
    return TextSession(AskedText(text.replace("|", ""), **more)).rename("", line, units, new)


def renamed(text: str, marked: str, new: str) -> str:
    """The text with another name for what stands at `|` of a piece of it."""
    found = asked(text.replace(marked.replace("|", ""), marked, 1), marked, new)
    assert isinstance(found, RenamedText), found
    return applied({"": text}, [(file, place) for file, place in found.edits], new)[""]


def applied(texts: Mapping[str, str], edits: list[tuple[str, Any]], new: str) -> dict[str, str]:
    found = {file: text.split("\n") for file, text in texts.items()}
    for file, (line, start, end_line, end) in sorted(edits, reverse=True):
        assert line == end_line
        before = found[file][line]
        found[file][line] = before[:start] + new + before[end:]
    return {file: "\n".join(lines) for file, lines in found.items()}


@pytest.mark.parametrize(
    ("marked", "old", "new"),
    [
        ("service d|b", "db", "store"),
        ("link |db--s", "db", "store-2"),
        ("expect rtt app db|", "db", "x"),
        ("bridge |s", "s", "hub"),
        ("param wa|it", "wait", "pause"),
        ("at ${la|ter}s", "later", "moment"),
        ("tags=ed|ge", "edge", "rim"),
        ("name=s|low", "slow", "wan"),
    ],
)
def test_each_place_of_a_name_and_no_other(marked: str, old: str, new: str) -> None:
    after = renamed(TEXT, marked, new)
    pieces = re.split(rf"(?<![\w}}])(?<!\w-){old}(?!\w)(?!-\w)", TEXT)
    kept = ("app --peer db.0",) if old == "db" else ()
    expected = new.join(pieces)
    for words in kept:
        expected = expected.replace(words.replace(old, new), words)
    assert after == expected


def test_a_variable_of_one_loop_is_not_that_of_another() -> None:
    after = renamed(TEXT, "for |i in 0..2", "n")
    assert "for n in 0..2 {\n    let later = 7.$n\n" in after
    assert "db.$n->s set latency=${n*2}ms" in after
    assert "for i in db;app { at 8s $i--s set" in after


def test_a_part_of_machines_has_its_name_in_its_machine_only() -> None:
    text = (
        'node sat replicas=2 {\n    bridge lan0\n    service obc exec="sleep 9"\n'
        '    service mast exec="sleep 9"\n    link obc--lan0\n    link mast--lan0\n}\n'
        'node gnd {\n    bridge lan0\n    service obc exec="sleep 9"\n'
        '    service mast exec="sleep 9"\n    link obc--lan0\n    link mast--lan0\n}\n'
        "link sat.mast--gnd.0.mast\nat 1s sat.0.obc crash\nat 2s gnd.obc crash\nat 5s quit\n"
    )
    after = renamed(text, "sat.0.o|bc", "computer")
    assert after.count("obc") == 3
    assert "at 1s sat.0.computer crash\nat 2s gnd.obc crash" in after
    after = renamed(text, "node s|at", "satellite")
    assert "link satellite.mast--gnd.0.mast\nat 1s satellite.0.obc crash" in after


def test_what_stays_in_texts_for_programs_is_told() -> None:
    found = asked(TEXT.replace("service db", "service d|b"), "service d|b", "store")
    assert isinstance(found, RenamedText)
    assert found.name == "db"
    assert found.mentions == ("line 6",)


@pytest.mark.parametrize(
    ("text", "marked", "new", "why"),
    [
        (TEXT, "service d|b", "app", "there is a name 'app' already"),
        (TEXT, "service d|b", "a b", "'a b' is no name of TDL"),
        (TEXT, "service d|b", "join", "with the name 'join'"),
        (TEXT, "tags=ed|ge", "core", "there is a tag 'core' already"),
        (TEXT, "param wa|it", "far", "there is a variable 'far' already"),
        (TEXT, "param wa|it", "TSTORM_WAIT", "with the name 'TSTORM_WAIT'"),
        (TEXT, "sleep| 9", "x", "no name stands here"),
        (TEXT, "at 9s qu|it", "x", "no name stands here"),
        ("bridges b[0..2]\nlink b0--b1\nat 5s quit\n", "link b|0", "x", "such a name is not"),
        ("bridges b[|0..2]\nat 5s quit\n", "b[|0..2]", "x", "stands for b0, b1, b2"),
        ("service a exec=x\nlink a--b\n", "service |a", "x", "mend what is wrong first"),
        (
            'service a exec="echo $y"\nlet x = 1s\nbridge s\nlink a--s latency=$x\nat 5s quit\n',
            *("let |x", "y", "there is a variable 'y' already"),
        ),
    ],
)
def test_it_is_refused_with_a_reason(text: str, marked: str, new: str, why: str) -> None:
    found = asked(text.replace(marked.replace("|", ""), marked, 1), marked, new)
    assert isinstance(found, Unanswered), found
    assert why in found.why


def test_names_of_other_tools_files_stay(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text("services: {web: {image: x}}\n")
    text = 'include "c.yml"\nat 1s we|b crash\nat 5s quit\n'
    found = asked(text, "we|b", "front", path=str(tmp_path / "a.tdl"))
    assert isinstance(found, Unanswered)
    assert "another tool's file has this name, too: line 1 of c.yml" in found.why


# --- over the protocol ---


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    with Editor(tmp_path_factory.mktemp("open")) as one:
        yield one


def changes(editor: Editor, name: str, place: str, new: str) -> dict[str, list[tuple[int, int]]]:
    """Lines and columns from 0, by file."""
    found = editor.ask("rename", name, place, newName=new)
    starts = {
        Path(uri).name: [edit["range"]["start"] for edit in edits]
        for uri, edits in (found or {"changes": {}})["changes"].items()
    }
    return {
        file: sorted((one["line"], one["character"]) for one in places)
        for file, places in starts.items()
    }


def test_all_open_texts_that_have_a_part_are_changed(editor: Editor) -> None:
    net = "bridge hub\nlink a--hub latency=1ms\n"
    (editor.folder / "net.tdl").write_text(net)
    whole = (
        'include "net.tdl"\nservice a exec="sleep 9" # 🌩\nat 1s a--hub set loss=1%\nat 5s quit\n'
    )
    editor.open("one.tdl", whole)
    editor.open("two.tdl", whole.replace("at 1s", "at 2s").replace("# 🌩", ""))
    expected = {"one.tdl": [(2, 9)], "two.tdl": [(2, 9)], "net.tdl": [(0, 7), (1, 8)]}
    assert changes(editor, "one.tdl", "2:10", "core") == expected
    editor.open("net.tdl", net)
    assert changes(editor, "net.tdl", "0:8", "core") == expected
    found = editor.ask("prepareRename", "net.tdl", "0:8")
    assert found["placeholder"] == "hub"
    assert found["range"]["start"] == {"line": 0, "character": 7}
    for name in ("one.tdl", "two.tdl", "net.tdl"):
        editor.close(name)


def test_a_refusal_is_shown(editor: Editor) -> None:
    editor.open("r.tdl", TEXT)
    assert editor.ask("rename", "r.tdl", "4:9", newName="app") is None
    shown = editor.message("window/showMessage")["message"]
    assert shown == "not renamed: there is a name 'app' already"
    assert editor.ask("prepareRename", "r.tdl", "4:2") is None
    assert "no name stands here" in editor.message("window/showMessage")["message"]
    assert editor.ask("rename", "never-opened.tdl", "0:0", newName="x") is None
    assert editor.ask("rename", "r.tdl", "999:0", newName="x") is None


@pytest.fixture(scope="module")
def examples() -> Iterator[Editor]:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    with Editor(ROOT / "examples") as one:
        yield one


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_the_first_name_of_an_example_becomes_another(examples: Editor, file: Path) -> None:
    """What comes of it has the diagnostics that it had, but for the name."""
    name, text = str(file.relative_to(examples.folder)), file.read_text()
    before = examples.open(name)
    lines = text.split("\n")
    words = ("service ", "bridge ", "node ")
    line = next((n for n, one in enumerate(lines) if one.startswith(words)), None)
    if line is not None:
        at = lines[line].index(" ") + 1
        found = examples.ask("rename", name, f"{line}:{at}", newName="another9")
        assert found is not None, examples.message("window/showMessage")
        edits = [
            (uri, tuple(one["range"][end][key] for end, key in ORDER))
            for uri, there in found["changes"].items()
            for one in there
        ]
        texts = {uri: Path(uri.removeprefix("file://")).read_text() for uri, _ in edits}
        after = applied(texts, edits, "another9")
        assert f"{file.as_uri()}" in after
        if len(after) == 1:
            examples.change(name, after[file.as_uri()])
            codes = sorted(one["code"] for one in examples.diagnostics(name))
            assert codes == sorted(one["code"] for one in before)
    examples.close(name)
