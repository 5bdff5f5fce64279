"""include: what it stands for, where errors are, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tdl.parser import parse, parse_partial
from tdl.preprocess.includes import NO_TEXTS, NoTextError
from tdl.text_layout import format_text
from tests.tdl.helpers import meaning, unspanned


class Files:
    """Texts by path."""

    def __init__(self, texts: Mapping[str, str | bytes]) -> None:
        self._texts = texts

    def text(self, path: str) -> bytes:
        if path not in self._texts:
            raise NoTextError(f"there is no file {path!r}")
        found = self._texts[path]
        return found if isinstance(found, bytes) else found.encode()

    translated = NO_TEXTS.translated


def problems(text: str, **texts: str | bytes) -> list[tuple[str, str, int, int]]:
    found = parse_partial(text, Files({f"{name}.tdl": body for name, body in texts.items()}))
    return [(d.code, d.span.file, d.span.line, d.span.col) for d in found.diagnostics]


TREE = {
    "net/core.tdl": 'include "wan.tdl"\nbridges dc[0..1] core\ninclude "../all.tdl"\n',
    "net/wan.tdl": "let wan = 20ms\n# nothing else\n",
    "all.tdl": "for i in 0..1 { link dc$i--core latency=$wan }\n",
    "../lib/end.tdl": "at $end quit",
}
MAIN = 'let end = 9s\ninclude "net/core.tdl"  # the network\nbridge $n\ninclude "../lib/end.tdl"\n'


def test_the_text_of_a_file_stands_in_place_of_the_line() -> None:
    partial = parse_partial("let n = x\n" + MAIN, Files(TREE))
    assert not partial.failed
    plain = (
        "bridges dc0 dc1 core\nlink dc0--core latency=20\nlink dc1--core latency=20\nbridge x\n"
        "at 9s quit\n"
    )
    assert unspanned(partial.file.statements) == meaning(plain)
    assert {path: data.decode() for path, data in partial.includes.items()} == TREE
    places = [statement.span.place for statement in partial.file.statements]
    assert places == [
        ("net/core.tdl", 2),
        ("all.tdl", 1),
        ("all.tdl", 1),
        ("", 4),
        ("../lib/end.tdl", 1),
    ]


def test_a_file_may_be_included_in_each_round_of_a_loop() -> None:
    text = 'for i in 0..1 {\n  include "s$i.tdl"\n  include "all.tdl"\n}\n'
    texts = Files({"s0.tdl": "bridge a", "s1.tdl": "bridge b", "all.tdl": "bridge c$i"})
    assert unspanned(parse(text, texts=texts)[0].statements) == meaning(
        "bridge a\nbridge c0\nbridge b\nbridge c1"
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("include", "TS0150"),
        ('include "a" "b"', "TS0150"),
        ('include "/etc/a.tdl"', "TS0150"),
        ('include ""', "TS0150"),
        ('include ".."', "TS0150"),
        (r'include "a\nb"', "TS0150"),
        (f'include "{"x" * 90}"', "TS0150"),
        ('include "nowhere.tdl"', "TS0151"),
        ("include nowhere.tdl", "TS0151"),
    ],
)
def test_what_names_no_file_is_an_error_at_its_place(line: str, code: str) -> None:
    assert [found[:3] for found in problems(f"bridge a\n{line}\n")] == [(code, "", 2)]


def test_a_text_without_a_folder_includes_nothing() -> None:
    (only,) = parse_partial('include "a.tdl"').diagnostics
    assert (only.code, only.span.col, only.span.end_col) == ("TS0151", 9, 16)


def test_a_file_that_includes_itself_is_refused_where_it_does() -> None:
    found = problems('include "a.tdl"', a='bridge x\ninclude "b.tdl"', b='\ninclude "a.tdl"')
    assert found == [("TS0152", "b.tdl", 2, 9)]
    assert problems('include "a.tdl"', a='include "./a.tdl"') == [("TS0152", "a.tdl", 1, 9)]


def test_files_are_not_nested_without_end() -> None:
    texts = {f"f{n}": f'include "f{n + 1}.tdl"' for n in range(40)}
    assert problems('include "f0.tdl"', **texts) == [("TS0153", "f15.tdl", 1, 9)]


def test_all_that_is_included_has_an_end() -> None:
    large = b"#" * (9 << 20)
    text = 'for i in 0..9 {\ninclude "a.tdl"\n}'
    assert problems(text, a=large) == [("TS0153", "", 2, 9)]


def test_errors_in_a_file_stand_there() -> None:
    broken = "bridge s1\nlink s1--s2 latncy=5\n}\nfor k in 0..1 {\n"
    assert problems('include "a.tdl"\nlink x', a=broken) == [
        ("TS0010", "", 2, 7),
        ("TS0012", "a.tdl", 2, 13),
        ("TS0144", "a.tdl", 3, 1),
        ("TS0144", "a.tdl", 4, 15),
    ]
    assert problems('include "a.tdl"', a=b"bridge a\n# \xff") == [("TS0001", "a.tdl", 2, 3)]
    assert problems('include "a.tdl"', a=b"\x7fELF\0\0") == [("TS0029", "a.tdl", 1, 1)]


def test_what_a_missing_file_may_define_is_not_missed() -> None:
    assert [code for code, *_ in problems('include "no.tdl"\nbridge s$i')] == ["TS0151"]


def test_a_variable_has_one_value_in_all_files() -> None:
    partial = parse_partial('include "a.tdl"\nlet n = 2', Files({"a.tdl": "\nlet n = 1"}))
    (only,) = partial.diagnostics
    assert only.message == "'n' is defined already, on line 2 of a.tdl"


def test_the_canonical_form_keeps_the_line() -> None:
    text = (
        'include   net.tdl # here\nfor i in 0..1 {\ninclude "s$i.tdl"\n}\nservice a exec="$b  c"\n'
    )
    tidy = 'include "net.tdl"  # here\nfor i in 0..1 {\n    include "s$i.tdl"\n}\n'
    assert format_text(text) == tidy + 'service a exec="$b  c"\n'
    assert format_text(format_text(text)) == format_text(text)


def test_after_too_much_nothing_is_read() -> None:
    """Sixteen files of a hundred lines each kept a check busy for minutes."""
    lines = {f"f{n}": f'include "f{n + 1}.tdl"\n' * 100 for n in range(14)}
    found = problems('include "f0.tdl"\n' * 100 + "at 5x quit", **lines, f14="# nothing")
    assert [code for code, *_ in found] == ["TS0153"]
    text = "for i in 0..99 {\nfor j in 0..999 {\n" + 'include "a.tdl"\n}\n}\n'
    assert [code for code, *_ in problems(text, a="")] == ["TS0153"]
