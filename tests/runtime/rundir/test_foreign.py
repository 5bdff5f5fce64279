"""Documents that may be anybody's: the fast ways to read them refuse what the slow ones do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    INTEGER,
    MAX_DEPTH,
    TEXT,
    OneOf,
    Shape,
    check,
    parse,
)


def nested(depth: int, text: str = "") -> bytes:
    """So many brackets within each other, with a text inside."""
    value: Any = text
    for number in range(depth):
        value = [value] if number % 2 else {"k": value}
    return json.dumps(value).encode()


@pytest.mark.parametrize("text", ["", "[", "]" * 40, '"]', '\\"]', "{}"])
def test_depth_is_that_of_brackets_outside_of_texts(text: str) -> None:
    assert parse(nested(MAX_DEPTH, text), "it")
    with pytest.raises(RunError, match="it is damaged: it is nested too deeply"):
        parse(nested(MAX_DEPTH + 1, text), "it")


@pytest.mark.parametrize("beside", ["1", "12345678901234567890"])
@pytest.mark.parametrize(
    ("number", "is_right"),
    [
        ("18446744073709551615", True),
        ("-18446744073709551615", True),
        ("18446744073709551616", False),
        ("-18446744073709551616", False),
        ("1" * 5000, False),
        ("0.1234567890123456789012", True),
        ("1e999", False),
        ("NaN", False),
    ],
)
def test_numbers_are_bounded(number: str, beside: str, *, is_right: bool) -> None:
    document = f'[{beside}, {number}, "{"9" * 30}"]'.encode()
    if is_right:
        assert parse(document, "it") == json.loads(document)
    else:
        with pytest.raises(RunError, match="it is damaged"):
            parse(document, "it")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"rows": [[1, 2], []]}, ""),
        ({"rows": [[1, True]]}, r"rows\[0\]\[1\] must be an integer, not True"),
        ({"rows": [[1], [1.0]]}, r"rows\[1\]\[0\] must be an integer, not 1.0"),
        ({"rows": [[1], 1]}, r"rows\[1\] must be a list, not 1"),
        ({"rows": {}}, "rows must be a list"),
        ({"rows": [], "texts": ["a", 1]}, r"texts\[1\] must be a text, not 1"),
        ({"rows": [], "either": [[1, "a"], [-1]]}, r"either\[1\]\[0\] must be an integer of 0 or"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, said: str) -> None:
    shape = Shape({"rows": [[INTEGER]], "texts?": [TEXT], "either?": [[OneOf(COUNT, TEXT)]]})
    if not said:
        check(value, shape, "it")
        return
    with pytest.raises(RunError, match=f"it: {said}"):
        check(value, shape, "it")
