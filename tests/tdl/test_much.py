"""Files that are too large, no text, or wrong all over: reading ends, says where, and stays linear.

Nothing here judges seconds: what is counted is diagnostics and statements. One test runs in a
process of its own, with a limit a hundred times what it needs; it took hours when reading was not
linear.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from compiler.pipeline import compile_source
from tdl import ast, bounds, decoding, parser, presentation
from tdl.diagnostics import Diagnostic, Severity, Sink, TdlError
from tdl.parser import parse_partial
from tdl.text_layout import format_text
from tdl.tokens.lexer import logical_lines


def only(text: str | bytes) -> Diagnostic:
    partial = parse_partial(text)
    assert partial.failed
    assert not partial.whole
    assert partial.file.statements == ()
    (found,) = partial.diagnostics
    return found


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 200_000,
        b"\x7fELF\x02\x01\x01" + b"\0" * 9,
        b"service a\nbridge s1\0\n",
        "bridge s1\n".encode("utf-16"),
        bytes(range(1, 32)) * 10,
        "bridge s1 \0",
    ],
)
def test_what_is_no_text_is_called_so_once(data: bytes | str) -> None:
    found = only(data)
    assert (found.code, found.span.line, found.message) == ("TS0029", 1, "this is not a text file")
    shown = presentation.render_text([found], "f", data)
    assert shown.splitlines()[0] == "f:1:1: error TS0029: this is not a text file"
    with pytest.raises(TdlError):
        format_text(data)
    with pytest.raises(TdlError) as caught:
        compile_source(data)
    assert caught.value.diagnostics == (found,)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ('<?xml version="1.0"?>\n<experiment boot="a">\n</experiment>\n', "an XML", 1),
        ("\ufeff\n<experiment>\n", "an XML", 2),
        ('{ "services": {"a": 1} }', "a JSON", 1),
        ('[\n  {"a": 1}\n]', "a JSON", 1),
        ("# compose\n\nservices:\n  a:\n    image: nginx\n", "a YAML", 3),
        ("---\n- a: 1\n", "a YAML", 1),
        ("[service]\nname = 1\n", "a TOML or INI", 1),
        ('title = "x"\n\n[service]\nname = 1\n', "a TOML or INI", 1),
    ],
)
def test_a_file_of_another_language_is_called_so_once(text: str, kind: str, line: int) -> None:
    found = only(text)
    assert (found.code, found.span.line) == ("TS0033", line)
    assert found.message == f"this is {kind} file, and not TDL"
    with pytest.raises(TdlError) as caught:
        compile_source(text)
    assert caught.value.diagnostics == (found,)


@pytest.mark.parametrize("text", ["x = 1\nbridge s1\n", "[\nbridge s1", "-- x", "a:b c"])
def test_a_slip_in_the_first_line_is_no_other_language(text: str) -> None:
    assert "TS0033" not in [found.code for found in parse_partial(text).diagnostics]


def test_a_stray_control_character_is_still_told_with_its_place() -> None:
    (found,) = parse_partial("bridge s1\nbridge s2 \x01\n").diagnostics
    assert (found.code, found.span.line, found.span.col) == ("TS0002", 2, 11)


def test_a_run_of_control_characters_is_one_finding() -> None:
    text = "bridge s1 # " + "a" * 200 + "\nbridge s2 " + "\x01\x02\x03" * 5 + "\n"
    (found,) = parse_partial(text).diagnostics
    assert found.message == "15 control characters, from U+0001 on"
    assert (found.span.line, found.span.col, found.span.end_col) == (2, 11, 26)


def test_control_characters_cost_linear_time() -> None:
    """Behind so much text that the file counts as one."""
    program = (
        "from tdl.parser import parse_partial\n"
        "comments = '# nothing\\n' * 10_000\n"
        "few = parse_partial(comments + 'bridge s ' + 'a\\x01' * 9_000 + 'a' * 5_000_000)\n"
        "assert few.whole and len(few.diagnostics) == 9_001\n"
        "many = parse_partial(comments + 'bridge s ' + 'a\\x01' * 2_000_000)\n"
        "assert not many.whole and len(many.diagnostics) == 10_001\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "code"),
    [("quit", "TS0305"), ("heal", "TS0306"), ("a--s2 leave", "TS0202"), ("b7 crash", "TS0204")],
)
def test_many_statements_that_are_wrong_in_one_way_cost_linear_work(line: str, code: str) -> None:
    """Nothing compares each of them with all others, or with all links."""

    def lines_run(size: int) -> int:
        text = "service a\nbridges s1 s2\nlink a--s1\nlink s1--s2\n"
        text += "".join(f"bridge b{i}\nlink b{i}--s1\n" for i in range(size))
        text += "".join(f"at {i}ms {line}\n" for i in range(size))
        count = 0

        def trace(_frame: FrameType, event: str, _what: object) -> Any:
            nonlocal count
            count += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            compile_source(text)
        except TdlError as error:
            found = error.diagnostics
        finally:
            sys.settrace(before)
        assert sum(one.code == code for one in found) >= size - 1
        return count

    lines_run(10)  # the first compilation of a process reads the grammar
    assert lines_run(1600) < 2.2 * lines_run(800)


def test_the_size_of_a_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_FILE_BYTES", 1 << 20)
    line = b"bridge s1 # and so on\n"
    assert parse_partial(line * ((1 << 20) // len(line))).whole
    found = only(line * ((1 << 20) // len(line) + 1))
    assert (found.code, found.message) == ("TS0030", "the file has more than 1 MiB")


def test_reading_ends_at_the_first_bridge_too_many() -> None:
    found = only("".join(f"bridge b{i}\n" for i in range(bounds.MAX_BRIDGES + 1000)) + "nonsense\n")
    assert (found.code, found.span.line) == ("TS0031", bounds.MAX_BRIDGES + 1)
    assert "more than 65,535 bridges" in found.message


def test_the_first_name_too_many_of_a_list_is_shown() -> None:
    names = [f"b{i}" for i in range(bounds.MAX_BRIDGES + 5)]
    found = only("\nbridges " + " ".join(names) + "\n")
    column = len("bridges " + " ".join(names[: bounds.MAX_BRIDGES])) + 2
    assert (found.code, found.span.line, found.span.col) == ("TS0031", 2, column)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (ast.ServiceStatement, lambda i: f"service a{i}\n"),
        (ast.LinkStatement, lambda i: f"link a--b{i}\n"),
        (ast.Dynamic, lambda i: f"at {i}s a leave and b leave\n"),
    ],
)
def test_so_are_services_links_and_events(
    kind: type, make: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(parser._MOST, kind, (10, "of these"))
    each = 2 if kind is ast.Dynamic else 1
    assert parse_partial("".join(make(i) for i in range(10 // each))).whole
    found = only("".join(make(i) for i in range(500)) + "nonsense\n")
    assert (found.code, found.span.line) == ("TS0031", 10 // each + 1)


def test_a_statement_has_an_end() -> None:
    found = only("bridges " + "b " * (bounds.MAX_WORDS + 9) + "\nnonsense\n")
    assert (found.code, found.span.line, found.span.col) == ("TS0031", 1, 7 + 2 * bounds.MAX_WORDS)


@pytest.mark.parametrize("text", ["?\n" * 50_000, "? " * 50_000, "nonsense\n" * 50_000])
def test_so_many_errors_end_the_reading(text: str) -> None:
    partial = parse_partial(text)
    assert not partial.whole
    assert len(partial.diagnostics) == bounds.MAX_ERRORS + 1
    assert partial.diagnostics[-1].code == "TS0032"


def test_warnings_do_not_end_it_so_soon() -> None:
    text = "bridge s1 tags=x" + ";x" * (2 * bounds.MAX_ERRORS)
    partial = parse_partial(text)
    assert not partial.failed
    assert len(partial.diagnostics) == 2 * bounds.MAX_ERRORS


def test_lines_are_read_one_after_the_other() -> None:
    sink = Sink()
    lines = logical_lines("bridge s1\n" * 3 + "?\n", sink)
    assert next(lines).tokens[1].text == "s1"
    assert sink.found == []
    assert len(list(lines)) == 3
    assert len(sink.found) == 1


def test_a_service_may_listen_on_every_port() -> None:
    ports = ";".join(map(str, range(1, 65536)))
    (service,) = parse_partial(f"service a port={ports}").file.statements
    assert isinstance(service, ast.ServiceStatement)
    assert len(service.ports) == 65535


def test_shown_are_errors_before_warnings_in_order_of_place() -> None:
    place = [ast.Span(line, 1, line, 2) for line in range(1, 9)]
    found = [
        Diagnostic(Severity.WARNING if at.line < 5 else Severity.ERROR, "TS0901", at, "m")
        for at in place
    ]
    assert [item.span.line for item in presentation.first(found, 6)] == [1, 2, 5, 6, 7, 8]
    assert [item.span.line for item in presentation.first(found, 2)] == [5, 6]
    assert presentation.first(found, 0) == tuple(found)
    assert presentation.rest(found, presentation.first(found, 6)) == "2 more warnings"
    assert presentation.rest(found, presentation.first(found, 3)) == "1 more error, 4 more warnings"
    assert presentation.rest(found, found) == ""


def test_a_line_that_is_shown_costs_no_list_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a huge file has behind the last line with an error is not cut into lines."""
    text = b"# x\n" * 200_000
    monkeypatch.setattr(decoding, "MAX_FILE_BYTES", len(text) - 1)
    tracemalloc.start()
    try:
        with pytest.raises(TdlError) as caught:
            compile_source(text)
        shown = presentation.render_text(caught.value.diagnostics, "f", text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "f:1:1: error TS0030" in shown
    assert peak < 8 * len(text)  # a list of its lines takes twice that
