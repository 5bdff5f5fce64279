"""Trees, their canonical text, and back."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tdl import ast
from tdl.formatter import format_statement
from tdl.text_layout import format_text
from tests.tdl import trees
from tests.tdl.helpers import meaning

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
comments = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=12
).map(lambda text: "# " + text)


@RELAXED
@given(trees.statements)
def test_a_statement_reads_back_as_itself(statement: ast.Statement) -> None:
    text = format_statement(statement)
    assert "\n" not in text
    assert meaning(text) == (statement,)


@RELAXED
@given(st.lists(st.tuples(trees.statements, st.none() | comments), max_size=6))
def test_formatting_keeps_the_meaning_and_the_comments(
    lines: list[tuple[ast.Statement, str | None]],
) -> None:
    text = "".join(
        f"{format_statement(statement)}  {comment or ''}\r\n" for statement, comment in lines
    )
    formatted = format_text(text)
    assert meaning(formatted) == tuple(statement for statement, _ in lines)
    assert format_text(formatted) == formatted
    for _, comment in lines:
        assert comment is None or comment.rstrip() in formatted


@RELAXED
@given(st.lists(trees.whens(), min_size=1, max_size=2))
def test_a_reaction_reads_back_as_itself(whens: list[ast.When]) -> None:
    text = "".join(f"{format_statement(when)}\n" for when in whens)
    assert meaning(text) == tuple(whens)
    formatted = format_text(text)
    assert meaning(formatted) == tuple(whens)
    assert format_text(formatted) == formatted
    in_a_loop = f"for no_such_name in 1..2 {{\n{text}}}\n"
    assert meaning(format_text(in_a_loop)) == tuple(whens) * 2


def test_bounds_of_a_hunt_have_a_line_each() -> None:
    text = (
        "hunt { partition any 2;;crash db.* db.1   3; crash db  2 power\n"
        "latency 9..0.2s a;loss 1%;clock ±1s\n"
        "# why\nfor i in 0..1 { kill db.$i }\n drift ±50ppm;at most 4; lasting 0..5s;"
        "quiet 5s at the end}"
    )
    formatted = format_text(text)
    assert formatted == (
        "hunt {\n    partition any 2\n    crash db db.1 3\n    crash db 2 power\n"
        "    latency 9ms..200ms a\n    loss 0%..1%\n    clock ±1s\n    # why\n"
        "    for i in 0..1 {\n        kill db.$i\n    }\n"
        "    drift ±50ppm\n    at most 4\n    lasting 0s..5s\n    quiet 5s at the end\n}\n"
    )
    assert meaning(formatted) == meaning(text)
    (hunt,) = meaning(text)
    assert meaning(format_statement(hunt)) == (hunt,)


@RELAXED
@given(st.lists(trees.events(), min_size=1, max_size=4))
def test_the_text_of_an_event_is_the_same_for_equal_events_only(events: list[ast.Dynamic]) -> None:
    texts = [format_statement(event) for event in events]
    for i, event in enumerate(events):
        for j, other in enumerate(events):
            assert (texts[i] == texts[j]) == (event == other)


def test_a_reaction_with_variables_keeps_its_lines_as_they_are_written() -> None:
    text = """\
for i in 0..1 {
  when ready db.$i { db.$i--s1 set   loss=$i% }
  when exit db.1 {
      db.$i crash
      at +5s   it   crash  # gone
  }
}
"""
    formatted = format_text(text)
    assert meaning(formatted) == meaning(text)
    assert format_text(formatted) == formatted
    assert "        at +5s it crash  # gone\n" in formatted
