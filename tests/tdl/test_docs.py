"""The language's reference and tour: their examples compile; the reference's lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tdl.text_layout import format_text
from tdl.tokens.words import (
    ACTIONS,
    DISTRIBUTIONS,
    LINK_ALIASES,
    LINK_PROPERTIES,
    RESERVED,
    SERVICE_PROPERTIES,
)
from tests.tdl.helpers import meaning

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tdl.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "language-tour.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```tdl\n(.*?)^```$", PAGE + TOUR, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_compiles_without_a_word(example: str) -> None:
    assert compile_source(example).diagnostics == ()
    assert meaning(format_text(example)) == meaning(example)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


def test_the_page_names_every_word_of_the_language() -> None:
    words = set(re.findall(r"[a-z]+-[a-z]+|[a-z]+", PAGE))
    assert set(RESERVED) <= words
    assert {*ACTIONS, *DISTRIBUTIONS, *LINK_PROPERTIES, *SERVICE_PROPERTIES} <= words
    assert set(LINK_ALIASES) <= words


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("at 120s crash", "at 2m crash"),
        ("at 5s crash server 2", "at 5s server crash 2"),
        ("from 0s to 120s server--s1 flap freq 0.5s", "from 0s to 2m server--s1 flap 500ms"),
        ("churn backend 3", "from 0s backend churn 3"),
    ],
)
def test_the_readings_of_the_public_dialect(written: str, canonical: str) -> None:
    assert f"`{written}`" in PAGE
    assert format_text(written) == canonical + "\n"
