"""What `expect` statements mean, and where their words stay names; parameters."""

from __future__ import annotations

import pytest

from tdl.formatter import format_statement
from tdl.parser import parse_partial
from tdl.text_layout import format_text
from tests.tdl.helpers import codes, meaning, one


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("expect rtt client server<60ms at 5s within 2s", "within 2s after 5s"),
        ("expect rtt median client.* server.0 <= 60ms within 2s after 0s", "within 2s"),
        ("expect unreachable a;b.1 * to 1m", "a;b.1 * to 1m"),
        ("expect log expect.* 'x' # why", 'expect log expect "x"'),
        ("expect drivers a '/opt/antithesis/test/v1' from 1s to 60s", "drivers a from 1s to 1m"),
    ],
)
def test_one_spelling(written: str, canonical: str) -> None:
    text = format_statement(one(written))
    assert canonical in text
    assert meaning(text) == meaning(written)
    assert format_text(written).partition("  #")[0].strip() == text


@pytest.mark.parametrize(
    "text",
    [
        "expect churn 3",
        "param churn 3",
        "expect--s1 flap 5s",
        "at 5s expect;param crash",
        "service within",
        'service a exec="b" expect=success',
        "expect rtt within of < 5ms within 5s",
        'expect log on "x"',
        "expect exit within 0",
        "expect \\\n churn 3",
        "expect loss a b < 1% within \\\n  5s",
        "expect loss rtt valid < 1%",
    ],
)
def test_words_of_expectations_are_names_elsewhere(text: str) -> None:
    assert codes(text) == []
    assert meaning(format_text(text)) == meaning(text)


def test_variables_stand_for_parts_of_an_expectation() -> None:
    text = """let bound = "< 90% of plan"
let who = "db.*"
let when = "within 5s after 2s"
for i in 0..1 { expect rtt p99 $who c.$i $bound $when }
"""
    wanted = "".join(f"expect rtt p99 db c.{i} < 90% of plan within 5s after 2s\n" for i in (0, 1))
    assert meaning(text) == meaning(wanted)


def test_a_param_has_the_value_that_is_given() -> None:
    text = "param n = 2\nlet m = ${n}0\nservice a replicas=$m\n"
    assert meaning(text) == meaning("service a replicas=20")
    given = parse_partial(text, params={"n": "3", "other": "x"})
    assert given.params == {"n": "3"}
    assert format_statement(given.file.statements[0]) == "service a replicas=30"
    assert format_text("param  n=2 # c\n") == "param n = 2  # c\n"


def test_a_param_may_have_the_name_of_an_action() -> None:
    assert meaning("param pause = 1\nparam churn=2\nservice a$pause replicas=$churn") == meaning(
        "service a1 replicas=2"
    )


def test_params_have_limits() -> None:
    many = "".join(f"param p{i} = 1\n" for i in range(101))
    assert codes(many) == ["TS0156"]
    partial = parse_partial("param n = 1\n", params={"n": "x" * 1001})
    assert [found.code for found in partial.diagnostics] == ["TS0156"]


def test_what_a_pattern_may_mean_in_another_python_is_nobodys_affair() -> None:
    """Warnings of `re` are errors in tests, and would be lines on a user's terminal."""
    assert codes('expect log a "[[a]"') == []
