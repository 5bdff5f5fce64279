"""Any value through the serializer, and through templates, comes back from YAML as it was."""

from __future__ import annotations

import io
import re
from enum import StrEnum
from typing import Any

import jinja2
import pytest
import ruamel.yaml
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifests.refusal import ManifestError
from manifests.templating import TEMPLATES, environment, serialize

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)


class Word(StrEnum):
    YES = "yes"


def older(text: str) -> Any:
    """As YAML 1.1."""
    return yaml.safe_load(text)


def newer(text: str) -> Any:
    """As YAML 1.2."""
    return ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))


@settings(deadline=None)
@given(VALUES)
@example("no")
@example("1e3")
@example("12:30:45")
@example("\u2028\u2029\x85\ufeff\U0001f600\x7f")
@example({"": [], "~": {}, "<<": {"a": 1}, "=": "="})
@example({"k" * 3000: {"\U0001f600" * 200: [{"\n" * 900: 1}]}})
@example(["{{ x }}", "{% raw %}", "#", " # x", "---\n- a", "...", "*a", "&a", "!tag", "%YAML 9"])
@example(-(2**64))
def test_round_trip(value: Any) -> None:
    text = serialize(value)
    assert older(text) == value
    assert newer(text) == value
    assert text.isascii()
    assert text.isprintable()
    in_place = f"a:\n  - {text}  # comment\n  - b: {text}\n"
    assert older(in_place) == newer(in_place) == {"a": [value, {"b": value}]}


@settings(deadline=None)
@given(VALUES)
def test_types_stay(value: Any) -> None:
    """1 and True are equal in Python, and so are 1 and 1.0."""
    assert repr(older(serialize(value))) == repr(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\0b", "a NUL character"),
        ("\ud800", r"half a surrogate pair \(U\+D800\)"),
        ("\udfff", r"half a surrogate pair \(U\+DFFF\)"),
        ("\ude00\ud83d", "half a surrogate pair"),
    ],
)
def test_what_no_manifest_can_hold_is_refused(text: str, reason: str) -> None:
    for value in (text, [text], {text: 1}, {"a": {"b": [text]}}):
        with pytest.raises(ManifestError, match=reason):
            serialize(value)


@pytest.mark.parametrize("value", [None, 1.5, b"x", {1: 2}, {"a": None}, {"a"}, object()])
def test_other_types_are_our_bug(value: object) -> None:
    with pytest.raises(TypeError):
        serialize(value)


def test_kinds_of_strings_are_strings() -> None:
    from markupsafe import Markup

    assert serialize(Word.YES) == '"yes"'
    assert serialize(Markup('<b>"')) == '"<b>\\""'
    assert serialize((1, True)) == "[1, true]"


@settings(deadline=None)
@given(TEXTS)
def test_every_expression_of_a_template_is_serialized(text: str) -> None:
    loop = "{% for y in [x] %}\nd: {{ y }}\n{% endfor %}\n"
    source = "a: {{ x }}\nb: {{ x ~ '!' }}\nc: {{ [x, 7 > 3] }}\n" + loop
    found = environment().from_string(source).render(x=text)
    wanted = {"a": text, "b": f"{text}!", "c": [text, True], "d": text}
    assert older(found) == newer(found) == wanted


def test_constants_are_serialized_too() -> None:
    assert environment().from_string("{{ 'no' }} {{ 1 }} {{ true }}").render() == '"no" 1 true'


@pytest.mark.parametrize("source", ["{{ missing }}", "{{ x.missing }}", "{{ [missing] }}"])
def test_what_is_not_defined_is_an_error(source: str) -> None:
    with pytest.raises((jinja2.UndefinedError, TypeError)):
        environment().from_string(source).render(x={})


SOURCES = sorted(TEMPLATES.rglob("*.j2"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_templates_quote_nothing_by_hand(path: Any) -> None:
    source = path.read_text(encoding="ascii")
    expressions = re.findall(r".?\{\{.*?\}\}.?", source)
    assert source
    assert [found for found in expressions if found[0] in "'\"" or found[-1] in "'\""] == []
    assert not re.search(r"\|\s*(safe|tojson|indent|e|escape|string|quote)\b", source)
    assert "{% filter" not in source
    assert "{% call" not in source


def test_there_are_templates() -> None:
    folders = {path.parent.name for path in SOURCES}
    assert folders == {"compose", "kubernetes"}
