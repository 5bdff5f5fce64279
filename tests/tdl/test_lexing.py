"""Lines, comments, continuation, brackets, strings, dashes and names."""

from __future__ import annotations

import pytest

from tdl import ast
from tdl.diagnostics import Sink
from tdl.tokens.lexer import logical_lines
from tests.tdl.helpers import codes, meaning, one, statements


def test_line_ends_of_all_systems() -> None:
    lines = ["service a img=x", "", "bridge s1 # core", "link a--s1 latency=5"]
    expected = meaning("\n".join(lines))
    assert meaning("\r\n".join(lines)) == expected
    assert meaning("\r".join(lines)) == expected
    assert meaning("\ufeff" + "\n".join(lines) + "\n\n") == expected
    assert meaning("\n".join("\t " + line + " \t" for line in lines)) == expected


def test_places_survive_a_byte_order_mark_and_windows_line_ends() -> None:
    first, second = statements("\ufeffbridge s1\r\n  bridge s2")
    assert first.span == ast.Span(1, 1, 1, 10)
    assert second.span == ast.Span(2, 3, 2, 12)


def test_a_backslash_continues_and_brackets_span_lines() -> None:
    text = "service a img=x \\\n  replicas=3 \\  \n  command=[ # why\n   'x',\n\n   'y'\n  ] tags=t"
    assert meaning(text) == meaning("service a img=x replicas=3 command=['x', 'y'] tags=t")
    assert one(text).span == ast.Span(1, 1, 7, 11)


def test_a_comment_may_touch_what_it_follows() -> None:
    assert meaning("at 130s join #power outage\nat 5s quit#end") == meaning(
        "at 130s join\nat 5s quit"
    )
    assert meaning('service a exec="echo #1"')[0].exec == "echo #1"


@pytest.mark.parametrize("dash", ["--", "—", "–", " -- ", " — "])
def test_link_dashes(dash: str) -> None:
    link = one(f"link front-end{dash}s-1 latency=5")
    assert (link.a.text, link.b.text) == ("front-end", "s-1")


def test_arrows_and_instances() -> None:
    selector = one("at 5s web-1.3->s1 leave").selector
    assert (selector.a.name.text, selector.a.index) == ("web-1", 3)
    assert (selector.b.name.text, selector.b.index) == ("s1", None)
    assert selector.directed
    assert not one("at 5s web-1.3--s1 leave").selector.directed


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"a b"', "a b"),
        ("'a b'", "a b"),
        ("'say \"hi\"'", 'say "hi"'),
        (r'"say \"hi\" \\ \t\n"', 'say "hi" \\ \t\n'),
        ("“a b”", "a b"),
        ("‘a b’", "a b"),
        ("redis-server", "redis-server"),
        ("/usr/bin/env", "/usr/bin/env"),
    ],
)
def test_strings(written: str, meant: str) -> None:
    assert one(f"service a exec={written} replicas=2").exec == meant


def test_environment_values() -> None:
    service = one("service a env=A:1;URL:http://x:80/?q=1;E:;S:\"a;b #c\" ; T:'x' port=80")
    assert service.env == (
        ("A", "1"),
        ("URL", "http://x:80/?q=1"),
        ("E", ""),
        ("S", "a;b #c"),
        ("T", "x"),
    )
    assert service.ports == (80,)


def test_images() -> None:
    image = "registry.example:5000/team/app:2.0@sha256:0123abc"
    assert one(f"service a img={image} tags=x").image == image
    assert one(f"bootstrapper {image}").image == image
    assert one('service a img="nginx:1.27"').image == "nginx:1.27"


def test_spaces_around_the_equals_sign() -> None:
    assert meaning("link a--b latency = 5  up= 1Mb") == meaning("link a--b latency=5 up=1Mb")


def test_a_missing_bracket_costs_one_statement_only() -> None:
    text = "service a command=['x'\nservice b replicas=0\nbridge s1"
    assert codes(text) == ["TS0004", "TS0113"]


def test_words_of_statements_may_stand_alone_in_brackets() -> None:
    assert one("service a command=[\n link,\n at\n ]").command == ("link", "at")


def test_names_in_the_tree_have_their_own_places() -> None:
    text = "service web img=x tags=a b;c\nlink web--s1 tags=t\nat 5s web.3->s1 set latency=5"
    lines = text.split("\n")

    def written(node: ast.Name) -> str:
        return lines[node.span.line - 1][node.span.col - 1 : node.span.end_col - 1]

    service, link, event = statements(text)
    assert isinstance(service, ast.ServiceStatement)
    assert isinstance(link, ast.LinkStatement)
    assert isinstance(event, ast.Dynamic)
    assert isinstance(event.selector, ast.LinkSelector)
    assert isinstance(event.action, ast.Set)
    names = [service.name, *service.tags, link.a, link.b, *link.tags, event.selector.a.name]
    names += [event.selector.b.name, event.action.assignments[0].prop]
    assert [written(name) for name in names] == [name.text for name in names]


def test_what_stands_behind_a_brace_is_read_as_on_a_line_of_its_own() -> None:
    head = 'when log p "n" {'
    for first in ("w:it--s leave", "p.0 crash", "w:p.0--s set latency=1ms"):
        apart, together = Sink(), Sink()
        expected = list(logical_lines(f"{head}\n{first} }}\n", apart))
        found = list(logical_lines(f"{head} {first} }}\n", together))
        assert apart.found == together.found == []
        words = [[(one.type, one.text) for one in line.tokens] for line in found]
        assert words == [[(one.type, one.text) for one in line.tokens] for line in expected]
