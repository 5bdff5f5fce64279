"""What an editor asks about a place of a text: completion, hover, definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import Editor
from tstorm.lsp.checking import AskedText, TextSession
from tstorm.lsp.completing import proposals

TEXT = """param wait = 5s
service db img=x exec="sleep 9" replicas=2 tags=core
service app img=x exec="sleep 9"
bridge s
link db--s latency=1ms up=10Mb symmetric
link app--s latency=4ms
at $wait db crash 1
at 6s db--s set latency=20ms
at 9s quit
expect rtt app db < 99ms to 3s
"""


def proposed(typed: str) -> list[str]:
    """At the end of what is typed, in a text that declares what TEXT does."""
    known = [one for one, _ in TextSession(AskedText(TEXT)).names()]
    return [one.text for one in proposals(typed.split("\n"), known)[1]]


@pytest.mark.parametrize(
    ("typed", "there", "not_there"),
    [
        ("", ["service", "link", "expect", "db"], ["latency="]),
        ("link ", ["db", "app", "s"], ["core", "latency="]),
        ("link db--", ["s", "app"], ["core"]),
        ("link db--s ", ["latency=", "jitter=", "tags=", "symmetric"], ["img=", "at"]),
        ("link db--s latency=1ms ", ["jitter="], ["latency="]),
        ("link db--s latency=10", ["10ms", "10us"], ["10Mb"]),
        ("link db--s up=10", ["10Mb", "10Gb"], ["10ms"]),
        ("service x ", ["img=", "exec=", "replicas=", "router"], ["latency="]),
        ("service x stop=", ["SIGTERM"], ["db"]),
        ("at 5", ["5s", "5ms"], ["5Mb"]),
        ("at 5s db ", ["crash", "set", "join"], ["service"]),
        ("at 5s db--s set ", ["latency=", "loss="], ["img="]),
        ("at 5s tags=", ["core"], ["db"]),
        ("expect ", ["rtt", "log", "valid"], ["db"]),
        ("expect rtt ", ["app", "db", "p99"], ["core"]),
        ("routing ", ["hops", "ecmp"], ["db"]),
        ("at $", ["wait"], ["db"]),
        ("link db--s \\\n    ", ["latency="], ["img="]),
    ],
)
def test_what_fits_is_proposed(typed: str, there: list[str], not_there: list[str]) -> None:
    found = proposed(typed)
    assert [one for one in there if one not in found] == []
    assert [one for one in not_there if one in found] == []


@pytest.mark.parametrize(
    ("typed", "likeliest"),
    [("link db--s latency=10", "10ms"), ("at 5", "5s"), ("link db--s up=10", "10Mb")],
)
def test_the_likeliest_unit_is_first(typed: str, likeliest: str) -> None:
    assert proposed(typed)[0] == likeliest


@pytest.mark.parametrize("typed", ["# a comment ", 'service a exec="sl', "service ", "at 5s db 'x"])
def test_nothing_is_proposed(typed: str) -> None:
    assert proposed(typed) == []


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    folder = tmp_path_factory.mktemp("open")
    (folder / "net.tdl").write_text("bridge hub\n")
    with Editor(folder) as one:
        one.open("a.tdl", TEXT)
        one.open("whole.tdl", f'include "net.tdl"\n{TEXT}link s--hub latency=1ms\n')
        yield one


def hover(editor: Editor, place: str) -> str:
    found = editor.ask("hover", "a.tdl", place)
    return found["contents"]["value"] if found else ""


def test_hover_says_what_paths_and_links_have(editor: Editor) -> None:
    link = hover(editor, "4:6")
    assert "link db--s at 0s" in link
    assert "db.0->s" in link
    assert "10Mb" in link
    assert "20ms" in hover(editor, "7:7")  # as the event leaves it
    pair = hover(editor, "9:16")
    assert "paths at 0s" in pair
    assert "db.0" in pair
    assert "10ms" in pair  # there and back: 2 * (4 ms + 1 ms)
    assert "6s" in hover(editor, "7:15")
    assert hover(editor, "0:2") == ""
    assert hover(editor, "999:999") == ""


def where(found: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    places = ((Path(one["uri"]).name, one["range"]["start"]) for one in found)
    return [(name, start["line"], start["character"]) for name, start in places]


def test_definition_leads_to_the_declaration(editor: Editor) -> None:
    assert where(editor.ask("definition", "a.tdl", "4:6")) == [("a.tdl", 1, 8)]
    assert where(editor.ask("definition", "a.tdl", "6:6")) == [("a.tdl", 0, 6)]
    assert where(editor.ask("definition", "whole.tdl", "11:10")) == [("net.tdl", 0, 7)]
    assert where(editor.ask("definition", "whole.tdl", "0:12")) == [("net.tdl", 0, 0)]
    assert editor.ask("definition", "a.tdl", "999:0") is None


def test_completion_over_the_protocol(editor: Editor) -> None:
    editor.change("a.tdl", f"{TEXT}link app--s latency=1")
    editor.diagnostics("a.tdl")
    found = editor.ask("completion", "a.tdl", "10:21")["items"]
    assert min(found, key=lambda one: one["sortText"])["label"] == "1ms"
    edit = next(one for one in found if one["label"] == "1ms")["textEdit"]
    assert edit["range"]["start"]["character"] == 20
    assert editor.ask("completion", "a.tdl", "999:0") is None
