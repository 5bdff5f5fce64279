"""The expected diagnostics stand on the guilty lines of errors/*.tdl.

`#! CODE text` at the end of a line expects one diagnostic on that line with that code, and the text
in its message or hint; several on a line follow one another. Nothing else may be reported.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tdl.codes.catalogue import CODES
from tdl.diagnostics import TdlError
from tdl.parser import parse_partial
from tests.tdl.helpers import found

FILES = sorted((Path(__file__).parent / "errors").glob("*.tdl"))
EXPECTED = re.compile(r"#! (TS\d{4}) ?((?:(?!#!).)*)")


def expectations(text: str) -> list[tuple[int, str, str]]:
    return [
        (number, match[1], match[2].strip())
        for number, line in enumerate(text.split("\n"), 1)
        for match in EXPECTED.finditer(line)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_guilty_line_gets_its_message_and_no_other_line_any(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    expected = expectations(text)
    assert expected
    reported = list(parse_partial(text).diagnostics)
    for line, code, fragment in expected:
        match = next(
            (
                d
                for d in reported
                if d.span.line == line and d.code == code and fragment in f"{d.message} {d.hint}"
            ),
            None,
        )
        there = [(d.code, d.message, d.hint) for d in reported if d.span.line == line]
        assert match is not None, f"line {line}: no {code} with {fragment!r} among {there}"
        reported.remove(match)
    assert reported == []


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("link a--b up=1GB", (1, 14, 1, 17)),
        ("link a--b latncy=5", (1, 11, 1, 17)),
        ("link a--b latency=5 jitter=6", (1, 21, 1, 29)),
        ("\n  at 30 quit", (2, 6, 2, 8)),
        ("bridge s1\nlink a--", (2, 9, 2, 10)),
        ("from 5s to 3s a churn 1", (1, 6, 1, 14)),
        ("link a-b latency=5", (1, 6, 1, 9)),
        ("link a--b latency=5 ms", (1, 19, 1, 23)),
        ('service é exec="a"', (1, 9, 1, 10)),
        ('service a exec="\\d"', (1, 17, 1, 19)),
        ("service a \\\n  replicas=x", (2, 12, 2, 13)),
    ],
)
def test_the_carets_cover_what_is_wrong(text: str, span: tuple[int, ...]) -> None:
    (only,) = found(text)
    place = only.span
    assert (place.line, place.col, place.end_line, place.end_col) == span


@pytest.mark.parametrize("end", ["\\\n", "\\\r\n", "\\ \t\r"])
def test_a_string_over_several_lines_is_one_error_that_says_so(end: str) -> None:
    text = f'service a exec="sh {end} -c {end} x" replicas=y {end} cpu=z\nservice b replicas=0'
    first, second = found(text)
    assert (first.code, first.span.line, first.span.col) == ("TS0003", 1, 16)
    assert first.hint is not None and "write it on one line" in first.hint
    assert (second.code, second.span.line, second.span.col) == ("TS0113", 5, 11)


def test_a_string_that_no_line_closes_is_said_to_have_no_end() -> None:
    (only,) = found('service a exec="sh \\\n -c x')
    assert (only.code, only.message) == ("TS0003", "this string has no end")


def test_errors_of_all_statements_come_in_order_of_place() -> None:
    reported = found("link a--b up=1GB\nservce x\nat 5s a leave 2.5\nlink a--b loss=5")
    assert [(d.span.line, d.code) for d in reported] == [
        (1, "TS0023"),
        (2, "TS0008"),
        (3, "TS0028"),
        (4, "TS0106"),
    ]


def test_a_partial_tree_keeps_what_is_right_and_tells_what_broken_lines_mention() -> None:
    long = "-".join("abcdefghij")
    partial = parse_partial(f"service a\nservice b replicas=0\nbridge s1\nlink x-y-z {long}\n")
    assert partial.failed
    assert len(partial.file.statements) == 2
    assert {"b", "x", "y-z", "x-y", long} <= partial.mentioned
    assert "a" not in partial.mentioned


def test_bytes_that_are_not_utf8_are_placed() -> None:
    (only,) = found(b"bridge s1\n# caf\xe9\n")
    assert (only.code, only.span.line, only.span.col) == ("TS0001", 2, 6)


def test_errors_of_the_syntax_do_not_hide_those_of_the_model() -> None:
    text = (
        "service a\nservice b\nservice c replicas=x\nbridge s1\n"
        "link a--s1\nlink b-s1\nlink c--s1 latency=5\nlink a--q\n"
        "at 5s b leave\nat 6s d leave\nat 7s c.4 crash\nat 8s s1 crash\nat 9s a lave\n"
    )
    with pytest.raises(TdlError) as caught:
        compile_source(text)
    # b has no link and c no fifth instance, but lines 3 and 6 may be the reason.
    assert [(d.span.line, d.code) for d in caught.value.diagnostics] == [
        (3, "TS0015"),
        (6, "TS0011"),
        (8, "TS0102"),
        (10, "TS0201"),
        (12, "TS0204"),
        (13, "TS0018"),
    ]


def test_every_reported_code_is_registered() -> None:
    for path in FILES:
        for diagnostic in found(path.read_text(encoding="utf-8")):
            assert diagnostic.code in CODES


def test_a_string_without_an_end_takes_no_block_from_its_when() -> None:
    text = 'service db img=x\nwhen log db "leader every {\n  it crash\n}\nat 9s quit\n'
    (only,) = parse_partial(text).diagnostics
    assert (only.code, only.span.line, only.span.col) == ("TS0003", 2, 13)
