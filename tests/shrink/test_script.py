"""Statements are taken out of a text, and everything else stays as it was written."""

from __future__ import annotations

import pytest

from compiler.pipeline import compile_source
from tdl.preprocess.includes import NO_TEXTS
from tstorm.shrink.script import Script, read

TEXT = """\
# Of the bank
service a img=x exec="sleep 9"
bridges s t
link a--s latency=1ms   # äöü
link s--t latency=1ms
for i in 1..2 {
    # twice
    at ${i}s a--s set loss=1%
}
at 5s s--t leave and s--t join   # both
from 6s to 8s s--t \\
    flap 1s

at 9s quit   # the end
"""
SECOND = 10**9


def script(text: str = TEXT) -> Script:
    return read(text.encode(), NO_TEXTS)


def test_statements_are_found_where_they_stand() -> None:
    found = script()
    assert [one.begin for one in found.events] == [(8, 5), (10, 1), (11, 1)]
    assert found.end_ns == 9 * SECOND
    assert found.keeping(found.events) == TEXT


def test_lines_go_with_their_comments_and_nothing_else_changes() -> None:
    found = script()
    loop, chain, flap = found.events
    without_chain = TEXT.replace("at 5s s--t leave and s--t join   # both\n", "")
    assert found.keeping([loop, flap]) == without_chain
    without_flap = TEXT.replace("from 6s to 8s s--t \\\n    flap 1s\n", "")
    assert found.keeping([loop, chain]) == without_flap
    begin, end = TEXT.index("for i"), TEXT.index("at 5s")
    assert found.keeping([chain, flap]) == TEXT[:begin] + TEXT[end:], "an empty loop goes, too"


def test_a_chain_on_several_lines_is_one_statement() -> None:
    found = script(TEXT.replace("leave and s--t", "leave and \\\n    s--t"))
    assert [one.begin for one in found.events] == [(8, 5), (10, 1), (12, 1)]
    assert found.keeping([]) == script().keeping([])


def test_every_part_compiles() -> None:
    found = script()
    for kept in ((), found.events[:1], found.events[1:], found.events[:2]):
        compile_source(found.keeping(kept))


def test_the_end_can_be_earlier() -> None:
    found = script()
    assert found.keeping(found.events, 8_500_000_000) == TEXT.replace("at 9s quit", "at 8.5s quit")


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("from 2s to 6035ms a--s set loss=1%", "from 2s to 5.9s a--s set loss=1%"),
        ("from 2s to 6035ms a pause", "from 2s to 5.9s a pause"),
        ("from 2s to 5s a pause", "from 2s to 5s a pause"),
        ("at 5s a restart after 1s", "at 5s a crash"),
        ("at 5s a restart after 500ms", "at 5s a restart after 500ms"),
        ("at 6s a join", ""),
    ],
)
def test_what_an_earlier_end_leaves_of_a_statement(statement: str, left: str) -> None:
    text = "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    found = read(f"{text}{statement}\nat 9s quit\n".encode())
    kept = found.keeping(found.events, 5_900_000_000)
    assert kept == f"{text}{left}{left and chr(10)}at 5.9s quit\n"
    if left:
        compiled = compile_source(kept)
        assert not [one for one in compiled.diagnostics if one.code == "TS0904"]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (TEXT.replace("at 9s quit", "at 9s a leave and quit"), 3),
        (TEXT.replace("at 9s quit   # the end\n", ""), 3),
        ("service a img=x\nbridge s\nlink a--s\nfor i in 3..3 {\nat ${i}s quit\n}\n", 0),
    ],
)
def test_an_end_that_stands_with_others_is_left_alone(text: str, events: int) -> None:
    found = script(text)
    assert found.quit is None
    assert len(found.events) == events
    assert found.keeping(found.events, SECOND) == text


EXPECTING = """\
param wait = 5s
service a img=x exec="sleep 9"
service b img=x
bridge s
link a--s latency=1ms
link b--s latency=1ms
at $wait a--s set latency=9ms
expect rtt a.0 b.0 < 5ms from 1s to 8s
at 9s quit
"""


def test_what_is_expected_and_parameters_stay() -> None:
    found = read(EXPECTING.encode(), NO_TEXTS, {"wait": "6s"})
    assert [one.begin[0] for one in found.events] == [7]
    left = found.keeping(())
    assert left == EXPECTING.replace("at $wait a--s set latency=9ms\n", "")
    compile_source(left, params={"wait": "6s"})
