"""Suggestions are what somebody probably meant."""

from __future__ import annotations

import pytest

from tdl.suggest import MAX_COMPARED, Guesses, did_you_mean, misspelt, nearest

WORDS = ["latency", "jitter", "loss", "up", "down", "queue"]


@pytest.mark.parametrize(
    ("word", "candidates", "expected"),
    [
        ("be", ["backend", "frontend", "app"], "backend"),
        ("fe", ["backend", "frontend", "app"], "frontend"),
        ("latncy", WORDS, "latency"),
        ("lantecy", WORDS, "latency"),
        ("LATENCY", WORDS, "latency"),
        ("lat", WORDS, "latency"),
        ("dwn", WORDS, "down"),
        ("srver", ["server", "api"], "server"),
        ("servers", ["server", "api"], "server"),
        ("jion", ["join", "leave"], "join"),
        ("database", ["db", "api"], None),
        ("xyz", WORDS, None),
        ("", WORDS, None),
        ("a", [], None),
        ("s3", ["s1", "s2"], "s1"),
        ("x" * 1000, WORDS, None),
    ],
)
def test_nearest(word: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(word, candidates) == expected
    assert nearest(word, list(reversed(candidates))) == expected


def test_did_you_mean_is_a_hint() -> None:
    assert did_you_mean("latncy", WORDS) == "did you mean 'latency'?"
    assert did_you_mean("xyz", WORDS) is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("symetric", "symmetric"),
        ("latency", "latency"),
        ("lost", None),
        ("sym", None),
        ("up", "up"),
    ],
)
def test_misspelt_is_strict(word: str, expected: str | None) -> None:
    assert misspelt(word, [*WORDS, "symmetric"]) == expected


def test_guesses_end_when_they_have_compared_enough() -> None:
    guesses = Guesses()
    names = [f"server{i}" for i in range(MAX_COMPARED // 4)]
    assert [guesses.nearest("Server7", names) for _ in range(5)] == [*["server7"] * 4, None]
    assert guesses.nearest("dwn", WORDS) is None
    assert Guesses().nearest("dwn", WORDS) == "down"
