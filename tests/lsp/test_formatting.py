"""`textDocument/formatting` is `tstorm fmt`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tdl.text_layout import format_text
from tests.lsp.editor import Editor
from tstorm.lsp.checking import AskedText, TextSession

LINES = ("service a img=x", "service   b  img=x", "", "# 🌩", "  bridge s", "at 5s quit")
OPTIONS = {"tabSize": 4, "insertSpaces": True}


def replaced(text: str, line: int, start: int, end_line: int, end: int, new: str) -> str:
    """What an editor makes of it that counts in UTF-16."""
    lines = text.split("\n")
    assert line < len(lines)
    assert end_line < len(lines)

    def before(number: int, units: int) -> bytes:
        head = "\n".join([*lines[:number], ""]).encode("utf-16-le")
        return head + lines[number].encode("utf-16-le")[: 2 * units]

    whole = text.encode("utf-16-le")
    behind = whole[len(before(end_line, end)) :]
    return (before(line, start) + new.encode("utf-16-le") + behind).decode("utf-16-le")


@given(st.lists(st.sampled_from(LINES), max_size=7), st.sampled_from(("", "\n", "\n\n")))
def test_one_replacement_makes_the_canonical_form(lines: list[str], end: str) -> None:
    text = "\n".join(lines) + end
    made = TextSession(AskedText(text)).formatted()
    assert made is not None
    after = text if made.range is None else replaced(text, *made.range, made.text)
    assert after == format_text(text)


def test_over_the_protocol(tmp_path: Path) -> None:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    text = 'service a  img=x exec="sleep 1"   # 🌩\nat 5s   quit\n'
    with Editor(tmp_path) as editor:
        editor.open("a.tdl", text)
        (edit,) = editor.ask("formatting", "a.tdl", options=OPTIONS)
        start, end = edit["range"]["start"], edit["range"]["end"]
        begin = (start["line"], start["character"])
        after = replaced(text, *begin, end["line"], end["character"], edit["newText"])
        assert after == format_text(text)
        editor.change("a.tdl", after)
        assert editor.ask("formatting", "a.tdl", options=OPTIONS) == []
        editor.change("a.tdl", "service\n")
        assert editor.ask("formatting", "a.tdl", options=OPTIONS) is None
        assert "is not formatted" in editor.message("window/showMessage")["message"]
        unknown = editor.ask("formatting", "never-opened.tdl", options=OPTIONS)
        assert unknown is None
